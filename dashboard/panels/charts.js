import { chart, legend } from '../chart.js'
import { CHARTS } from '../charts.js'
import { shown } from '../picture.js'
import { SPAN } from '../points.js'
import { pad } from '../terminal/line.js'
import { rule } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../points.js').Moment} Moment
 */

/** What a chart needs, its title included. */
const LEAST = { width: 48, height: 8 }
/** Columns of an axis, so that charts below each other line up. */
const LABELS = 6
/** A chart that is higher says no more. */
const HIGHEST = 24

/**
 * The last minutes. On a small terminal there is one chart at a time.
 * @type {import('./panel.js').Panel}
 */
export const charts = {
  name: 'charts',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: ({ size }) => ({
    least: size.rows < 20 ? 5 : 6,
    most: HIGHEST * Math.ceil(CHARTS.length / across(size.columns)),
  }),
  turn: 6,

  draw(state, width, rows) {
    const wide = across(width)
    // One more row of charts only where every chart keeps a height to be read.
    const high = Math.max(1, Math.min(Math.ceil(CHARTS.length / wide), Math.floor(rows / LEAST.height)))
    const count = Math.min(CHARTS.length, wide * high)
    const first = count === CHARTS.length ? 0 : state.chart
    /** @type {Line[]} */
    const lines = []
    for (let row = 0; row < high; row++) {
      const height = Math.floor((rows * (row + 1)) / high) - Math.floor((rows * row) / high)
      const inRow = Math.min(wide, count - row * wide)
      if (inRow <= 0) break
      const gap = 2
      const each = Math.floor((width - gap * (wide - 1)) / wide)
      const blocks = Array.from({ length: inRow }, (_, column) => {
        const which = (first + row * wide + column) % CHARTS.length
        const more = count === 1 ? `${which + 1}/${CHARTS.length}` : ''
        return chartBlock(state, which, each, height, more)
      })
      lines.push(...joined(blocks, ' '.repeat(gap)))
    }
    return lines
  },
}

/** @param {number} width */
const across = width => Math.min(3, Math.max(1, Math.floor(width / LEAST.width)))

/**
 * @param {Line[][]} blocks of the same height, all of their lines as wide as they should be
 * @param {string} between
 * @returns {Line[]} one beside the other
 */
const joined = (blocks, between) =>
  blocks[0].map((_, row) =>
    blocks.flatMap((block, at) =>
      at === 0 ? block[row] : [/** @type {Span} */ ([between, '']), ...block[row]],
    ),
  )

/**
 * @param {State} state
 * @param {number} which
 * @param {number} width
 * @param {number} height
 * @param {string} more which one of how many
 * @returns {Line[]}
 */
function chartBlock(state, which, width, height, more) {
  const { title, series, stacked, now } = CHARTS[which]
  const { history, charted } = shown(state)
  const last = history.at(-1)
  const { unicode, colors } = state.look
  /** @type {Line} */
  const right = [[last ? now(last) : '', 'value']]
  if (series.length > 1) {
    const named = series.map(({ label, style }) => ({ label, style, values: [] }))
    right.push(['  ', ''], ...legend(named, { unicode, colors, stacked }))
  }
  if (more !== '') right.push([`  ${more}`, 'label'])
  return [
    pad(rule(title, width, right), width),
    ...plotOf(stacked ? charted.areas : charted.lines, which, width, height - 1, state.look),
  ]
}

/**
 * Most of the work of a picture is in here, and most pictures show the same history as the one before.
 * @type {WeakMap<Moment[], Map<string, Line[]>>}
 */
const plots = new WeakMap()

/**
 * @param {Moment[]} moments
 * @param {number} which
 * @param {number} width
 * @param {number} height
 * @param {State['look']} look
 * @returns {Line[]}
 */
function plotOf(moments, which, width, height, { unicode, colors }) {
  const known = plots.get(moments) ?? new Map()
  const key = [which, width, height, unicode, colors].join()
  let lines = known.get(key)
  if (lines === undefined) {
    const { series, scale, stacked, format, binary } = CHARTS[which]
    lines = chart({
      series: series.map(({ style, value }) => ({
        style,
        values: moments.map(moment => (moment === null ? null : value(moment))),
      })),
      width,
      height,
      scale,
      stacked,
      format,
      binary,
      unicode,
      colors,
      span: SPAN,
      step: 1,
      last: Math.round((moments.at(-1)?.time ?? 0) / 1000),
      labelWidth: LABELS,
    })
    plots.set(moments, known.set(key, lines))
  }
  return lines
}
