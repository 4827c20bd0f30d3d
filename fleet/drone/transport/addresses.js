// Where connections come from: pairs of a local address and a source port, in sequence. One address gives at most 64,511 connections to
// one server port, and so many addresses give so many times that.

import { isIP } from 'node:net'

const MAX_ADDRESSES = 65_536

/** @param {string} address IPv4 */
const toNumber = address => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)

/** @param {number} number */
const toAddress = number => [24, 16, 8, 0].map(shift => (number >>> shift) & 255).join('.')

/**
 * @param {string[]} ranges `127.0.1.1-127.0.1.50`, `10.0.0.7`, `fd00::7`; several may be joined by commas
 * @returns {string[]} addresses
 * @throws {Error} one line
 */
export function parseAddresses(ranges) {
  /** @type {string[]} */
  const addresses = []
  for (const range of ranges.flatMap(text => text.split(',')).map(text => text.trim())) {
    if (range === '') continue
    const [first, last = first, more] = range.split('-')
    const family = more === undefined ? isIP(first) : 0
    const from = family === 4 ? toNumber(first) : 0
    const to = isIP(last) === 4 ? toNumber(last) : 0
    const alone = first === last
    if (family === 0 || (!alone && (family !== 4 || to <= from)))
      throw new Error(`"${range}" is no range of addresses`)
    if (addresses.length + to - from >= MAX_ADDRESSES) throw new Error(`more than ${MAX_ADDRESSES} addresses`)
    if (alone) addresses.push(first)
    else for (let at = from; at <= to; at++) addresses.push(toAddress(at))
  }
  return addresses
}

/**
 * @param {string} text `1024-65535`, or ''
 * @returns {{first: number, count: number}} `count` 0: the kernel's choice
 * @throws {Error} one line
 */
export function parsePorts(text) {
  if (text === '') return { first: 0, count: 0 }
  const [, first, last] = (/^(\d{1,5})-(\d{1,5})$/.exec(text) ?? []).map(Number)
  if (!(first >= 1 && last >= first && last <= 65_535)) throw new Error(`"${text}" is no range of ports`)
  return { first, count: last - first + 1 }
}

/**
 * The pairs that connections to one target take. A pair that was given back rests until all others had their turn, so that the kernel's
 * TIME_WAIT is over when it is taken again.
 */
export class Sources {
  /** A bit for each pair that is in use here. */
  #used
  #cursor = -1
  #free

  /**
   * @param {string[]} addresses none: the kernel's choice
   * @param {{first: number, count: number}} ports
   */
  constructor(addresses, ports) {
    this.addresses = addresses
    this.ports = ports.count
    this.first = ports.first
    this.size = Math.max(1, addresses.length) * Math.max(1, ports.count)
    this.family = addresses.length === 0 ? 0 : isIP(addresses[0])
    this.#used = new Uint8Array(ports.count === 0 ? 0 : Math.ceil(this.size / 8))
    this.#free = this.size
  }

  /**
   * Says where to begin, the first time: processes that share the pairs begin at different ones, so that they do not meet.
   * @param {number} number of a connection
   */
  begin(number) {
    if (this.#cursor < 0) this.#cursor = number % this.size
  }

  /**
   * @param {number} tries how many were found taken by others; they may have many in a row, so that larger and larger steps are made
   * @returns {number} index of a pair, -1: none is left
   */
  take(tries) {
    const { size } = this
    if (tries > 8) this.#cursor = (this.#cursor + 2 ** (tries - 8)) % size
    if (this.#free === 0) return -1
    for (;;) {
      const pair = this.#cursor
      this.#cursor = (pair + 1) % size
      if (this.ports === 0) return pair
      if (this.#used[pair >> 3] & (1 << (pair & 7))) continue
      this.#used[pair >> 3] |= 1 << (pair & 7)
      this.#free--
      return pair
    }
  }

  /** @param {number} pair or -1 */
  release(pair) {
    if (pair < 0 || this.ports === 0) return
    this.#used[pair >> 3] &= ~(1 << (pair & 7))
    this.#free++
  }

  /** @param {number} pair @returns {string | undefined} */
  address(pair) {
    return this.addresses[pair % this.addresses.length]
  }

  /** @param {number} pair @returns {number | undefined} */
  port(pair) {
    return this.ports === 0 ? undefined : this.first + Math.floor(pair / Math.max(1, this.addresses.length))
  }
}
