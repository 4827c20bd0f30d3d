// What is known of a connection beside its user: for the server API (`connections`, `label_filter`), hooks and proxies.

/** @import { Labels } from '../hooks/labels.js' */

/** Maximum characters of `name` and `version`, which clients choose. */
const MAX_TEXT = 128
/** Maximum shared objects. */
const MAX_SHARED = 256

/** Immutable: connections of the same program share one object. */
export class ConnectionDetails {
  /**
   * @param {string} name of the client's library or program @param {string} version
   * @param {string} meta JSON text @param {Labels | null} labels
   */
  constructor(name, version, meta, labels) {
    this.name = name
    this.version = version
    this.meta = meta
    this.labels = labels
  }
}

/** @param {string} text @returns {string} a flat copy: a substring retains the whole text */
const short = text => (text.length > MAX_TEXT ? Buffer.from(text.slice(0, MAX_TEXT)).toString() : text)

/** The details of all connections of a worker. */
export class DetailsSets {
  /** @type {Map<string, ConnectionDetails>} */
  #shared = new Map()

  /**
   * @param {string} [name] @param {string} [version] @param {string} [meta] @param {Labels | null} [labels]
   * @returns {ConnectionDetails | null} null: none of them
   */
  of(name = '', version = '', meta = '', labels = null) {
    if (name === '' && version === '' && meta === '' && labels === null) return null
    const shortName = short(name)
    const shortVersion = short(version)
    if (meta !== '' || labels !== null) return new ConnectionDetails(shortName, shortVersion, meta, labels)
    const key = `${shortName}\n${shortVersion}`
    const known = this.#shared.get(key)
    if (known !== undefined) return known
    const made = new ConnectionDetails(shortName, shortVersion, '', null)
    if (this.#shared.size < MAX_SHARED) this.#shared.set(key, made)
    return made
  }
}
