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
  figuresTable,
  gatewayTable,
  latencyTable,
  limitsTable,
  stepsTable,
  systemTable,
} from './page-tables.js'
import { factsOf, verdictOf } from './summary.js'

/** @import { Histograms, Section, Table } from '../../src/pages/report/sections.js' */
/** @import { Shown } from './page-tables.js' */
/** @import { RunResult } from './result.js' */

/** @typedef {Shown & {csv: string | null}} PageRun `csv`: file of its gateway */

/** @param {(Table | null)[]} tables @returns {Section[]} */
const sections = tables => tables.filter(table => table !== null).map(table => ({ kind: 'table', table }))

/** @param {RunResult} result @returns {Section} */
function headlines({ steps, accounting, gateway }) {
  const last = steps.reduce((best, step) => (step.connections.open >= best.connections.open ? step : best))
  const slow = steps.filter(({ latency }) => latency.count > 0)
  const worst = Math.max(0, ...slow.map(({ latency }) => latency.p99))
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
      note: steps.length > 1 ? 'in the worst step' : `max ${milliseconds(last.latency.max)}`,
    })
  if (accounting.expected > 0)
    items.push({ label: 'Lost', value: count(accounting.lost), note: `of ${count(accounting.expected)}` })
  else items.push({ label: 'Ended', value: count(accounting.ended), note: 'connections, unexpectedly' })
  const exits = gateway?.workerExits ?? 0
  if (exits > 0) items.push({ label: 'Worker exits', value: count(exits), note: 'all replaced' })
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
const RESOLUTION = 0.01
const MAX_PLOTS = 16

/** @param {Shown[]} runs @returns {Histograms | null} null: no messages */
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
    .slice(0, MAX_PLOTS)
  if (shown.length === 0) return null
  const min = Math.max(RESOLUTION, Math.min(...shown.map(({ step }) => step.latency.min)))
  const max = Math.max(...shown.map(({ step }) => step.latency.max), min)
  const low = Math.floor(Math.log10(min))
  const high = Math.max(low + 1, Math.ceil(Math.log10(max)))
  const bars = (high - low) * BARS_A_DECADE
  const edge = (/** @type {number} */ bar) => 10 ** (low + bar / BARS_A_DECADE)
  return {
    kind: 'histograms',
    title: 'Latency distribution',
    note: 'Share of messages by latency, on the same logarithmic axis in all plots.',
    ticks: Array.from({ length: high - low + 1 }, (_, decade) => milliseconds(10 ** (low + decade))),
    plots: shown.map(({ step: { latency }, label, run }) => {
      const counts = new Array(bars).fill(0)
      const { buckets } = latency.wire
      for (let at = 0; at < buckets.length; at += 2) {
        const bar = Math.floor((Math.log10(Math.max(RESOLUTION, waitOf(buckets[at]))) - low) * BARS_A_DECADE)
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

/** @param {PageRun[]} runs each with a step @param {{title?: string, onProgress?: (text: string) => void}} [options] */
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
    ...list(result.published === null ? 'Notes' : 'Differences from the published run', differences(runs)),
    ...sections([stepsTable(runs), latencyTable(runs)]),
    ...(histograms === null ? [] : [histograms]),
    ...(one ? list('Disturbances', disturbances(result)) : []),
    ...sections([
      limitsTable(runs),
      accountingTable(runs),
      dronesTable(runs),
      gatewayTable(runs),
      figuresTable(runs),
    ]),
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
    tail: [...list('Fleet events', events), ...sections([systemTable(runs)])],
    footnotes: [
      'Latency starts at the scheduled send time of a message, so it includes delays of the sender.',
    ],
    version: packageVersion(),
  })
}
