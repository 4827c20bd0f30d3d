/**
 * @typedef {import('./terminal/line.js').Line} Line
 * @typedef {import('./terminal/line.js').Style} Style
 *
 * @typedef {object} Series
 * @property {(number | null)[]} values evenly spaced in time, the newest last; null: not known
 * @property {Style} style
 * @property {string} [label] for the legend
 */

/**
 * A picture of values over time, the newest at the right.
 *
 * @param {object} options
 * @param {Series[]} options.series later ones are drawn over earlier ones; stacked: the first one is at the bottom
 * @param {number} options.width columns, with the labels
 * @param {number} options.height rows, with the axis, its labels and the legend
 * @param {'linear' | 'log'} [options.scale]
 * @param {number} [options.min] of the axis; without it 0, or the decade of the smallest value
 * @param {number} [options.max] of the axis; without it what the values need
 * @param {boolean} [options.stacked] areas on top of each other
 * @param {boolean} [options.unicode] braille dots and blocks; else ASCII
 * @param {(value: number) => string} [options.format] of the labels at the left
 * @param {number} [options.span] seconds from the left edge to the right one; without it as many as there are values
 * @param {number} [options.step] seconds between two values
 * @param {number} [options.last] number of the newest value, counted without end (a snapshot's seq): with it the picture moves as a
 *   whole, dot by dot; without it a picture that has more values than dots may waver
 * @param {number} [options.labelWidth] at least so many columns for the labels, so that charts below each other line up
 * @param {boolean} [options.legend] a row with the labels of the series, above; by default when there are some
 * @param {boolean} [options.colors] false: stacked areas differ by their pattern
 * @returns {Line[]} `height` lines of `width` columns
 */
export function chart({ width, height }) {
  return Array.from({ length: height }, () => [[' '.repeat(width), '']])
}

/**
 * @param {(number | null)[]} values
 * @param {number} width columns: the last so many values, at the right
 * @param {boolean} unicode
 * @param {{min?: number, max?: number}} [range] without it from 0 to the largest
 * @returns {string}
 */
// biome-ignore lint/correctness/noUnusedFunctionParameters: not there yet
export function sparkline(values, width, unicode, range) {
  return ' '.repeat(width)
}

/**
 * @param {number} share 0 to 1
 * @param {number} width columns
 * @param {boolean} unicode
 * @param {Style} style
 * @returns {Line}
 */
// biome-ignore lint/correctness/noUnusedFunctionParameters: not there yet
export function bar(share, width, unicode, style) {
  return [[' '.repeat(width), '']]
}

/**
 * @param {{share: number, style: Style}[]} parts shares of the whole width; what is left is free
 * @param {number} width columns
 * @param {boolean} unicode
 * @returns {Line}
 */
// biome-ignore lint/correctness/noUnusedFunctionParameters: not there yet
export function stackedBar(parts, width, unicode) {
  return [[' '.repeat(width), '']]
}
