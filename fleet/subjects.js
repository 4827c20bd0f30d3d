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
  /** @type {'one' | 'range' | 'random' | 'group'} */
  #kind
  /** Number of the first channel. */
  #first
  /** Channels of a range; connections of a group. */
  #size
  #seed
  /** @type {Uint32Array | undefined} subscribers of each channel, of a random template, for `#drawnFor` connections */
  #drawn
  #drawnFor = -1

  /**
   * @param {string} template
   * @param {RegExpExecArray} match of TEMPLATE
   */
  constructor(template, match) {
    const [, before, random, from, to, own, group, after] = match
    this.template = template
    this.#before = before
    this.#after = after ?? ''
    this.#seed = channelNumber(template)
    this.#kind = after === undefined ? 'one' : from === undefined ? 'group' : random ? 'random' : 'range'
    this.#first = after === undefined ? 0 : from === undefined ? 1 : Number(from)
    this.#size = from === undefined ? Number(own ? 1 : (group ?? 1)) : Number(to) - this.#first + 1
    if (!(this.#size >= 1 && this.#size <= 1e9))
      throw new SubjectError(`"${template}": the range is empty or too long`)
  }

  /** Channels that the template itself names, however many connections there are; 0: that depends on them. */
  get span() {
    return this.#kind === 'one' ? 1 : this.#kind === 'group' ? 0 : this.#size
  }

  /**
   * @param {number} connection
   * @returns {number} index of its channel
   */
  #indexAt(connection) {
    if (this.#kind === 'range') return connection % this.#size
    if (this.#kind === 'random') return Math.floor(scatter(connection ^ this.#seed) * this.#size)
    return this.#kind === 'one' ? 0 : Math.floor(connection / this.#size)
  }

  /**
   * @param {number} connection
   * @returns {number} the number in the name of its channel; 0 where there is none
   */
  numberAt(connection) {
    return this.#first + this.#indexAt(connection)
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
    return this.#before + (this.#kind === 'one' ? '' : this.#first + index) + this.#after
  }

  /**
   * @param {string} name of a channel
   * @returns {number} its index; -1: the template does not name it
   */
  indexOf(name) {
    const number = Number(name.slice(this.#before.length, name.length - this.#after.length))
    const index = number - this.#first
    return index >= 0 && !(this.span > 0 && index >= this.span) && this.nameOf(index) === name ? index : -1
  }

  /**
   * @param {number} total connections
   * @returns {number} different channels that they may be on
   */
  count(total) {
    if (this.#kind === 'range') return Math.min(this.#size, total)
    return this.span || Math.ceil(total / this.#size)
  }

  /**
   * @param {number} index of a channel
   * @param {number} total connections
   * @returns {number} how many of them are on it
   */
  subscribers(index, total) {
    if (index >= this.count(total)) return 0
    if (this.#kind === 'one') return total
    if (this.#kind === 'range') return Math.ceil((total - index) / this.#size)
    if (this.#kind === 'group') return Math.min(this.#size, total - index * this.#size)
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
      `"${template}" is no channel like news, s{1..1000}, r{random 1..100}, own:{own} or g:{group 10}`,
    )
  return new Subject(template, match)
}
