// The page of one run, or of several side by side.

import { count, milliseconds, percent } from '../../src/base/format.js'
import { packageVersion } from '../../src/base/version.js'
import { waitOf } from '../../src/metrics/tick-histogram.js'
import { readRuns } from '../../src/pages/report/index.js'
import { renderPage } from '../../src/pages/report/page.js'
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
/** @typedef {import('../../src/pages/report/sections.js').Section} Section */
/** @typedef {import('../../src/pages/report/sections.js').Table} Table */

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
  if (deaths > 0) items.push({ label: 'Deaths of workers', value: count(deaths), note: 'and were replaced' })
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

/** Bars of latency histograms, which share a logarithmic axis. */
const BARS_A_DECADE = 12
/** ms: the clock's resolution. */
const LEAST = 0.01
/** Maximum number of plots. */
const MOST_PLOTS = 16

/**
 * @param {import('./page-tables.js').Shown[]} runs
 * @returns {import('../../src/pages/report/sections.js').Histograms | null} null: no messages
 */
function latencyHistograms(runs) {
  const shown = runs
    .flatMap(({ label, result }, run) =>
      result.steps.map(step => ({
        step,
        run,
        label: runs.length > 1 ? `${label}, ${step.name}` : step.name,
      })),
    )
    .filter(({ step }) => step.latency.count > 0)
    .slice(0, MOST_PLOTS)
  if (shown.length === 0) return null
  const least = Math.max(LEAST, Math.min(...shown.map(({ step }) => step.latency.min)))
  const most = Math.max(...shown.map(({ step }) => step.latency.max), least)
  const low = Math.floor(Math.log10(least))
  const high = Math.max(low + 1, Math.ceil(Math.log10(most)))
  const bars = (high - low) * BARS_A_DECADE
  const edge = (/** @type {number} */ bar) => 10 ** (low + bar / BARS_A_DECADE)
  return {
    kind: 'histograms',
    title: 'How latency is spread',
    note: 'Share of the messages by latency; the axis is logarithmic, and the same for all.',
    ticks: Array.from({ length: high - low + 1 }, (_, decade) => milliseconds(10 ** (low + decade))),
    plots: shown.map(({ step: { latency }, label, run }) => {
      const counts = new Array(bars).fill(0)
      const { buckets } = latency.wire
      for (let at = 0; at < buckets.length; at += 2) {
        const bar = Math.floor((Math.log10(Math.max(LEAST, waitOf(buckets[at]))) - low) * BARS_A_DECADE)
        counts[Math.min(bars - 1, Math.max(0, bar))] += buckets[at + 1]
      }
      const highest = Math.max(...counts)
      return {
        label,
        note: `p50 ${milliseconds(latency.p50)}, p99 ${milliseconds(latency.p99)}`,
        ...(runs.length > 1 ? { run } : {}),
        bars: counts.map((times, bar) => ({
          share: times / highest,
          hint: `${milliseconds(edge(bar))} – ${milliseconds(edge(bar + 1))}: ${count(times)} (${percent((100 * times) / latency.count)})`,
        })),
      }
    }),
  }
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
