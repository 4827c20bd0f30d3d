import { pattern } from '../chart/bars.js'
import { chart, MARKS } from '../chart.js'
import { CHARTS } from '../charts.js'
import { shown } from '../picture.js'
import { SPAN } from '../points.js'
import { beside, clip } from '../terminal/line.js'
import { rule } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/** What a chart needs, its title included. */
const LEAST = { width: 48, height: 8 }
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
      lines.push(...beside(blocks, new Array(inRow).fill(each), gap))
    }
    return lines
  },
}

/** @param {number} width */
const across = width => Math.min(3, Math.max(1, Math.floor(width / LEAST.width)))

/**
 * @param {State} state
 * @param {number} which
 * @param {number} width
 * @param {number} height
 * @param {string} more which one of how many
 * @returns {Line[]}
 */
function chartBlock(state, which, width, height, more) {
  const { title, series, scale, stacked, format, binary, now } = CHARTS[which]
  const { history } = shown(state)
  const last = history.at(-1)
  /** @type {Line} */
  const legend = [[last ? now(last) : '', 'value']]
  if (series.length > 1) {
    series.forEach(({ label, style }, index) => {
      legend.push([`  ${signOf(index, stacked, state.look)} `, style], [label, 'label'])
    })
  }
  if (more !== '') legend.push([`  ${more}`, 'label'])
  return [
    clip(rule(title, width, legend), width),
    ...chart({
      series: series.map(({ label, style, value }) => ({
        label,
        style,
        values: history.map(moment => (moment === null ? null : value(moment))),
      })),
      width,
      height: height - 1,
      scale,
      stacked,
      format,
      binary,
      unicode: state.look.unicode,
      colors: state.look.colors,
      span: SPAN,
      step: 1,
      last: last ? Math.round(last.time / 1000) : 0,
      labelWidth: 6,
      legend: false,
    }),
  ]
}

/**
 * @param {number} index of a series
 * @param {boolean} stacked
 * @param {State['look']} look
 * @returns {string} what it is drawn with
 */
function signOf(index, stacked, { unicode, colors }) {
  if (stacked) return pattern(index, unicode, colors)
  return unicode ? '■' : MARKS[index % MARKS.length]
}
