import { chart, legend } from '../chart.js'
import { lineWidth, pad } from '../terminal/line.js'
import { rule } from './parts.js'
import { shown } from './state.js'

/** @import { Line, Span } from '../terminal/line.js' */

/** @typedef {{unicode: boolean, colors: boolean}} Look */

/**
 * @template P a point in time; null in the history: unknown
 * @typedef {object} ChartDefinition
 * @property {string} title
 * @property {string} [short] title for narrow charts
 * @property {'linear' | 'log'} scale
 * @property {boolean} [stacked]
 * @property {(value: number) => string} format of the axis
 * @property {boolean} [binary] the axis uses powers of 1024
 * @property {readonly {label: string, style: string, value: (point: P) => number | null}[]} series
 * @property {(value: number | null) => string} figure text of the newest value of a series
 * @property {string} [unknown] shown instead of the figures while none is known
 */

/**
 * @template M, P
 * @typedef {{definition: ChartDefinition<P>, id: string, pick: (moment: M) => P | null}} Plot id: the cache key
 */

/**
 * @template M
 * @typedef {object} History
 * @property {(M & {time: number} | null)[]} lines one per second, oldest first: the moments shown by lines
 * @property {(M & {time: number} | null)[]} areas the moments shown by stacked areas
 * @property {M | null} newest
 * @property {number} span seconds from the left to the right edge
 */

/** Columns of the axis labels: aligns charts in a column. */
const LABELS = 6
const GAP = 2
const LEAST = { width: 48, height: 8 }
const GOOD_HEIGHT = 16

/**
 * The charts of the main page. If not all fit, `c` shows the next ones.
 * @template {import('./state.js').ViewState<any> & {view: string}} State
 * @param {object} parts @param {number} parts.count @param {number} parts.across maximum charts side by side
 * @param {number} parts.highest maximum useful rows of a chart
 * @param {(rows: number) => {min: number, share?: number}} parts.rows of the terminal -> see Panel.rows
 * @param {(state: State, which: number, width: number, height: number, more: string) => Line[]} parts.draw
 * @returns {import('./screen.js').Panel<State>}
 */
export const chartsOf = ({ count, across, highest, rows: needed, draw }) => {
  const wideOf = (/** @type {number} */ width) =>
    Math.min(across, Math.max(1, Math.floor(width / LEAST.width)))
  return {
    name: 'charts',
    visible: state => state.view === 'main' && shown(state).snapshot !== null,
    rows: ({ size }) => ({
      max: highest * Math.ceil(count / Math.min(2, wideOf(size.columns))),
      ...needed(size.rows),
    }),
    priority: 6,

    draw(state, width, rows) {
      // Prefer wide charts of GOOD_HEIGHT to tall ones.
      const max = wideOf(width)
      const wide = max > 2 && rows >= Math.ceil(count / 2) * GOOD_HEIGHT ? 2 : max
      // Add a row of charts only if every chart stays readable.
      const high = Math.max(1, Math.min(Math.ceil(count / wide), Math.floor(rows / LEAST.height)))
      const fit = Math.min(count, wide * high)
      const first = fit === count ? 0 : state.chart
      return chartGrid({ wide, high, count: fit, width, rows }, (at, width, height) => {
        const which = (first + at) % count
        return draw(state, which, width, height, fit === 1 ? `${which + 1}/${count}` : '')
      })
    },
  }
}

/**
 * @param {{wide: number, high: number, count: number, width: number, rows: number}} grid wide: charts per row
 * @param {(at: number, width: number, height: number) => Line[]} draw @returns {Line[]}
 */
export const chartGrid = ({ wide, high, count, width, rows }, draw) =>
  Array.from({ length: high }, (_, row) => {
    const height = Math.floor((rows * (row + 1)) / high) - Math.floor((rows * row) / high)
    const inRow = Math.min(wide, count - row * wide)
    const each = Math.floor((width - GAP * (inRow - 1)) / inRow)
    const blocks = Array.from({ length: inRow }, (_, column) => draw(row * wide + column, each, height))
    return blocks[0].map((_, line) =>
      blocks.flatMap((block, at) => (at === 0 ? block[line] : [SPACE, ...block[line]])),
    )
  }).flat()

/** @type {Span} */
const SPACE = [' '.repeat(GAP), '']

/**
 * @template M, P
 * @param {Plot<M, P>} plot @param {History<M>} history @param {Look} look @param {number} width
 * @param {number} height @param {string} [more] `1/3`
 */
export function chartBlock(plot, history, look, width, height, more = '') {
  const { title, short = title, stacked } = plot.definition
  const number = /** @type {Line} */ (more === '' ? [] : [[`  ${more}`, 'label']])
  // The frame around title and figures takes seven columns.
  const room = width - 7 - lineWidth(number)
  let right = figures(plot, history.newest, look, true)
  const labelled = short.length + lineWidth(right) <= room
  if (!labelled) right = figures(plot, history.newest, look, false)
  const name = title.length + lineWidth(right) <= room ? title : short
  const moments = stacked ? history.areas : history.lines
  return [
    pad(rule(name, width, [...right, ...number]), width),
    ...linesOf(plot, moments, history.span, width, height - 1, look, !labelled),
  ]
}

/**
 * @template M, P
 * @param {Plot<M, P>} plot @param {M | null} newest @param {Look} look @param {boolean} labelled @returns {Line}
 */
function figures({ definition, pick }, newest, { unicode, colors }, labelled) {
  const { series, figure, stacked, unknown } = definition
  const point = newest === null ? null : pick(newest)
  const values = series.map(({ value }) => (point === null ? null : value(point)))
  if (unknown !== undefined && values.every(value => value === null)) return [[unknown, 'value']]
  if (series.length === 1) return [[figure(values[0]), 'value']]
  const named = series.map(({ label, style }, at) => ({
    label: `${labelled ? `${label} ` : ''}${figure(values[at])}`,
    style,
    values: [],
  }))
  return legend(named, { unicode, colors, stacked })
}

/** Most frames show the same history as the previous one. @type {WeakMap<object, Map<string, Line[]>>} */
const drawn = new WeakMap()

/**
 * @template M, P
 * @param {Plot<M, P>} plot @param {(M & {time: number} | null)[]} moments @param {number} span seconds
 * @param {number} width @param {number} height @param {Look} look @param {boolean} legend @returns {Line[]}
 */
function linesOf({ definition, id, pick }, moments, span, width, height, { unicode, colors }, legend) {
  const known = drawn.get(moments) ?? new Map()
  const key = [id, width, height, unicode, colors, legend].join()
  let lines = known.get(key)
  if (lines === undefined) {
    const { series, scale, stacked, format, binary } = definition
    const points = moments.map(moment => (moment === null ? null : pick(moment)))
    lines = chart({
      series: series.map(({ label, style, value }) => ({
        label,
        style,
        values: points.map(point => (point === null ? null : value(point))),
      })),
      width,
      height,
      scale,
      stacked,
      format,
      binary,
      unicode,
      colors,
      span,
      legend: legend && series.length > 1,
      last: Math.round((moments.at(-1)?.time ?? 0) / 1000),
      labelWidth: LABELS,
    })
    drawn.set(moments, known.set(key, lines))
  }
  return lines
}
