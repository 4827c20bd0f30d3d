import { tick } from '../src/base/format.js'
import { clamp, LOWER_BLOCKS, pattern } from './chart/bars.js'
import { Canvas } from './chart/canvas.js'
import { pad, visibleWidth } from './terminal/line.js'

/** @import { Line, Style } from './terminal/line.js' */

export { bar, sparkline, stackedBar } from './chart/bars.js'

/** @typedef {{values: (number | null)[], style: Style, label?: string}} Series one value per second; null: unknown */
/** @typedef {{first: number, last: number, low: number, high: number, mean: number, joined: boolean}} Column */
/** @typedef {{ticks: number[], place: (value: number) => number}} Scale place: 0 at the bottom to 1 at the top */

/**
 * @typedef {object} ChartOptions
 * @property {Series[]} series drawn in order; stacked: the first at the bottom
 * @property {number} width columns, including the labels
 * @property {number} height rows, including axis, labels and legend
 * @property {'linear' | 'log'} [scale]
 * @property {boolean} [stacked]
 * @property {boolean} [unicode] braille dots and blocks; else ASCII
 * @property {(value: number) => string} [format] text of an axis label
 * @property {boolean} [binary] labels at multiples of 1024 instead of 1000
 * @property {number} [span] seconds from the left to the right edge; default: the number of values
 * @property {number} [last] number of the newest value: values keep their dots while the chart scrolls
 * @property {number} [labelWidth] minimum columns of the labels: aligns charts below each other
 * @property {boolean} [legend] a row of labels above; default: if there are any
 * @property {boolean} [colors] false: stacked areas differ by their pattern
 */

const MARKS = '*+ox#%'
/** Minimum filled eighths for an area to be assigned a cell. */
const MIN_PART = 2
const MIN_WIDTH = 4
/** Minimum rows of a chart with a line above its time labels. */
const HEIGHT_WITH_TIME_LINE = 9

/** Values over time, the newest at the right. @param {ChartOptions} options */
export function chart(options) {
  const { series, width, height, unicode = true, format = tick, labelWidth = 0 } = options
  const length = Math.max(1, ...series.map(({ values }) => values.length))
  const span = options.span ?? length
  const withLegend = (options.legend ?? series.some(({ label }) => label !== undefined)) && height > 3
  const axisRows = height >= HEIGHT_WITH_TIME_LINE ? 2 : height > 3 ? 1 : 0
  const rows = Math.max(1, height - axisRows - (withLegend ? 1 : 0))

  /** @param {number} columns of cells or dots @returns {(Column | null)[][]} by series */
  const columnsOf = columns => {
    const last = options.last ?? length - 1
    return series.map(({ values }) => resample(values, columns, span / columns, last))
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

/** @param {Series[]} series @param {{unicode?: boolean, stacked?: boolean, colors?: boolean}} options */
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
function scaleOf({ series, scale, stacked, binary = false }, rows) {
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
      // The series end at the same time but may start at different times.
      const value = values[values.length - length + i] ?? Number.NaN
      if (Number.isNaN(value)) continue
      if (stacked) sum += value
      else include(value)
    }
    if (stacked) include(sum)
  }
  if (high < low) high = low = scale === 'log' ? 1 : 0
  return scale === 'log' ? logScale(low, high, rows) : linearScale(low, high, rows, binary, whole)
}

/**
 * @param {number} low smallest value @param {number} high @param {number} rows
 * @param {boolean} binary units of 1,024 @param {boolean} whole the values are integers @returns {Scale}
 */
function linearScale(low, high, rows, binary, whole) {
  const bottom = Math.min(0, low)
  // At most one label per two rows, and as little space above the highest value as possible.
  const parts = Math.max(1, Math.floor((rows - 1) / 2))
  const step = Math.max(niceStep((high - bottom) / parts, binary), whole ? 1 : 0)
  const start = Math.floor(bottom / step) * step
  const end = Math.max(start + step, Math.ceil(high / step - 1e-9) * step)
  const ticks = []
  for (let i = Math.ceil(start / step - 1e-9); i * step <= end + step * 1e-9; i++) ticks.push(i * step)
  return { ticks, place: value => clamp((value - start) / (end - start)) }
}

/** @param {number} low smallest value above 0 @param {number} high @param {number} rows @returns {Scale} */
function logScale(low, high, rows) {
  const first = Math.floor(Math.log10(low))
  const start = 10 ** first
  // At least one decade, or noise looks like peaks.
  const end = Math.max(niceStep(high, false), start * 10)
  const rowsOfDecade = rows / Math.log10(end / start)
  // 1, 2 and 5 of each decade; or only 1; or only 1 of some decades.
  const factors = rowsOfDecade >= 5 ? [1, 2, 5] : [1]
  const every = Math.max(1, Math.ceil(1.5 / rowsOfDecade))
  const ticks = []
  for (let decade = first; 10 ** decade <= end * (1 + 1e-9); decade += every)
    for (const factor of factors) {
      const tick = factor * 10 ** decade
      if (tick <= end * (1 + 1e-9)) ticks.push(tick)
    }
  const range = Math.log(end / start)
  return { ticks, place: value => (value <= start ? 0 : clamp(Math.log(value / start) / range)) }
}

/**
 * 1, 2 or 5 times a power of ten; binary: a power of two, for labels of 1 GB, not 0.98.
 * @param {number} about @param {boolean} binary
 */
function niceStep(about, binary) {
  if (!(about > 0)) return 1
  if (binary) return Math.max(1, 2 ** Math.ceil(Math.log2(about) - 1e-9))
  const power = 10 ** Math.floor(Math.log10(about) + 1e-9)
  const factor = [1, 2, 5].find(factor => factor * power >= about * (1 - 1e-9)) ?? 10
  return factor * power
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

/** @param {Canvas} canvas @param {Series[]} series @param {(Column | null)[][]} columns @param {Scale} scale */
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
 * Assigns the cells of a column to areas. A cell has the colour of the area that fills most of it. An area without a
 * cell takes the cell that it fills most, unless that is its owner's only cell.
 * @param {number[]} tops of each area, eighths of a row from the bottom
 * @param {number} rows @returns {number[]} area of each row, from the top
 */
function ownersOf(tops, rows) {
  const owners = Array(rows).fill(0)
  const cells = tops.map(() => 0)
  const best = tops.map(() => ({ part: 0, row: 0 }))
  for (let row = 0; row < rows; row++) {
    const bottom = (rows - 1 - row) * 8
    let max = 0
    let from = bottom
    for (let index = 0; index < tops.length; index++) {
      const part = Math.min(bottom + 8, tops[index]) - from
      from = Math.max(from, Math.min(bottom + 8, tops[index]))
      if (part > best[index].part) best[index] = { part, row }
      if (part <= max) continue
      max = part
      owners[row] = index
    }
    if (max > 0) cells[owners[row]]++
  }
  best.forEach(({ part, row }, index) => {
    if (cells[index] > 0 || part < MIN_PART || cells[owners[row]] < 2) return
    cells[owners[row]]--
    owners[row] = index
  })
  return owners
}

/**
 * Columns of a picture. With `last`, a value always has the same neighbours in its column: peaks do not flicker.
 * @param {(number | null)[]} values @param {number} count columns @param {number} each values per column
 * @param {number} last number of the newest value
 */
function resample(values, count, each, last) {
  /** @type {(Column | null)[]} */
  const columns = Array(count).fill(null)
  const right = Math.floor(last / each)
  const weights = Array(count).fill(0)
  let joined = false
  for (let i = 0; i < values.length; i++) {
    const at = count - 1 - right + Math.floor((last - values.length + 1 + i) / each)
    if (at < 0) continue
    const value = values[i]
    if (value === null || value === undefined || Number.isNaN(value)) {
      joined = false
      continue
    }
    const column = columns[at]
    if (column === null) {
      columns[at] = { first: value, last: value, low: value, high: value, mean: value, joined }
      weights[at] = 1
    } else {
      column.last = value
      column.low = Math.min(column.low, value)
      column.high = Math.max(column.high, value)
      column.mean += (value - column.mean) / ++weights[at]
    }
    joined = true
  }
  return columns
}

/** @param {(Column | null)[]} columns @returns {(number | null)[]} means, interpolated between joined columns */
function means(columns) {
  /** @type {(number | null)[]} */
  const filled = columns.map(column => column?.mean ?? null)
  let before = -1
  columns.forEach((column, at) => {
    if (column === null) return
    for (let i = before + 1; column.joined && before >= 0 && i < at; i++) {
      const from = /** @type {number} */ (filled[before])
      filled[i] = from + ((column.mean - from) * (i - before)) / (at - before)
    }
    before = at
  })
  return filled
}

/**
 * @param {number} span seconds @param {number} columns @param {number} indent columns before the axis
 * @param {number} rows 2: a line above the labels @param {boolean} unicode
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
    // Omit labels that would touch another one, or are longer than the axis.
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

const AGES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400]
const AGE_GAP = 9

/** @param {number} span seconds @param {number} columns */
function ageMarks(span, columns) {
  const step = AGES.find(age => (age / span) * (columns - 1) >= AGE_GAP) ?? span
  const marks = []
  for (let age = 0; age <= span * (1 + 1e-9); age += step) {
    const column = columns - 1 - Math.round((age / span) * (columns - 1))
    marks.push({ column, text: age === 0 ? 'now' : ageText(age, step) })
  }
  if (marks.length > 1) marks[marks.length - 1].text += ' ago'
  return marks
}

/** @param {number} age seconds @param {number} step */
function ageText(age, step) {
  if (age % 3600 === 0) return `${age / 3600}h`
  if (step % 60 === 0) return `${age / 60}m`
  if (age < 60) return `${Math.round(age)}s`
  const seconds = Math.round(age % 60)
  return seconds === 0 ? `${age / 60}m` : `${Math.floor(age / 60)}m${seconds}s`
}
