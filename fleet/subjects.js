// Which channels a connection is on: a template with the connection's number in it, the same in every process of the fleet.
//
//   s{1..1200000}       connection i: A + i mod (B - A + 1)
//   r{random 1..100}    one of the range, drawn from a hash of i: the same after each reconnect
//   own:{own}           i + 1
//   g:{group 10}        floor(i / 10) + 1
//   news                all are on it

/** A template that cannot be read; the message is one line. */
export class SubjectError extends Error {}

const TEMPLATE = /^([^{}]*)(?:\{(?:(random +)?(\d+)\.\.(\d+)|(own)|group +(\d+))\}([^{}]*))?$/

/**
 * @param {string} name
 * @returns {number} uint32, FNV-1a of its UTF-16 units: the `c` of a payload
 */
export function channelNumber(name) {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * The finalizer of MurmurHash3: every bit of the number changes half of the bits of the result.
 * @param {number} number
 * @returns {number} 0 to below 1
 */
function scatter(number) {
  let hash = Math.imul(number ^ (number >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** A parsed template. Connections and channels are counted from 0. */
export class Subject {
  #before
  #after
  #random
  #seed
  /** Number of the first channel; null: names have no number. */
  #first
  /** Connections after which the next channel comes. */
  #step
  /** Channels, until the first one comes again; Infinity: as many as the connections need. */
  #size
  /** @type {Uint32Array | undefined} subscribers of each channel, of a random template, for `#drawnFor` connections */
  #drawn
  #drawnFor = -1

  /**
   * @param {string} template
   * @param {RegExpExecArray} match of TEMPLATE
   */
  constructor(template, match) {
    const [, before, random, from, to, own, group, after = ''] = match
    this.#before = before
    this.#after = after
    this.#random = random !== undefined
    this.#seed = channelNumber(template)
    this.#first = from ? Number(from) : own || group ? 1 : null
    this.#step = Number(group ?? 1)
    this.#size = from ? Number(to) - Number(from) + 1 : own || group ? Infinity : 1
    if (this.#step < 1 || this.#size < 1 || (this.#size > 1e9 && from))
      throw new SubjectError(`"${template}": the range is empty or too long`)
  }

  /** Channels that the template itself names, however many connections there are; 0: that depends on them. */
  get span() {
    return this.#size === Infinity ? 0 : this.#size
  }

  /**
   * @param {number} connection
   * @returns {number} index of its channel
   */
  #indexAt(connection) {
    return this.#random
      ? Math.floor(scatter(connection ^ this.#seed) * this.#size)
      : Math.floor(connection / this.#step) % this.#size
  }

  /**
   * @param {number} connection
   * @returns {number} the number in the name of its channel; 0 where there is none
   */
  numberAt(connection) {
    return (this.#first ?? 0) + this.#indexAt(connection)
  }

  /**
   * @param {number} connection
   * @returns {string} name of its channel
   */
  at(connection) {
    return this.nameOf(this.#indexAt(connection))
  }

  /**
   * @param {number} index of a channel
   * @returns {string}
   */
  nameOf(index) {
    return this.#before + (this.#first === null ? '' : this.#first + index) + this.#after
  }

  /**
   * @param {string} name of a channel
   * @returns {number} its index; -1: the template does not name it
   */
  indexOf(name) {
    const number = Number(name.slice(this.#before.length, name.length - this.#after.length))
    const index = number - (this.#first ?? 0)
    return index >= 0 && index < this.#size && this.nameOf(index) === name ? index : -1
  }

  /**
   * @param {number} total connections
   * @returns {number} different channels that they may be on
   */
  count(total) {
    return this.#random ? this.#size : Math.min(this.#size, Math.ceil(total / this.#step))
  }

  /**
   * @param {number} index of a channel
   * @param {number} total connections
   * @returns {number} how many of them are on it
   */
  subscribers(index, total) {
    if (index >= this.count(total)) return 0
    if (!this.#random)
      return this.#size === Infinity
        ? Math.min(this.#step, total - index * this.#step)
        : Math.ceil((total - index) / this.#size)
    if (this.#drawn === undefined || this.#drawnFor !== total) {
      this.#drawn = new Uint32Array(this.#size)
      this.#drawnFor = total
      for (let i = 0; i < total; i++) this.#drawn[this.#indexAt(i)]++
    }
    return this.#drawn[index]
  }
}

/**
 * @param {string} template
 * @returns {Subject}
 * @throws {SubjectError} with one line
 */
export function parseSubject(template) {
  const match = template === '' ? null : TEMPLATE.exec(template)
  if (match === null)
    throw new SubjectError(
      `"${template}" is no channel like news, s{1..1000}, r{random 1..100}, own:{own}, g:{group 10}`,
    )
  return new Subject(template, match)
}
