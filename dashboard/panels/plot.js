import { chart, legend } from '../chart.js'
import { SPAN } from '../points.js'
import { pad, width as widthOf } from '../terminal/line.js'
import { rule } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 * @typedef {import('../points.js').Moment} Moment
 */

/** Columns of an axis, so that charts below each other line up. */
const LABELS = 6
const GAP = 2

/**
 * @template P
 * @typedef {object} Plot
 * @property {import('../charts.js').ChartDefinition<P>} definition
 * @property {string} id of the definition, and of what `pick` takes
 * @property {(moment: Moment) => P | null} pick what of a moment it shows
 */

/**
 * @typedef {object} Shown
 * @property {import('../state.js').State['look']} look
 * @property {import('../state.js').Picture} picture
 */

/**
 * A chart with its title, and its newest figures beside it.
 * @template P
 * @param {Plot<P>} plot
 * @param {Shown} shown
 * @param {number} width
 * @param {number} height
 * @param {string} [more] which one of how many
 * @returns {Line[]} all of the same width
 */
export function chartBlock(plot, { look, picture }, width, height, more = '') {
  const { title, short = title, stacked } = plot.definition
  const right = figures(plot, picture.history.at(-1) ?? null, look)
  if (more !== '') right.push([`  ${more}`, 'label'])
  // Around a title with something at the right there are seven columns.
  const name = title.length + widthOf(right) + 7 <= width ? title : short
  const moments = stacked ? picture.charted.areas : picture.charted.lines
  return [pad(rule(name, width, right), width), ...linesOf(plot, moments, width, height - 1, look)]
}

/**
 * @param {Line[][]} blocks of the same height
 * @returns {Line[]} one beside the other
 */
export const joined = blocks =>
  blocks[0].map((_, row) =>
    blocks.flatMap((block, at) =>
      at === 0 ? block[row] : [/** @type {Span} */ ([' '.repeat(GAP), '']), ...block[row]],
    ),
  )

/**
 * @param {number} width of the terminal
 * @param {number} count of charts beside each other
 */
export const widthOfEach = (width, count) => Math.floor((width - GAP * (count - 1)) / count)

/**
 * @template P
 * @param {Plot<P>} plot
 * @param {Moment} last
 * @param {Shown['look']} look
 * @returns {Line} the newest figures; of several series each with its mark
 */
function figures({ definition, pick }, last, { unicode, colors }) {
  const { series, figure, stacked, unknown } = definition
  const point = pick(last)
  const values = series.map(({ value }) => (point === null ? null : value(point)))
  if (unknown !== undefined && values.every(value => value === null)) return [[unknown, 'value']]
  if (series.length === 1) return [[figure(values[0]), 'value']]
  const named = series.map(({ label, style }, at) => ({
    label: `${label} ${figure(values[at])}`,
    style,
    values: [],
  }))
  return legend(named, { unicode, colors, stacked })
}

/**
 * Most of the work of a picture is in here, and most pictures show the same history as the one before.
 * @type {WeakMap<Moment[], Map<string, Line[]>>}
 */
const drawn = new WeakMap()

/**
 * @template P
 * @param {Plot<P>} plot
 * @param {Moment[]} moments
 * @param {number} width
 * @param {number} height
 * @param {Shown['look']} look
 * @returns {Line[]}
 */
function linesOf({ definition, id, pick }, moments, width, height, { unicode, colors }) {
  const known = drawn.get(moments) ?? new Map()
  const key = [id, width, height, unicode, colors].join()
  let lines = known.get(key)
  if (lines === undefined) {
    const { series, scale, stacked, format, binary } = definition
    const points = moments.map(pick)
    lines = chart({
      series: series.map(({ style, value }) => ({
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
      span: SPAN,
      step: 1,
      last: Math.round((moments.at(-1)?.time ?? 0) / 1000),
      labelWidth: LABELS,
    })
    drawn.set(moments, known.set(key, lines))
  }
  return lines
}
