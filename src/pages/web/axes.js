// Ranges and ticks of axes.

import { elapsed as elapsedTime, formatTick } from '../../base/format.js'

/** @import { Unit } from '../../base/format.js' */

/** @typedef {[number, number]} Range */

/** Steps of elapsed time, s. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
const DECIMAL = [1, 2, 2.5, 5]
const BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

/** @param {Unit} unit */
const isBinary = unit => unit.startsWith('bytes')

/** Round steps. @param {Unit} unit @returns {number[]} */
function stepsOf(unit) {
  const steps = []
  if (isBinary(unit)) {
    for (let power = 0; power < 6; power++) steps.push(...BINARY.map(step => step * 1024 ** power))
  } else {
    const min = unit.startsWith('count') ? 0 : -2
    for (let power = min; power < 13; power++) {
      for (const step of DECIMAL) if (power > 0 || step !== 2.5) steps.push(step * 10 ** power)
    }
  }
  return steps
}

/**
 * @param {number} max @param {Unit} unit @param {number} [marks] approximate count
 * @returns {Range} from 0 to the next round step
 */
export function linearRange(max, unit, marks = 5) {
  if (!(max > 0)) return [0, 1]
  const steps = stepsOf(unit)
  const step = steps.find(size => size * marks >= max * 1.02) ?? max
  return [0, Math.ceil((max * 1.02) / step) * step]
}

/** @param {number} max @returns {Range} whole powers of ten, from a tenth of a ms */
export function logarithmicRange(max) {
  const top = max > 0 && Number.isFinite(max) ? Math.ceil(Math.log10(max * 1.02)) : 2
  return [0.1, 10 ** Math.max(2, top)]
}

/** @param {(name: string) => string} color @param {string} font */
const commonAxis = (color, font) => ({
  stroke: () => color('soft'),
  font,
  grid: { stroke: () => color('grid'), width: 1 },
  ticks: { show: false },
  gap: 8,
})

/** An axis of uPlot. @param {{color: (name: string) => string, font: string, elapsed: boolean}} style @returns {any} */
export function timeAxis({ color, font, elapsed }) {
  const axis = {
    ...commonAxis(color, font),
    grid: { show: false },
    border: { show: true, stroke: () => color('line'), width: 1 },
    ticks: { show: true, stroke: () => color('line'), width: 1, size: 4 },
    gap: 4,
    size: 28,
    space: 64,
  }
  if (!elapsed) {
    // A live page shows minutes: 24-hour clock, no date.
    const values = [
      [60, '{HH}:{mm}', null, null, null, null, null, null, 1],
      [1, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1],
    ]
    return { ...axis, values }
  }
  return {
    ...axis,
    incrs: TIME_STEPS,
    values: (/** @type {any} */ _, /** @type {number[]} */ marks) => marks.map(elapsedTime),
  }
}

/**
 * An axis of uPlot.
 * @param {object} style @param {(name: string) => string} style.color @param {string} style.font
 * @param {Unit} style.unit @param {boolean} style.right @param {boolean} style.logarithmic @returns {any}
 */
export function valueAxis({ color, font, unit, right, logarithmic }) {
  const axis = {
    ...commonAxis(color, font),
    scale: right ? 'right' : 'left',
    side: right ? 1 : 3,
    size: right ? 54 : 64,
    space: 30,
    // Grid on the left only.
    grid: right ? { show: false } : { stroke: () => color('grid'), width: 1 },
    values: (/** @type {any} */ _, /** @type {(number | null)[]} */ marks) =>
      marks.map(mark => (mark === null ? '' : formatTick(mark, unit))),
  }
  if (!logarithmic) return { ...axis, incrs: stepsOf(unit) }
  const whole = (/** @type {any} */ _, /** @type {number[]} */ marks) =>
    marks.map(mark => (Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-9 ? mark : null))
  return { ...axis, filter: whole, grid: { ...axis.grid, filter: whole } }
}
