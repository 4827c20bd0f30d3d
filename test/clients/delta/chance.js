/** Random numbers that are the same in every run. @param {number} seed */
export function chance(seed) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    /** @param {number} limit */
    below: limit => Math.floor(next() * limit),
    /** @param {number} probability */
    hit: probability => next() < probability,
    /**
     * @template T
     * @param {readonly T[]} list
     * @returns {T}
     */
    pick: list => list[Math.floor(next() * list.length)],
  }
}
