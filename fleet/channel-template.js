// The channels of a connection: a template with the connection's number in it, the same in every process of the fleet.
//
//   s{1..1200000}       connection i: A + i mod (B - A + 1)
//   r{random 1..100}    one of the range, by a hash of i: the same after each reconnect
//   own:{own}           i + 1
//   g:{group 10}        floor(i / 10) + 1
//   news                one channel for all

const TEMPLATE = /^([^{}]*)(?:\{(?:(random +)?(\d+)\.\.(\d+)|(own)|group +(\d+))\}([^{}]*))?$/

/** @param {string} name @returns {number} uint32, FNV-1a of its UTF-16 units: the `c` of a payload */
export function channelNumber(name) {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** The finalizer of MurmurHash3. @param {number} number @returns {number} 0 to below 1 */
function scatter(number) {
  let hash = Math.imul(number ^ (number >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

export class ChannelTemplate {
  #before
  #after
  #random
  #seed
  /** Number of the first channel; -1: names have no number. */
  #first
  /** Consecutive connections that share a channel. */
  #step
  /** Number of channels; Infinity: depends on the connections. */
  #size

  /** @param {string} template @throws {Error} one line: an invalid template */
  constructor(template) {
    const match = template && TEMPLATE.exec(template)
    if (!match)
      throw new Error(
        `"${template}" is not a channel like news, s{1..1000}, r{random 1..100}, own:{own}, g:{group 10}`,
      )
    const [, before, random, from, to, own, group, after = ''] = match
    const numbered = own || group
    this.#before = before
    this.#after = after
    this.#random = random
    this.#seed = channelNumber(template)
    this.#first = from ? +from : numbered ? 1 : -1
    this.#step = +(group ?? 1)
    this.#size = from ? +to - +from + 1 : numbered ? Infinity : 1
    if (this.#step < 1 || this.#size < 1 || (from && this.#size > 1e9))
      throw new Error(`"${template}": the range is empty or too long`)
  }

  /** Number of channels of the template; 0: depends on the connections. */
  get span() {
    return this.#size === Infinity ? 0 : this.#size
  }

  /** @param {number} connection @returns {string} name of its channel */
  at(connection) {
    const place = this.#random
      ? scatter(connection ^ this.#seed) * this.#size
      : (connection / this.#step) % this.#size
    return this.nameOf(Math.floor(place))
  }

  /** @param {number} index of a channel @returns {string} */
  nameOf(index) {
    return this.#before + (this.#first < 0 ? '' : this.#first + index) + this.#after
  }

  /** @param {string} name of a channel @returns {number} its index; -1: not of this template */
  indexOf(name) {
    const number = Number(name.slice(this.#before.length, name.length - this.#after.length))
    const index = number - Math.max(0, this.#first)
    return index >= 0 && index < this.#size && this.nameOf(index) === name ? index : -1
  }

  /** @param {number} total connections @returns {number} distinct channels of these */
  count(total) {
    return this.#random ? this.#size : Math.min(this.#size, Math.ceil(total / this.#step))
  }
}

/** @param {string} template @throws {Error} one line: an invalid template */
export const parseTemplate = template => new ChannelTemplate(template)
