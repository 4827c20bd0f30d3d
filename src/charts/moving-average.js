/**
 * The mean of what is around each value. At the ends the window is cut, so nothing is shifted.
 * @param {ArrayLike<number | null>} values null, NaN: not known
 * @param {number} width values in a window
 * @returns {(number | null)[]}
 */
export function movingAverage(values, width) {
  const half = Math.max(0, Math.floor((width - 1) / 2))
  const { length } = values
  // Sums up to each value: a window is the difference of two.
  const sums = new Float64Array(length + 1)
  const counts = new Uint32Array(length + 1)
  for (let at = 0; at < length; at++) {
    const value = values[at]
    const known = value !== null && !Number.isNaN(value)
    sums[at + 1] = sums[at] + (known ? value : 0)
    counts[at + 1] = counts[at] + (known ? 1 : 0)
  }
  return Array.from({ length }, (_, at) => {
    const from = Math.max(0, at - half)
    const to = Math.min(length, at + half + 1)
    const known = counts[to] - counts[from]
    return known === 0 ? null : (sums[to] - sums[from]) / known
  })
}
