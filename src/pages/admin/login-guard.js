import { Call } from '../../clients/transport/calls.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Calls } from '../../clients/transport/calls.js' */

/** Consecutive wrong keys answered without delay; then one key every PACE ms. */
export const BURST = 10
export const PACE = 6000
/** Maximum time until all wrong keys of an address are forgotten, ms. */
const LONGEST = (BURST + 1) * PACE
export const MAX_ADDRESSES = 10_000

/**
 * Wrong admin keys by address. Wrong keys expire one after another, each after PACE ms. An address with BURST of them
 * gets the result of one login at a time, after a delay, even for the right key: an attacker gets one result every PACE
 * ms, and the right key still works.
 */
export class FailedLogins {
  /** @type {Map<string, number>} network -> expiry of its wrong keys, ms; oldest change first */
  #forgottenAt = new Map()

  get size() {
    return this.#forgottenAt.size
  }

  /**
   * Counts a login.
   * @param {string} address @param {boolean} right @param {number} now ms
   * @returns {number} delay of the result, ms; below 0: no result, the negated delay until the next login
   */
  tried(address, right, now) {
    const network = networkOf(address)
    const left = (this.#forgottenAt.get(network) ?? 0) - now
    // A clock set back would extend the delay.
    const debt = left > 0 && left <= LONGEST ? left : 0
    const wait = Math.max(0, debt - (BURST - 1) * PACE)
    if (wait > PACE) return PACE - wait
    if (right && wait === 0) return wait
    const all = this.#forgottenAt
    all.delete(network)
    all.set(network, now + debt + PACE)
    for (const [oldest, at] of all) {
      if (at > now && all.size <= MAX_ADDRESSES) break
      all.delete(oldest)
    }
    return wait
  }
}

/**
 * The network of a client.
 * @param {string} address
 * @returns {string} first 64 bits of an IPv6 address; else the address
 */
export function networkOf(address) {
  if (!address.includes(':')) return address
  const [head, tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  while (groups.length + last.length < 8) groups.push('0')
  return [...groups, ...last]
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16))
    .join(':')
}

/** Maximum wait for the counting worker, ms. */
const TIMEOUT = 2000
const RIGHT = 1

/**
 * Counts wrong keys across all workers of a node: one worker counts every login before its result is sent, so more
 * connections do not allow more guesses.
 */
export class LoginGuard {
  #control
  #worker
  #counting
  #clock
  #failures = new FailedLogins()

  /**
   * @param {object} parts
   * @param {Control} parts.control
   * @param {Calls} parts.calls
   * @param {number} parts.worker number of this worker
   * @param {() => number} parts.counting number of the worker that counts for its node
   * @param {() => number} parts.clock ms
   */
  constructor({ control, calls, worker, counting, clock }) {
    this.#control = control
    this.#worker = worker
    this.#counting = counting
    this.#clock = clock
    calls.on(Call.ADMIN_LOGIN, (request, answer) => {
      const wait = this.#failures.tried(request.toString('utf8', 1), request[0] === RIGHT, clock())
      answer(String(wait))
    })
  }

  /** @param {string} address @param {boolean} right @returns {Promise<number>} as of `FailedLogins.tried` */
  tried(address, right) {
    const here = () => this.#failures.tried(address, right, this.#clock())
    const counting = this.#counting()
    if (this.#worker === counting) return Promise.resolve(here())
    return new Promise(resolve => {
      // Without a response each worker counts its own logins.
      const timer = setTimeout(() => resolve(here()), TIMEOUT)
      const request = Buffer.concat([
        Buffer.from([Call.ADMIN_LOGIN, right ? RIGHT : 0]),
        Buffer.from(address),
      ])
      this.#control.call('', counting, request, (error, answer) => {
        clearTimeout(timer)
        resolve(error ? here() : Number(answer))
      })
    })
  }
}
