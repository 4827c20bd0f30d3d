/**
 * @typedef {object} Column the values in the time of one column of the picture
 * @property {number} first
 * @property {number} last
 * @property {number} low
 * @property {number} high
 * @property {number} mean
 * @property {boolean} joined to the previous column with values: no unknown value between them
 */

/**
 * Values over time -> columns of a picture, the newest at the right. With `last`, a value shares its column with
 * the same neighbours as long as it is shown: peaks do not flicker while the picture moves to the left.
 * @param {(number | null)[]} values @param {number} count columns
 * @param {number} each values per column; below 1 some columns are empty
 * @param {number} last number of the newest value
 * @returns {(Column | null)[]}
 */
export function resample(values, count, each, last) {
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
export function means(columns) {
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
