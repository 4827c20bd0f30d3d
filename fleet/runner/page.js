// The page of one run, or of several side by side.

import { count, milliseconds } from '../../src/charts/format.js'
import { readRuns } from '../../src/report/index.js'
import { renderPage } from '../../src/report/page.js'
import { packageVersion } from '../../src/version.js'
import { latencyHistograms } from './page-histograms.js'
import {
  accountingTable,
  comparisonTable,
  dronesTable,
  gatewayTable,
  latencyTable,
  limitsTable,
  stepsTable,
  systemTable,
} from './page-tables.js'
import { factsOf, verdictOf } from './summary.js'

/** @typedef {import('./result.js').RunResult} RunResult */
/** @typedef {import('../../src/report/sections.js').Section} Section */
/** @typedef {import('../../src/report/sections.js').Table} Table */

/**
 * @typedef {object} PageRun
 * @property {RunResult} result
 * @property {string | null} csv file of its gateway
 * @property {string} label
 */

/** @param {(Table | null)[]} tables @returns {Section[]} */
const sections = tables => tables.filter(table => table !== null).map(table => ({ kind: 'table', table }))

/** @param {RunResult} result @returns {Section} */
function headlines({ steps, accounting, gateway }) {
  const last = steps.reduce((best, step) => (step.connections.open >= best.connections.open ? step : best))
  const slow = steps.filter(({ latency }) => latency.count > 0)
  const worst = slow.reduce((most, { latency }) => Math.max(most, latency.p99), 0)
  const items = [
    {
      label: 'Connections',
      value: count(last.connections.open),
      note: `of ${count(last.connections.wanted)}`,
    },
    last.received > 0
      ? { label: 'Received', value: `${count(Math.round(last.received))}/s`, note: 'publications, mean' }
      : { label: 'Pings', value: `${count(Math.round(last.pings))}/s`, note: 'mean' },
  ]
  if (slow.length > 0)
    items.push({
      label: 'Latency, p99',
      value: milliseconds(worst),
      note: steps.length > 1 ? 'in the worst step' : `longest ${milliseconds(last.latency.max)}`,
    })
  if (accounting.expected > 0)
    items.push({ label: 'Lost', value: count(accounting.lost), note: `of ${count(accounting.expected)}` })
  else items.push({ label: 'Ended', value: count(accounting.ended), note: 'connections, by themselves' })
  const deaths = gateway?.workerDeaths ?? 0
  if (deaths > 0) items.push({ label: 'Workers that died', value: count(deaths), note: 'and were replaced' })
  return { kind: 'headlines', items }
}

/** @param {string} title @param {string[]} items @returns {Section[]} */
const list = (title, items) => (items.length === 0 ? [] : [{ kind: 'list', title, items }])

/** @param {PageRun[]} runs @returns {Section[]} */
function verdicts(runs) {
  return runs.map(({ result, label }) => {
    const { state, title, lines } = verdictOf(result)
    return {
      kind: 'verdict',
      state,
      title: runs.length > 1 ? `${label}: ${title.toLowerCase()}` : title,
      lines,
    }
  })
}

/** @param {RunResult} result @returns {string[]} */
const disturbances = ({ steps }) =>
  steps.flatMap(({ disturbances: happened }) => happened.map(({ at, text }) => `after ${at} s: ${text}`))

/** @param {PageRun[]} runs @returns {string[]} differences from the published run */
const differences = runs => {
  const sentences = runs.flatMap(({ result: { differs, published, scale } }) => [
    ...differs,
    ...(published !== null && scale !== 1 ? [`Scaled: ${published.scaled}.`] : []),
  ])
  return [...new Set(sentences)]
}

/**
 * @param {PageRun[]} runs at least one, each with a step
 * @param {object} [options] @param {string} [options.title] @param {(text: string) => void} [options.onProgress]
 * @returns {Promise<string>} an HTML page
 */
export async function makePage(runs, { title, onProgress } = {}) {
  const [{ result }] = runs
  const withCsv = runs.filter(({ csv }) => csv !== null)
  const charts = await readRuns({
    files: withCsv.map(({ csv }) => String(csv)),
    labels: withCsv.map(({ label }) => label),
    onProgress,
  })
  const one = runs.length === 1
  const same = runs.every(({ result: { scenario } }) => scenario === result.scenario)
  const sameLoad = runs.every(({ result: { load } }) => load === result.load)
  const histograms = latencyHistograms(runs)
  /** @type {Section[]} */
  const lead = [
    ...verdicts(runs),
    ...(one ? [headlines(result)] : []),
    ...sections([same ? comparisonTable(runs) : null]),
    ...list(result.published === null ? 'What to know' : 'What differs', differences(runs)),
    ...sections([stepsTable(runs), latencyTable(runs)]),
    ...(histograms === null ? [] : [histograms]),
    ...(one ? list('What happened on the way', disturbances(result)) : []),
    ...sections([limitsTable(runs), accountingTable(runs), dronesTable(runs), gatewayTable(runs)]),
  ]
  const events = runs.flatMap(({ result: { events }, label }) =>
    events
      .filter(({ level }) => level !== 'info')
      .slice(-20)
      .map(({ text }) => (one ? text : `${label}: ${text}`)),
  )
  return renderPage({
    title: title ?? runs.map(({ label }) => label).join(', '),
    subtitle: sameLoad
      ? result.load
      : runs.map(({ label, result: { load } }) => `${label}: ${load}`).join('; '),
    facts: one ? factsOf(result) : [],
    lead,
    runs: charts,
    chartsTitle: charts.length > 1 ? 'The gateways, second by second' : 'The gateway, second by second',
    tail: [...list('Events of the fleet', events), ...sections([systemTable(runs)])],
    footnotes: [
      'Latency begins when a message was to be sent, not when it was: a sender that is held up hides nothing.',
    ],
    version: packageVersion(),
  })
}
