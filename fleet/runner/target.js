// The target of a run: whether it is reachable, and why it refuses connections, subscriptions or messages.

import { connect } from 'node:net'
import { count } from '../../src/base/format.js'

/** @import { FleetSnapshot } from '../schema.js' */

/** ms */
const CONNECT_TIMEOUT = 5000

/** @param {string} url @returns {{host: string, port: number}} */
function addressOf(url) {
  const { hostname, port, protocol } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** @param {string} url @returns {boolean} */
export const isLoopback = url => /^(?:127\.|localhost$|::1$)/.test(addressOf(url).host)

/** Codes of Node.js -> reason. @type {Record<string, string>} */
const REASONS = {
  ECONNREFUSED: 'no server listens on this port',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host, or no DNS response',
  EHOSTUNREACH: 'no route to this host',
  ENETUNREACH: 'no route to this network',
  ETIMEDOUT: 'no response',
}

/** @param {string} url @returns {Promise<void>} @throws {RunError} no TCP connection can be opened */
export function checkReachable(url) {
  return new Promise((resolve, reject) => {
    const socket = connect(addressOf(url))
    const fail = (/** @type {string} */ code) => {
      socket.destroy()
      const reason = REASONS[code]
      reject(new RunError(`${url} is unreachable: ${code}${reason ? ` (${reason})` : ''}`))
    }
    socket.setTimeout(CONNECT_TIMEOUT, () => fail('ETIMEDOUT'))
    // A host with several addresses yields an AggregateError.
    socket.once('error', (/** @type {any} */ error) =>
      fail(error.code ?? error.errors?.[0]?.code ?? error.message),
    )
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
  })
}

/** s of continuous refusals until the run ends. */
const REFUSAL_TIME = 4
/** Minimum messages due until a target that accepts none counts as refusing. */
const MIN_DUE = 3
/** Timeout to recover the first subscription after a reconnect, s. */
const RECOVERY_TIME = 1

/** Possible causes of faults. @type {readonly [RegExp, (transport: string) => string][]} */
const HINTS = Object.freeze([
  [/HTTP 404/, transport => `the ${transport} transport does not exist or is disabled`],
  [/HTTP 40[13]/, () => 'a key or a token is missing or wrong (--api-key, --token-secret)'],
  [/ECONNREFUSED/, () => REASONS.ECONNREFUSED],
  [/\b(?:3500|3501|101|109)\b|token/i, () => 'clients need a token (--token-secret)'],
  [/\b103\b|permission/i, () => 'clients may not subscribe to these channels'],
  [/\b102\b|unknown channel/i, () => 'these channels are in a namespace that the target does not have'],
  [/EADDRNOTAVAIL/, () => 'too few source addresses or ports (--set addresses=...)'],
  [/EMFILE/, () => 'the open-files limit of a process is too low (ulimit -n)'],
])

/** The most frequent one. @param {Record<string, number>} faults @param {Record<string, number>} [before] */
export function topFault(faults, before = {}) {
  const since = Object.entries(faults).map(
    ([name, times]) => /** @type {[string, number]} */ ([name, times - (before[name] ?? 0)]),
  )
  const [first] = since.filter(([, times]) => times > 0).sort((a, b) => b[1] - a[1])
  return first ?? null
}

/** @param {string} fault @param {string} transport @returns {string} with its likely cause, if known */
export function withHint(fault, transport) {
  const hint = HINTS.find(([pattern]) => pattern.test(fault))?.[1](transport)
  return hint === undefined ? fault : `${fault}: ${hint}`
}

/** Detects a target that refuses everything, so that a run ends early with a reason. */
export class RefusalCheck {
  #target
  #before
  /** Start of the current refusals, Unix ms; 0: none in the last snapshot. */
  #refusedSince = 0
  #unrecoveredSince = 0

  /** @param {string} target for errors @param {FleetSnapshot} before counters to compare with */
  constructor(target, before) {
    this.#target = target
    this.#before = before
  }

  /** While connections are opened. @param {FleetSnapshot} snapshot @throws {RunError} all attempts failed for 4 s */
  checkConnections(snapshot) {
    const { counters, faults, gauges, settings } = snapshot
    const failed = counters.failed - this.#before.counters.failed
    const refused = counters.refused - this.#before.counters.refused
    const noneOpened =
      gauges.open === 0 && failed + refused > 0 && counters.opened === this.#before.counters.opened
    if (!this.#lasts(noneOpened, snapshot.time)) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no response']
    const what = failed > 0 ? 'does not accept connections' : 'refuses subscriptions'
    throw new RunError(
      `${this.#target} ${what}: ${withHint(fault, settings.transport)} (${count(failed + refused)} attempts)`,
    )
  }

  /** After the ramp. @param {FleetSnapshot} snapshot @throws {RunError} at least one subscription per connection was refused */
  checkSubscriptions({ counters, faults, settings }) {
    const opened = counters.opened - this.#before.counters.opened
    const refused = counters.refused - this.#before.counters.refused
    if (opened === 0 || refused < opened) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no reason given']
    throw new RunError(
      `${this.#target} refuses subscriptions: ${withHint(fault, settings.transport)} (${count(refused)} refused)`,
    )
  }

  /** While connections are reopened. @param {FleetSnapshot} snapshot @throws {RunError} no reply to recoveries */
  checkRecovery({ counters, settings, time }) {
    const since = (/** @type {'reconnects' | 'recovered' | 'unrecovered'} */ name) =>
      counters[name] - this.#before.counters[name]
    const noneRecovered =
      settings.recover && since('reconnects') > 0 && since('recovered') + since('unrecovered') === 0
    if (!noneRecovered) this.#unrecoveredSince = 0
    else this.#unrecoveredSince ||= time
    if (!noneRecovered || time - this.#unrecoveredSince < RECOVERY_TIME * 1000) return
    throw new RunError(
      `${this.#target} does not recover subscriptions: these channels have no history, or clients are not allowed to recover`,
    )
  }

  /**
   * While messages are published.
   * @param {FleetSnapshot} snapshot @param {boolean} [atEnd] decide without waiting @throws {RunError} none was accepted
   */
  checkMessages(snapshot, atEnd = false) {
    const { counters, faults, settings, time } = snapshot
    const due = (settings.publish_rate * (time - this.#before.time)) / 1000
    const noneAccepted = due >= MIN_DUE && counters.published === this.#before.counters.published
    if (!this.#lasts(noneAccepted, time) && !(atEnd && noneAccepted)) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no response']
    throw new RunError(`${this.#target} does not accept messages: ${withHint(fault, settings.transport)}`)
  }

  /** @param {boolean} refused @param {number} time Unix ms @returns {boolean} for REFUSAL_TIME without a break */
  #lasts(refused, time) {
    if (!refused) this.#refusedSince = 0
    else this.#refusedSince ||= time
    return refused && time - this.#refusedSince >= REFUSAL_TIME * 1000
  }
}

/** Thrown if a run cannot begin or continue; the message is one line. */
export class RunError extends Error {}
