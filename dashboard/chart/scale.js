/**
 * @typedef {object} Scale
 * @property {number[]} ticks values with a label, from the bottom to the top
 * @property {(value: number) => number} place 0 at the bottom to 1 at the top; values outside are clamped
 */

/**
 * @param {object} about @param {number | undefined} about.min fixed end of the axis
 * @param {number | undefined} about.max @param {number} about.low smallest value
 * @param {number} about.high @param {number} about.rows
 * @param {boolean} about.binary units of 1,024 instead of 1,000
 * @param {boolean} about.whole the values are integers
 * @returns {Scale}
 */
export function linearScale({ min, max, low, high, rows, binary, whole }) {
  const bottom = min ?? Math.min(0, low)
  // At most one label per two rows, and as little space above the highest value as possible.
  const parts = Math.max(1, Math.floor((rows - 1) / 2))
  const step = Math.max(niceStep(((max ?? high) - bottom) / parts, binary), whole ? 1 : 0)
  const first = Math.floor(bottom / step) * step
  const start = min ?? (max === undefined ? first : bottom)
  const end = max ?? Math.max(first + step, Math.ceil(high / step - 1e-9) * step)
  const ticks = []
  for (let i = Math.ceil(start / step - 1e-9); i * step <= end + step * 1e-9; i++) ticks.push(i * step)
  const range = end - start || 1
  return { ticks, place: value => clamp((value - start) / range) }
}

/**
 * @param {object} about @param {number | undefined} about.min fixed end of the axis, above 0
 * @param {number | undefined} about.max @param {number} about.low smallest value above 0
 * @param {number} about.high @param {number} about.rows @returns {Scale} 0 and less is at the bottom
 */
export function logScale({ min, max, low, high, rows }) {
  const start = min ?? 10 ** Math.floor(Math.log10(low))
  // At least one decade: else noise looks like peaks.
  const end = Math.max(max ?? niceAbove(high), start * 10)
  const decades = Math.log10(end / start)
  const rowsOfDecade = rows / decades
  // 1, 2 and 5 of each decade; or only 1; or only 1 of some decades.
  const factors = rowsOfDecade >= 5 ? [1, 2, 5] : [1]
  const every = Math.max(1, Math.ceil(1.5 / rowsOfDecade))
  const ticks = []
  const first = Math.floor(Math.log10(start) + 1e-9)
  for (let decade = first; 10 ** decade <= end * (1 + 1e-9); decade += every) {
    for (const factor of factors) {
      const tick = factor * 10 ** decade
      if (tick >= start * (1 - 1e-9) && tick <= end * (1 + 1e-9)) ticks.push(tick)
    }
  }
  const range = Math.log(end / start)
  return { ticks, place: value => (value <= start ? 0 : clamp(Math.log(value / start) / range)) }
}

/**
 * @param {number} about @param {boolean} binary
 * @returns {number} 1, 2 or 5 times a power of ten, at least `about`; binary: a power of two, so that a label is 1
 *   GB, not 0.98
 */
function niceStep(about, binary) {
  if (!(about > 0)) return 1
  if (binary) return Math.max(1, 2 ** Math.ceil(Math.log2(about) - 1e-9))
  const power = 10 ** Math.floor(Math.log10(about) + 1e-9)
  const factor = [1, 2, 5, 10].find(factor => factor * power >= about * (1 - 1e-9)) ?? 10
  return factor * power
}

/** @param {number} value above 0 @returns {number} 1, 2 or 5 times a power of ten, at least `value` */
function niceAbove(value) {
  return niceStep(value, false)
}

/** @param {number} share */
function clamp(share) {
  return Math.min(1, Math.max(0, share))
}

const AGES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400]
const MARK = 9

/**
 * @param {number} span seconds from the left to the right edge
 * @param {number} columns @returns {{column: number, text: string}[]} from right to left
 */
export function ageMarks(span, columns) {
  const step = AGES.find(age => (age / span) * (columns - 1) >= MARK) ?? span
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
