import { appended } from '../../channels/broker/values.js'

/** @import { Keyed, Publication } from '../../channels/broker/contract.js' */

/**
 * Replaces appended parts by whole values, for clients that do not join parts. Of parts in a row only the last one
 * remains.
 * @param {Publication[]} publications changes of a map, ascending
 * @param {ReadonlyMap<string, Publication>} entries read after the first of the publications, by key
 * @returns {{publications: Publication[], missing: string[]}} `missing`: keys whose entries are needed
 */
export function joinParts(publications, entries) {
  /** Index in `joined` of the last value of a key. @type {Map<string, number>} */
  const last = new Map()
  /** @type {Set<string>} */
  const missing = new Set()
  /** @type {(Publication | null)[]} */
  const joined = []
  const put = (/** @type {string} */ key, /** @type {Publication} */ publication) =>
    void last.set(key, joined.push(publication) - 1)
  for (const publication of publications) {
    const keyed = /** @type {Keyed} */ (publication.keyed)
    const { key } = keyed
    if (!keyed.append) {
      missing.delete(key)
      put(key, publication)
      continue
    }
    const at = last.get(key)
    const entry = entries.get(key)
    const before = at === undefined ? entry : joined[at]
    // The entry may include this part and later ones.
    const whole = entry !== undefined && entry.offset >= publication.offset ? entry : null
    if (!whole && !before) {
      missing.add(key)
      continue
    }
    if (at !== undefined && joined[at]?.keyed?.removed === false) joined[at] = null
    const data = whole?.data ?? valueWith(/** @type {Publication} */ (before), publication.data)
    put(key, { ...publication, data, keyed: { ...keyed, append: false } })
  }
  return { publications: joined.filter(publication => publication !== null), missing: [...missing] }
}

/** @param {Publication} before @param {Buffer} part */
const valueWith = ({ data, json, keyed }, part) => (keyed?.removed ? part : appended(data, part, json))
