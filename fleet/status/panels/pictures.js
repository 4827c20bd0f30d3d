import { chart, legend } from '../../../dashboard/chart.js'
import { people } from '../../../dashboard/format.js'
import { rule } from '../../../dashboard/panels/parts.js'
import { beside, pad } from '../../../dashboard/terminal/line.js'
import { Distribution } from '../../statistics/distribution.js'
import { CHARTS } from '../charts.js'
import { fine } from '../format.js'
import { histogram } from '../histogram.js'
import { spanOf } from '../history.js'
import { shown } from '../picture.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').State} State
 */

/** What a chart needs, its title included. */
const LEAST = { width: 48, height: 8 }
/** Columns of an axis, so that charts below each other line up. */
const LABELS = 6
/** A chart that is higher says no more. */
const HIGHEST = 20
const GAP = 2

/**
 * How it went, and how the latencies are spread. On a small terminal there is one picture at a time.
 * @type {import('./panel.js').Panel}
 */
export const pictures = {
  name: 'pictures',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: ({ size }) => ({
    least: size.rows < 20 ? 0 : 6,
    most: HIGHEST * Math.ceil(CHARTS.length / across(size.columns)),
    // A thousand drones would fill any terminal.
    share: Math.floor(size.rows / 3),
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
      const each = Math.floor((width - GAP * (inRow - 1)) / inRow)
      const blocks = Array.from({ length: inRow }, (_, column) => {
        const which = (first + row * wide + column) % CHARTS.length
        return block(state, which, each, height, count === 1)
      })
      lines.push(...beside(blocks, Array(inRow).fill(each), GAP))
    }
    return lines
  },
}

/** @param {number} width */
const across = width => Math.min(CHARTS.length, Math.max(1, Math.floor(width / LEAST.width)))

/**
 * @param {State} state
 * @param {number} which
 * @param {number} width
 * @param {number} height
 * @param {boolean} alone
 * @returns {Line[]}
 */
function block(state, which, width, height, alone) {
  const { title, series, scale, format, now } = CHARTS[which]
  const { history } = shown(state)
  /** @type {Line} */
  const number = alone ? [[`  ${which + 1}/${CHARTS.length}`, 'label']] : []
  if (series.length === 0) return spread(state, width, height, number)
  const last = history.at(-1)
  const { unicode, colors } = state.look
  const right = /** @type {Line} */ ([
    [last ? now(last) : '', 'value'],
    ['  ', ''],
    ...legend(
      series.map(({ label, style }) => ({ label, style, values: [] })),
      { unicode, colors },
    ),
    ...number,
  ])
  const lines = chart({
    series: series.map(({ style, value }) => ({
      style,
      values: history.map(moment => (moment === null ? null : value(moment))),
    })),
    width,
    height: height - 1,
    scale,
    format,
    unicode,
    colors,
    span: spanOf(history),
    step: 1,
    last: Math.round((last?.time ?? 0) / 1000),
    labelWidth: LABELS,
  })
  return [pad(rule(title, width, right), width), ...lines]
}

/**
 * @param {State} state
 * @param {number} width
 * @param {number} height
 * @param {Line} number which one of how many
 * @returns {Line[]} the histogram
 */
function spread(state, width, height, number) {
  const { snapshot } = shown(state)
  if (snapshot === null) return []
  const { latency, latencyNow, connect } = snapshot
  // A fleet that receives nothing still has the times of its connections.
  const [what, wire] =
    latency.count > 0
      ? state.recent
        ? ['latency of the last 5 s, ms', latencyNow]
        : ['latency of all, ms', latency]
      : ['connecting, ms', connect]
  const right = /** @type {Line} */ ([[people(wire.count), 'value'], ...number])
  const head = pad(rule(what, width, right), width)
  if (wire.count === 0) return [head, pad([[' nothing was received yet', 'label']], width)]
  const distribution = Distribution.from(wire)
  const marks = [50, 90, 99].map(p => ({ label: `p${p}`, at: distribution.percentile(p) }))
  const wide = width >= 70 ? marks.map(({ label, at }) => ({ label: `${label} ${fine(at)}`, at })) : marks
  return [head, ...histogram(wire, width, height - 1, state.look.unicode, wide)]
}
