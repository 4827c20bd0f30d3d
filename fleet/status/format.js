import { ms, UNKNOWN } from '../../dashboard/format.js'

/** @param {number | null | undefined} value ms @returns {string} 0.12, 12.3, 1234, 12.3s: at most 5 characters */
export function fine(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return UNKNOWN
  return value < 9.995 ? value.toFixed(2) : ms(value)
}

/**
 * @param {import('../schema.js').Clock} clock
 * @returns {string} `+0.31±0.12`; `-` where the target does not tell its time
 */
export function clockText({ offset, error, against }) {
  if (against === 'none') return UNKNOWN
  return `${offset < 0 ? '-' : '+'}${fine(Math.abs(offset))}±${fine(error)}`
}
