// Latency histograms with a shared logarithmic axis.

import { count, milliseconds, percent } from '../../src/charts/format.js'
import { waitOf } from '../../src/stats/tick-histogram.js'

/** @typedef {import('../../src/report/sections.js').Histograms} Histograms */

const BARS_A_DECADE = 12
/** ms: the clock's resolution. */
const LEAST = 0.01
/** Maximum number of plots. */
const MOST_PLOTS = 16

/** @param {import('./page-tables.js').Shown[]} runs @returns {Histograms | null} null: no messages */
export function latencyHistograms(runs) {
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
