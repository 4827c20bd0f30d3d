import { disconnects } from '../../base/errors.js'

/** @import { Capabilities } from '../hooks/capabilities.js' */
/** @import { CatchUps } from './catch-up.js' */
/** @import { SessionPolls } from './polls.js' */
/** @import { SingleClaim } from './single-connections.js' */
/** @import { Subscribing } from './subscription.js' */

/** Session fields for hooks, proxies, the lifecycle log, rate limits, capabilities and `client.concurrency`. */
export class SessionExtra {
  /** Request headers: name, value, name, value ... @type {readonly string[]} */
  headers = NO_HEADERS
  /** `headers` of the connect request. @type {Record<string, string> | null} */
  emulatedHeaders = null
  /** @type {Capabilities | null} */
  caps = null
  /** Pending calls of handlers. @type {Set<{abandon: () => void}> | null} */
  calls = null
  /** Pending subscribes by channel. @type {Map<string, Subscribing> | null} */
  subscribing = null
  /** Catch-ups of maps. @type {CatchUps | null} */
  catchUps = null
  /** @type {SessionPolls | null} */
  polls = null
  /** @type {SingleClaim | null} */
  claim = null
  /** Tokens of rate limits, see token-buckets.js. @type {number[] | null} */
  rates = null
  /** unix ms; 0: not connected yet */
  connectedAt = 0
  /** @type {{code: number, reason: string}} */
  end = disconnects.connectionClosed

  /**
   * Drops headers not needed after the connect.
   * @param {{headers: readonly string[], emulatedHeaders: readonly string[]}} handlers names in lower case
   */
  keep({ headers, emulatedHeaders }) {
    this.headers = keepHeaders(this.headers, headers)
    const given = this.emulatedHeaders
    const names = given && Object.keys(given).filter(name => emulatedHeaders.includes(name.toLowerCase()))
    this.emulatedHeaders =
      given && names?.length ? Object.fromEntries(names.map(name => [name, given[name]])) : null
  }

  /** @param {{code: number, reason: string}} end */
  ended(end) {
    this.end = end
    this.catchUps?.endAll()
    if (this.calls !== null) for (const call of [...this.calls]) call.abandon()
  }
}

/** @type {readonly string[]} */
const NO_HEADERS = Object.freeze([])

/** @param {readonly string[]} lines name, value, name, value ... @param {readonly string[]} names in lower case */
export function keepHeaders(lines, names) {
  if (lines.length === 0 || names.length === 0) return NO_HEADERS
  /** @type {string[]} */
  const kept = []
  for (let at = 0; at < lines.length; at += 2)
    if (names.includes(lines[at])) kept.push(lines[at], lines[at + 1])
  return kept
}
