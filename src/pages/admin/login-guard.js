import { Call } from '../../clients/transport/calls.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Calls } from '../../clients/transport/calls.js' */

/** Wrong keys in a row that are answered at once; after them one key every PACE ms. */
export const BURST = 10
export const PACE = 6000
/** Longest time until all wrong keys of an address are forgotten, ms. */
const LONGEST = (BURST + 1) * PACE
export const MAX_ADDRESSES = 10_000

/**
 * Wrong admin keys by address. Each wrong key is forgotten after PACE ms, one after another. From an address with BURST
 * of them, one login at a time is checked and answered after a wait, the right key included: so a guesser learns no
 * more than one result every PACE ms, and whoever has the key still gets in.
 */
export class FailedLogins {
  /** @type {Map<string, number>} network -> when its wrong keys are forgotten, ms; the oldest change first */
  #forgottenAt = new Map()

  get size() {
    return this.#forgottenAt.size
  }

  /**
   * Counts a login.
   * @param {string} address @param {boolean} right @param {number} now ms
   * @returns {number} ms after which its result may be shown; below 0: it must not be shown, and the next login of this
   *   address may come in that many ms
   */
  tried(address, right, now) {
    const network = networkOf(address)
    const left = (this.#forgottenAt.get(network) ?? 0) - now
    // A clock that was set back would lock the address for longer.
    const debt = left > 0 && left <= LONGEST ? left : 0
    const wait = Math.max(0, debt - (BURST - 1) * PACE)
    if (wait > PACE) return PACE - wait
    if (!right || wait > 0) this.#owe(network, now + debt + PACE, now)
    return wait
  }

  /** @param {string} network @param {number} until @param {number} now */
  #owe(network, until, now) {
    const all = this.#forgottenAt
    all.delete(network)
    all.set(network, until)
    for (const [oldest, at] of all) {
      if (at > now && all.size <= MAX_ADDRESSES) break
      all.delete(oldest)
    }
  }
}

/**
 * The network that one client can take its addresses from.
 * @param {string} address text
 * @returns {string} the first half (64 bits) of an IPv6 address, any other address as it is
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

/** Time limit for its answer, ms. */
const TIMEOUT = 2000
const RIGHT = 1

/**
 * Counts wrong keys over all workers of a node: one worker counts every login before its result is shown, so more
 * connections allow no more guesses.
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

  /**
   * @param {string} address @param {boolean} right
   * @returns {Promise<number>} as of `FailedLogins.tried`
   */
  tried(address, right) {
    const here = () => this.#failures.tried(address, right, this.#clock())
    const counting = this.#counting()
    if (this.#worker === counting) return Promise.resolve(here())
    return new Promise(resolve => {
      // Without an answer of the counting worker each worker counts its own.
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
