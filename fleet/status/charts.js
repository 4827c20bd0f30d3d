import { LOWER_BLOCKS } from '../../dashboard/chart/bars.js'
import { pad, visibleWidth } from '../../dashboard/terminal/line.js'
import { chartBlock, chartsOf } from '../../dashboard/view/charts.js'
import { rule } from '../../dashboard/view/parts.js'
import { shown } from '../../dashboard/view/state.js'
import { ms, quantity, short, tick } from '../../src/base/format.js'
import { waitOf } from '../../src/metrics/tick-histogram.js'
import { Distribution } from '../statistics/distribution.js'

/** @import { Line } from '../../dashboard/terminal/line.js' */
/** @import { DistributionWire, FleetSnapshot } from '../schema.js' */
/** @import { Panel, State, toPoint } from './state.js' */
/** @import { ChartDefinition as ChartOf } from '../../dashboard/view/charts.js' */

/** @typedef {ReturnType<typeof toPoint>} Point chart data of a second */
/** @typedef {Point | null} Moment null: an unknown second */
/** @typedef {ChartOf<Point>} ChartDefinition */

export const KEPT = 600
const SPANS = [60, 120, 300, KEPT]

/** @param {Moment[]} moments @returns {number} seconds: charts of a young run fill their width */
export const spanOf = moments => SPANS.find(span => moments.length <= span) ?? KEPT

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

/** The last minutes, and the distribution of latencies. @type {Panel} */
export const charts = chartsOf({
  count: CHARTS.length,
  across: CHARTS.length,
  highest: 20,
  // A share: a thousand drones would fill any terminal.
  rows: rows => ({ min: rows < 20 ? 0 : 6, share: Math.floor(rows / 3) }),
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

/** @param {State} state @param {number} width @param {number} height @param {string} more which of how many charts */
function histogramBlock(state, width, height, more) {
  const { latency, latencyNow, connect } = /** @type {FleetSnapshot} */ (shown(state).snapshot)
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

/** Minimum latency on the axis, ms. */
const FINEST = 0.001
const MARK = 7

/** Bars of equal width on a logarithmic scale; low and high in ms. @param {DistributionWire} wire @param {number} count */
export function logBuckets({ min, max, buckets }, count) {
  // At least a decade: else noise looks like peaks.
  const low = Math.max(FINEST, min)
  const high = Math.max(max, low * 10)
  const bars = Array(count).fill(0)
  const scale = count / Math.log(high / low)
  for (let i = 0; i < buckets.length; i += 2) {
    const ms = Math.min(high, Math.max(low, waitOf(buckets[i])))
    bars[Math.min(count - 1, Math.floor(Math.log(ms / low) * scale))] += buckets[i + 1]
  }
  return { low, high, bars }
}

/**
 * Bars of a distribution over a logarithmic axis. A non-empty bar is always visible.
 * @param {DistributionWire} wire @param {number} width @param {number} height including the axis and its labels
 * @param {boolean} unicode @param {{label: string, at: number}[]} marks on the axis, ms
 */
export function histogram(wire, width, height, unicode, marks) {
  const inner = Math.max(1, width - 2)
  const rows = Math.max(1, height - 2)
  const { low, high, bars } = logBuckets(wire, inner)
  const most = Math.max(...bars, 1)
  const place = (/** @type {number} */ ms) =>
    Math.min(inner - 1, Math.max(0, Math.floor((Math.log(ms / low) / Math.log(high / low)) * inner)))
  const steps = unicode ? 8 : 1
  const heights = bars.map(bar => (bar === 0 ? 0 : Math.max(1, Math.round((bar / most) * rows * steps))))
  /** @type {Line[]} */
  const lines = []
  for (let row = 0; row < rows; row++) {
    const below = (rows - 1 - row) * steps
    const text = heights
      .map(bar => {
        const level = Math.min(steps, Math.max(0, bar - below))
        return unicode ? LOWER_BLOCKS[level] : level > 0 ? '#' : ' '
      })
      .join('')
    lines.push([
      [' ', ''],
      [text, 'series1'],
    ])
  }
  return [...lines, ...axis(low, high, inner, place, unicode, marks)]
    .slice(0, height)
    .map(line => pad(line, width))
}

/**
 * The line below the bars with the marks, and labels at 1, 2, 5 or at decades, in ms.
 * @param {number} low @param {number} high @param {number} width @param {(ms: number) => number} place
 * @param {boolean} unicode @param {{label: string, at: number}[]} marks
 * @returns {Line[]}
 */
function axis(low, high, width, place, unicode, marks) {
  const line = Array(width).fill(unicode ? '─' : '-')
  const text = Array(width).fill(' ')
  const perDecade = width / Math.log10(high / low)
  const factors = perDecade >= MARK * 4 ? [1, 2, 5] : [1]
  for (let decade = Math.floor(Math.log10(low)); 10 ** decade <= high; decade++) {
    for (const factor of factors) {
      const value = factor * 10 ** decade
      if (value < low || value > high) continue
      const at = place(value)
      line[at] = unicode ? '┴' : '+'
      write(text, at, valueText(value))
    }
  }
  for (const { label, at } of marks) write(line, place(at), `${unicode ? '▲' : '^'}${label}`, true)
  return [
    [
      [' ', ''],
      [line.join(''), 'border'],
    ],
    [
      [' ', ''],
      [text.join(''), 'label'],
    ],
  ]
}

/** @param {number} value ms */
const valueText = value => (value >= 1000 ? `${value / 1000} s` : tick(value))

/** @param {string[]} cells @param {number} at @param {string} text @param {boolean} [pointed] begins there, not centred */
function write(cells, at, text, pointed = false) {
  const size = visibleWidth(text)
  const start = Math.max(0, Math.min(cells.length - size, pointed ? at : at - Math.floor(size / 2)))
  const taken = cells.slice(Math.max(0, start - 1), start + size + 1)
  const isFree = pointed ? !taken.some(cell => /[\w.▲^]/.test(cell)) : taken.every(cell => cell === ' ')
  if (!isFree || size > cells.length) return
  for (let i = 0; i < size; i++) cells[start + i] = text[i]
}
