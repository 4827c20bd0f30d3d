import { pad } from '../../../dashboard/terminal/line.js'
import { chartBlock, chartsOf } from '../../../dashboard/view/charts.js'
import { rule } from '../../../dashboard/view/parts.js'
import { shown } from '../../../dashboard/view/state.js'
import { ms, quantity, short, tick } from '../../../src/base/format.js'
import { Distribution } from '../../statistics/distribution.js'
import { histogram } from '../histogram.js'
import { spanOf } from '../picture.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../state.js').State} State
 * @typedef {import('../picture.js').Point} Point
 * @typedef {import('../../../dashboard/view/charts.js').ChartDefinition<Point>} ChartDefinition
 */

/** Charts in the order of the key `c`; null: the histogram of latencies. @type {readonly (ChartDefinition | null)[]} */
export const CHARTS = [
  {
    title: 'connections',
    scale: 'linear',
    format: short,
    series: [
      { label: 'wanted', style: 'series3', value: ({ wanted }) => wanted },
      { label: 'open', style: 'series1', value: ({ open }) => open },
    ],
    figure: quantity,
  },
  null,
  {
    title: 'messages a second',
    short: 'messages/s',
    scale: 'linear',
    format: short,
    series: [
      { label: 'published', style: 'series2', value: ({ published }) => published },
      { label: 'received', style: 'series1', value: ({ received }) => received },
    ],
    figure: short,
  },
  {
    title: 'latency of 5 s, ms',
    short: 'last 5 s, ms',
    scale: 'log',
    format: tick,
    series: [
      { label: 'max', style: 'series4', value: ({ max }) => max },
      { label: 'p99', style: 'series1', value: ({ p99 }) => p99 },
      { label: 'p50', style: 'series3', value: ({ p50 }) => p50 },
    ],
    figure: ms,
  },
]

/** The last minutes, and the distribution of latencies. @type {import('../state.js').Panel} */
export const charts = chartsOf({
  count: CHARTS.length,
  across: CHARTS.length,
  highest: 20,
  // A share: a thousand drones would fill any terminal.
  rows: rows => ({ least: rows < 20 ? 0 : 6, share: Math.floor(rows / 3) }),
  draw(state, which, width, height, more) {
    const definition = CHARTS[which]
    if (definition === null) return histogramBlock(state, width, height, more)
    const { history } = shown(state)
    return chartBlock(
      { definition, id: `${which}`, pick: (/** @type {Point} */ point) => point },
      { lines: history, areas: history, newest: history.at(-1) ?? null, span: spanOf(history) },
      state.look,
      width,
      height,
      more,
    )
  },
})

/**
 * @param {State} state @param {number} width @param {number} height
 * @param {string} more which chart of how many
 * @returns {Line[]} the histogram
 */
function histogramBlock(state, width, height, more) {
  const { snapshot } = shown(state)
  if (snapshot === null) return []
  const { latency, latencyNow, connect } = snapshot
  // A fleet that receives nothing still has its connect times.
  const [what, wire] =
    latency.count > 0
      ? state.recent
        ? ['latency of the last 5 s, ms', latencyNow]
        : ['latency of all, ms', latency]
      : ['connecting, ms', connect]
  const right = /** @type {Line} */ ([
    [quantity(wire.count), 'value'],
    [more === '' ? '' : `  ${more}`, 'label'],
  ])
  const head = pad(rule(what, width, right), width)
  if (wire.count === 0) return [head, pad([[' nothing received yet', 'label']], width)]
  const distribution = Distribution.from(wire)
  const marks = [50, 90, 99].map(p => ({ label: `p${p}`, at: distribution.percentile(p) }))
  const wide = width >= 70 ? marks.map(({ label, at }) => ({ label: `${label} ${ms(at)}`, at })) : marks
  return [head, ...histogram(wire, width, height - 1, state.look.unicode, wide)]
}
