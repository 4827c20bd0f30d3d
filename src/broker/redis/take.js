/**
 * @template T
 * @param {Iterator<T>} from
 * @param {number} count at most
 * @returns {T[]} the next ones: fewer than that when these are the last
 */
export function take(from, count) {
  const taken = []
  while (taken.length < count) {
    const { done, value } = from.next()
    if (done) break
    taken.push(value)
  }
  return taken
}
