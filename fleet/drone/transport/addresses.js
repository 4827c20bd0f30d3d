// Source addresses: pairs of a local address and a source port, in sequence. One address allows at most 64,511
// connections to one server port.

import { isIP } from 'node:net'

const MAX_ADDRESSES = 65_536

/** @param {string} address @returns {number} NaN: not IPv4 */
const toNumber = address =>
  isIP(address) === 4 ? address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) : Number.NaN

/** @param {number} number */
const toAddress = number => [24, 16, 8, 0].map(shift => (number >>> shift) & 255).join('.')

/** @param {string[]} ranges 127.0.1.1-127.0.1.50, 10.0.0.7, fd00::7; may be joined by commas */
export function parseAddresses(ranges) {
  /** @type {string[]} */
  const addresses = []
  for (const range of ranges.join().split(/[, ]+/)) {
    const [first, last = first] = range.split(/-(.+)/)
    const to = toNumber(last)
    let at = toNumber(first)
    if (at <= to) {
      if (addresses.length + to - at >= MAX_ADDRESSES) throw new Error(`more than ${MAX_ADDRESSES} addresses`)
      while (at <= to) addresses.push(toAddress(at++))
    } else if (isIP(range) === 6) addresses.push(range)
    else if (range) throw new Error(`"${range}" is not a range of addresses`)
  }
  return addresses
}

/** Pairs for connections to one target. Released pairs are reused last, after their TIME_WAIT. */
export class Sources {
  /** @type {Set<number>} pairs in use here */
  #used = new Set()
  #next = -1

  /** @param {string[]} addresses none: the kernel's choice @param {string} ports 1024-65535; '': any */
  constructor(addresses, ports) {
    const [, first, last] = (/^(\d{1,5})-(\d{1,5})$/.exec(ports || '0-0') ?? []).map(Number)
    if (!(last >= first && last <= 65_535 && (first || !ports)))
      throw new Error(`"${ports}" is not a range of ports`)
    this.first = first
    this.addresses = addresses.length > 0 ? addresses : ['']
    this.size = this.addresses.length * (last - first + 1)
    this.family = isIP(this.addresses[0])
  }

  /** Sets the first pair, once; each process has its own. @param {number} number of a connection */
  begin(number) {
    if (this.#next < 0) this.#next = number
  }

  /** -1: none left. @param {number} tries pairs used by other processes, possibly consecutive: steps grow */
  take(tries) {
    if (this.#used.size === this.size) return -1
    if (tries > 8) this.#next += 2 ** (tries - 8)
    while (this.#used.has(this.#next % this.size)) this.#next++
    const pair = this.#next++ % this.size
    if (this.first) this.#used.add(pair)
    return pair
  }

  /** @param {number} pair or -1 */
  release(pair) {
    this.#used.delete(pair)
  }

  /** @param {number} pair @returns {object} options of a socket */
  at(pair) {
    const { addresses, first } = this
    const { length } = addresses
    return { localAddress: addresses[pair % length], localPort: first && first + Math.floor(pair / length) }
  }
}
