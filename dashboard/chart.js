import { tick } from '../src/base/format.js'
import { LOWER_BLOCKS, pattern } from './chart/bars.js'
import { Canvas } from './chart/canvas.js'
import { means, resample } from './chart/resample.js'
import { ageMarks, linearScale, logScale } from './chart/scale.js'
import { pad, visibleWidth } from './terminal/line.js'

/** @import { Column } from './chart/resample.js' */
/** @import { Scale } from './chart/scale.js' */
/** @import { Line, Style } from './terminal/line.js' */

export { bar, sparkline, stackedBar } from './chart/bars.js'

/**
 * @typedef {object} Series
 * @property {(number | null)[]} values evenly spaced in time, the newest last; null: unknown
 * @property {Style} style
 * @property {string} [label] for the legend
 *
 * @typedef {object} ChartOptions
 * @property {Series[]} series later ones are drawn over earlier ones; stacked: the first is at the bottom
 * @property {number} width columns, including the labels
 * @property {number} height rows, including axis, labels and legend
 * @property {'linear' | 'log'} [scale]
 * @property {number} [min] of the axis; default 0, or the decade of the smallest value
 * @property {number} [max] of the axis; default: from the largest value
 * @property {boolean} [stacked]
 * @property {boolean} [unicode] braille dots and blocks; else ASCII
 * @property {(value: number) => string} [format] text of an axis label
 * @property {boolean} [binary] labels at multiples of 1024 instead of 1000
 * @property {number} [span] seconds from the left to the right edge; default: one step per value
 * @property {number} [step] seconds between two values
 * @property {number} [last] sequence number of the newest value. With it, values keep their dots while the chart
 *   scrolls; without it, peaks may flicker if there are more values than dots
 * @property {number} [labelWidth] minimum columns of the labels: aligns charts below each other
 * @property {boolean} [legend] a row above with the labels; default: if there are any
 * @property {boolean} [colors] false: stacked areas differ by their pattern
 */

/** ASCII characters that draw lines, by series. */
const MARKS = '*+ox#%'
/** Eighths of a cell that an area without a cell of its own must fill to get it. */
const MIN_PART = 2
/** Minimum columns of a chart, including the labels. */
const MIN_WIDTH = 4
/** Minimum rows of a chart that has a line above its time labels. */
const HEIGHT_WITH_TIME_LINE = 9

/**
 * Draws values over time, the newest at the right.
 * @param {ChartOptions} options @returns {Line[]} `height` lines of `width` columns
 */
export function chart(options) {
  const { series, width, height, unicode = true, format = tick, step = 1, labelWidth = 0 } = options
  const length = Math.max(1, ...series.map(({ values }) => values.length))
  const span = options.span ?? length * step
  const withLegend = (options.legend ?? series.some(({ label }) => label !== undefined)) && height > 3
  const axisRows = height >= HEIGHT_WITH_TIME_LINE ? 2 : height > 3 ? 1 : 0
  const rows = Math.max(1, height - axisRows - (withLegend ? 1 : 0))

  /** @param {number} columns of cells or dots @returns {(Column | null)[][]} by series */
  const columnsOf = columns => {
    const last = options.last ?? length - 1
    return series.map(({ values }) => resample(values, columns, span / step / columns, last))
  }
  const scale = scaleOf(options, rows)
  const labels = labelsOf(scale, rows, unicode && !options.stacked ? 4 : 1, format)
  const labelColumns = Math.max(labelWidth, ...labels.map(label => visibleWidth(label)))
  const plotColumns = Math.max(1, width - labelColumns - 1)
  if (width < MIN_WIDTH) return Array.from({ length: height }, () => pad([], width))

  const canvas = new Canvas(plotColumns, rows, unicode && !options.stacked)
  if (options.stacked) drawAreas(canvas, options, columnsOf(plotColumns), scale, plotColumns, rows)
  else drawLines(canvas, series, columnsOf(canvas.width), scale)

  /** @type {Line[]} */
  const lines = []
  if (withLegend) lines.push([[' '.repeat(labelColumns + 1), ''], ...legend(series, options)])
  for (let row = 0; row < rows; row++) {
    const axis = labels[row] === '' ? (unicode ? '│' : '|') : unicode ? '┤' : '+'
    lines.push([[labels[row].padStart(labelColumns), 'label'], [axis, 'border'], ...canvas.row(row)])
  }
  if (axisRows > 0) lines.push(...timeAxis(span, plotColumns, labelColumns, axisRows, unicode))
  return lines.slice(0, height).map(line => pad(line, width))
}

/**
 * @param {Series[]} series @param {{unicode?: boolean, stacked?: boolean, colors?: boolean}} options
 * @returns {Line}
 */
export function legend(series, { unicode = true, stacked = false, colors = true }) {
  /** @type {Line} */
  const line = []
  series.forEach(({ label, style }, index) => {
    if (label === undefined) return
    const dots = unicode ? '━' : MARKS[index % MARKS.length]
    if (line.length > 0) line.push(['  ', ''])
    line.push([stacked ? pattern(index, unicode, colors) : dots, style], [` ${label}`, 'label'])
  })
  return line
}

/** @param {ChartOptions} options @param {number} rows @returns {Scale} */
function scaleOf({ series, scale, min, max, stacked, binary = false }, rows) {
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  let whole = true
  /** @param {number} value */
  const include = value => {
    whole &&= Number.isInteger(value)
    if (value > high) high = value
    if (value < low && (scale !== 'log' || value > 0)) low = value
  }
  const length = Math.max(...series.map(({ values }) => values.length), 0)
  for (let i = 0; i < length; i++) {
    let sum = 0
    for (const { values } of series) {
      // The series end at the same time but may begin at different times.
      const value = values[values.length - length + i] ?? Number.NaN
      if (Number.isNaN(value)) continue
      if (stacked) sum += value
      else include(value)
    }
    if (stacked) include(sum)
  }
  if (high < low) high = low = scale === 'log' ? 1 : 0
  return scale === 'log'
    ? logScale({ min, max, low, high, rows })
    : linearScale({ min, max, low, high, rows, binary, whole })
}

/**
 * @param {Scale} scale @param {number} rows @param {number} dots of a row
 * @param {(value: number) => string} format @returns {string[]} by row, from the top; '': no label
 */
function labelsOf(scale, rows, dots, format) {
  const labels = Array(rows).fill('')
  let previous = ''
  for (const tick of scale.ticks) {
    const row = rows - 1 - Math.floor(Math.round(scale.place(tick) * (rows * dots - 1)) / dots)
    const label = format(tick)
    // Of two ticks with the same text, the lower one gets the label.
    if (label !== previous && labels[row] === '') labels[row] = label
    previous = label
  }
  return labels
}

/**
 * @param {Canvas} canvas @param {Series[]} series @param {(Column | null)[][]} columns by series
 * @param {Scale} scale
 */
function drawLines(canvas, series, columns, scale) {
  const top = canvas.height - 1
  /** @param {number} value */
  const y = value => Math.round(scale.place(value) * top)
  series.forEach(({ style }, index) => {
    const mark = MARKS[index % MARKS.length]
    let lastX = 0
    let lastY = 0
    columns[index].forEach((column, x) => {
      if (column === null) return
      const first = y(column.first)
      if (column.joined) canvas.line(lastX, lastY, x, first, style, mark)
      const flat = column.low === column.high
      const high = flat ? first : y(column.high)
      for (let dot = flat ? first : y(column.low); dot <= high; dot++) canvas.dot(x, dot, style, mark)
      lastX = x
      lastY = flat ? first : y(column.last)
    })
  })
}

/**
 * @param {Canvas} canvas @param {ChartOptions} options @param {(Column | null)[][]} columns by series
 * @param {Scale} scale @param {number} width columns @param {number} rows
 */
function drawAreas(canvas, { series, unicode = true, colors = true }, columns, scale, width, rows) {
  const values = columns.map(means)
  for (let column = 0; column < width; column++) {
    let sum = 0
    // The top of each area, eighths of a row.
    const tops = values.map(own => Math.round(scale.place((sum += own[column] ?? 0)) * rows * 8))
    const owners = ownersOf(tops, rows)
    for (let row = 0; row < rows; row++) {
      const bottom = (rows - 1 - row) * 8
      const filled = Math.min(8, (tops.at(-1) ?? 0) - bottom)
      if (filled <= 0) continue
      const owner = owners[row]
      if (unicode && colors) canvas.cell(column, row, LOWER_BLOCKS[filled], series[owner].style)
      else if (filled >= 4) canvas.cell(column, row, pattern(owner, unicode, colors), series[owner].style)
    }
  }
}

/**
 * Assigns the cells of a column to areas. A cell has the colour of the area that fills most of it. An area that gets
 * no cell this way takes the cell that it fills most, unless that is the only cell of its owner.
 * @param {number[]} tops of each area, eighths of a row from the bottom
 * @param {number} rows @returns {number[]} area of each row, from the top
 */
function ownersOf(tops, rows) {
  const owners = Array(rows).fill(0)
  const cells = tops.map(() => 0)
  const best = tops.map(() => ({ part: 0, row: 0 }))
  for (let row = 0; row < rows; row++) {
    const bottom = (rows - 1 - row) * 8
    let most = 0
    let from = bottom
    for (let index = 0; index < tops.length; index++) {
      const part = Math.min(bottom + 8, tops[index]) - from
      from = Math.max(from, Math.min(bottom + 8, tops[index]))
      if (part > best[index].part) best[index] = { part, row }
      if (part <= most) continue
      most = part
      owners[row] = index
    }
    if (most > 0) cells[owners[row]]++
  }
  best.forEach(({ part, row }, index) => {
    if (cells[index] > 0 || part < MIN_PART || cells[owners[row]] < 2) return
    cells[owners[row]]--
    owners[row] = index
  })
  return owners
}

/**
 * Draws the labels below the plot: the age of the values.
 * @param {number} span seconds
 * @param {number} columns @param {number} indent columns before the axis
 * @param {number} rows 1: only the labels; 2: a line above them
 * @param {boolean} unicode @returns {Line[]}
 */
function timeAxis(span, columns, indent, rows, unicode) {
  const marks = ageMarks(span, columns)
  const line = Array(columns).fill(unicode ? '─' : '-')
  const text = Array(columns).fill(' ')
  for (const mark of marks) {
    const start = Math.min(
      Math.max(0, mark.column - Math.floor(mark.text.length / 2)),
      columns - mark.text.length,
    )
    line[mark.column] = unicode ? '┴' : '+'
    // A label that would touch another one, or is longer than the axis, is left out.
    const around = text.slice(Math.max(0, start - 1), start + mark.text.length + 1)
    if (start < 0 || around.some(character => character !== ' ')) continue
    for (let i = 0; i < mark.text.length; i++) text[start + i] = mark.text[i]
  }
  /** @type {Line[]} */
  const lines = [[[`${' '.repeat(indent + 1)}${text.join('')}`, 'label']]]
  const corner = unicode ? '└' : '+'
  if (rows > 1) lines.unshift([[`${' '.repeat(indent)}${corner}${line.join('')}`, 'border']])
  return lines
}
