import { LOWER_BLOCKS } from '../../dashboard/chart/bars.js'
import { pad, visibleWidth } from '../../dashboard/terminal/line.js'
import { ms, tick } from '../../src/base/format.js'
import { waitOf } from '../../src/metrics/tick-histogram.js'

/**
 * @typedef {import('../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../schema.js').DistributionWire} DistributionWire
 */

/** Least latency on the axis, ms. */
const FINEST = 0.001
/** Columns of a mark of the axis. */
const MARK = 7

/**
 * @param {DistributionWire} wire
 * @param {number} count of bars
 * @returns {{low: number, high: number, bars: number[]}} counts in buckets of equal width on a logarithmic scale from
 *   low to high, ms
 */
export function logBuckets({ min, max, buckets }, count) {
  // At least a decade: else noise looks like peaks.
  const low = Math.max(FINEST, min)
  const high = Math.max(max, low * 10)
  const bars = Array(count).fill(0)
  const scale = count / Math.log(high / low)
  for (let i = 0; i < buckets.length; i += 2) {
    const ms = Math.min(high, Math.max(low, waitOf(buckets[i])))
    bars[Math.min(count - 1, Math.floor(Math.log(ms / low) * scale))] += buckets[i + 1]
  }
  return { low, high, bars }
}

/**
 * Bars of a distribution over a logarithmic axis. A non-empty bar is always visible.
 * @param {DistributionWire} wire
 * @param {number} width columns
 * @param {number} height rows, the axis and its marks included
 * @param {boolean} unicode
 * @param {{label: string, at: number}[]} marks on the axis, ms
 * @returns {Line[]}
 */
export function histogram(wire, width, height, unicode, marks) {
  const inner = Math.max(1, width - 2)
  const rows = Math.max(1, height - 2)
  const { low, high, bars } = logBuckets(wire, inner)
  const most = Math.max(...bars, 1)
  const place = (/** @type {number} */ ms) =>
    Math.min(inner - 1, Math.max(0, Math.floor((Math.log(ms / low) / Math.log(high / low)) * inner)))
  const steps = unicode ? 8 : 1
  const heights = bars.map(bar => (bar === 0 ? 0 : Math.max(1, Math.round((bar / most) * rows * steps))))
  /** @type {Line[]} */
  const lines = []
  for (let row = 0; row < rows; row++) {
    const below = (rows - 1 - row) * steps
    const text = heights
      .map(bar => {
        const level = Math.min(steps, Math.max(0, bar - below))
        return unicode ? LOWER_BLOCKS[level] : level > 0 ? '#' : ' '
      })
      .join('')
    lines.push([
      [' ', ''],
      [text, 'series1'],
    ])
  }
  return [...lines, ...axis(low, high, inner, place, unicode, marks)]
    .slice(0, height)
    .map(line => pad(line, width))
}

/**
 * @param {number} low ms
 * @param {number} high ms
 * @param {number} width @param {(ms: number) => number} place @param {boolean} unicode
 * @param {{label: string, at: number}[]} marks
 * @returns {Line[]} the line below the bars with the marks in it, and the values of 1, 2, 5 or of decades
 */
function axis(low, high, width, place, unicode, marks) {
  const line = Array(width).fill(unicode ? '─' : '-')
  const text = Array(width).fill(' ')
  const perDecade = width / Math.log10(high / low)
  const factors = perDecade >= MARK * 4 ? [1, 2, 5] : [1]
  for (let decade = Math.floor(Math.log10(low)); 10 ** decade <= high; decade++) {
    for (const factor of factors) {
      const value = factor * 10 ** decade
      if (value < low || value > high) continue
      const at = place(value)
      line[at] = unicode ? '┴' : '+'
      write(text, at, valueText(value))
    }
  }
  for (const { label, at } of marks) write(line, place(at), `${unicode ? '▲' : '^'}${label}`, true)
  return [
    [
      [' ', ''],
      [line.join(''), 'border'],
    ],
    [
      [' ', ''],
      [text.join(''), 'label'],
    ],
  ]
}

/** @param {number} value ms */
const valueText = value => (value >= 1000 ? `${value / 1000} s` : tick(value))

/**
 * @param {string[]} cells @param {number} at @param {string} text
 * @param {boolean} [pointed] its first character is at the place; else its middle
 */
function write(cells, at, text, pointed = false) {
  const size = visibleWidth(text)
  const start = Math.max(0, Math.min(cells.length - size, pointed ? at : at - Math.floor(size / 2)))
  const taken = cells.slice(Math.max(0, start - 1), start + size + 1)
  const isFree = pointed ? !taken.some(cell => /[\w.▲^]/.test(cell)) : taken.every(cell => cell === ' ')
  if (!isFree || size > cells.length) return
  for (let i = 0; i < size; i++) cells[start + i] = text[i]
}
