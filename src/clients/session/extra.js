import { disconnects } from '../../base/errors.js'

/** @import { Subscribing } from './subscription.js' */

/** @typedef {{abandon: () => void}} Abandonable a call of a handler */

/** What only hooks, proxies, the lifecycle log and `client.concurrency` need of a session. */
export class SessionExtra {
  /** Request headers: name, value, name, value ... @type {readonly string[]} */
  headers = NO_HEADERS
  /** `headers` of the connect request. @type {Record<string, string> | null} */
  emulatedHeaders = null
  /** Metadata of the connection as JSON text, '' = none. */
  meta = ''
  /** Calls of handlers under way. @type {Set<Abandonable> | null} */
  calls = null
  /** By channel; null: none is under way. @type {Map<string, Subscribing> | null} */
  subscribing = null
  /** unix ms; 0: not connected yet */
  connectedAt = 0
  /** Why the session has ended. @type {{code: number, reason: string}} */
  end = disconnects.connectionClosed

  /**
   * Drops the headers that events after the connect do not need.
   * @param {{headers: readonly string[], emulatedHeaders: readonly string[]}} handlers names in lower case
   */
  keep({ headers, emulatedHeaders }) {
    this.headers = keepHeaders(this.headers, headers)
    const given = this.emulatedHeaders
    const names = given && Object.keys(given).filter(name => emulatedHeaders.includes(name.toLowerCase()))
    this.emulatedHeaders =
      given && names?.length ? Object.fromEntries(names.map(name => [name, given[name]])) : null
  }

  /** The session has ended: nobody waits for the calls any more. @param {{code: number, reason: string}} end */
  ended(end) {
    this.end = end
    if (this.calls !== null) for (const call of [...this.calls]) call.abandon()
  }
}

/** @type {readonly string[]} */
const NO_HEADERS = Object.freeze([])

/**
 * @param {readonly string[]} lines name, value, name, value ... @param {readonly string[]} names to keep, in lower case
 * @returns {readonly string[]}
 */
export function keepHeaders(lines, names) {
  if (lines.length === 0 || names.length === 0) return NO_HEADERS
  /** @type {string[]} */
  const kept = []
  for (let at = 0; at < lines.length; at += 2)
    if (names.includes(lines[at])) kept.push(lines[at], lines[at + 1])
  return kept
}
