// The server under load: whether it can be reached, and why it refuses connections or messages.

import { connect } from 'node:net'
import { count } from '../../src/charts/format.js'

const CONNECT_TIMEOUT = 5000

/** @param {string} url @returns {{host: string, port: number}} */
function hostOf(url) {
  const { hostname, port, protocol } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** @param {string} url @returns {boolean} */
export const isLoopback = url => /^(?:127\.|localhost$|::1$)/.test(hostOf(url).host)

/** @type {Record<string, string>} */
const REASONS = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name cannot be looked up',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ETIMEDOUT: 'no answer',
}

/** @param {string} url @returns {Promise<void>} @throws {RunError} no server */
export function checkReachable(url) {
  return new Promise((resolve, reject) => {
    const socket = connect(hostOf(url))
    const fail = (/** @type {string} */ code) => {
      socket.destroy()
      const reason = REASONS[code]
      reject(new RunError(`${url} cannot be reached: ${code}${reason ? ` (${reason})` : ''}`))
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

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/** s that a target may refuse everything */
const REFUSAL_TIME = 4
/** Due messages of which at least one should have been accepted. */
const ENOUGH_DUE = 3
/** s in which returning subscriptions should have been recovered */
const RECOVERY_TIME = 1

/** Meanings of faults with an unclear text. @type {readonly [RegExp, (transport: string) => string][]} */
const HINTS = Object.freeze([
  [/HTTP 404/, transport => `there is no ${transport} transport, or it is not switched on`],
  [/HTTP 40[13]/, () => 'a key or a token is missing, or wrong (--api-key, --token-secret)'],
  [/ECONNREFUSED/, () => 'nobody listens there'],
  [/\b(?:3500|3501|101|109)\b|token/i, () => 'clients need a token (--token-secret)'],
  [/\b103\b|permission/i, () => 'clients may not subscribe to these channels'],
  [/\b102\b|unknown channel/i, () => 'the target does not know these channels: its namespaces are missing'],
  [/EADDRNOTAVAIL/, () => 'too few source addresses or ports (--set addresses=...)'],
  [/EMFILE/, () => 'a process may not open enough files (ulimit -n)'],
])

/**
 * @param {Record<string, number>} faults @param {Record<string, number>} [before]
 * @returns {[string, number] | null} the most frequent one since `before`
 */
export function topFault(faults, before = {}) {
  const since = Object.entries(faults).map(
    ([name, times]) => /** @type {[string, number]} */ ([name, times - (before[name] ?? 0)]),
  )
  const [first] = since.filter(([, times]) => times > 0).sort((a, b) => b[1] - a[1])
  return first ?? null
}

/** @param {string} fault @param {string} transport */
export function withHint(fault, transport) {
  const hint = HINTS.find(([pattern]) => pattern.test(fault))?.[1](transport)
  return hint === undefined ? fault : `${fault}: ${hint}`
}

/** Detects a target that refuses everything. */
export class RefusalCheck {
  #target
  #before
  #since = 0
  #unrecovered = 0

  /** @param {string} target @param {FleetSnapshot} before */
  constructor(target, before) {
    this.#target = target
    this.#before = before
  }

  /**
   * While connections are opened. @param {FleetSnapshot} snapshot
   * @throws {RunError} none was opened, and attempts were refused for some seconds
   */
  connections(snapshot) {
    const { counters, faults, gauges, settings } = snapshot
    const failed = counters.failed - this.#before.counters.failed
    const refused = counters.refused - this.#before.counters.refused
    const bad = gauges.open === 0 && failed + refused > 0 && counters.opened === this.#before.counters.opened
    if (!this.#lasts(bad, snapshot.time)) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no answer']
    const what = failed > 0 ? 'takes no connections' : 'refuses the subscriptions'
    throw new RunError(
      `${this.#target} ${what}: ${withHint(fault, settings.transport)} (${count(failed + refused)} attempts)`,
    )
  }

  /**
   * After connections have been opened. @param {FleetSnapshot} snapshot
   * @throws {RunError} the target refused the purpose of each of them
   */
  subscriptions({ counters, faults, settings }) {
    const opened = counters.opened - this.#before.counters.opened
    const refused = counters.refused - this.#before.counters.refused
    if (opened === 0 || refused < opened) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no reason is given']
    throw new RunError(
      `${this.#target} refuses the subscriptions: ${withHint(fault, settings.transport)} (${count(refused)} of them)`,
    )
  }

  /**
   * While connections are lost and reopened. @param {FleetSnapshot} snapshot
   * @throws {RunError} subscriptions request recovery, and the target does not even try
   */
  recovery({ counters, settings, time }) {
    const since = (/** @type {'reconnects' | 'recovered' | 'unrecovered'} */ name) =>
      counters[name] - this.#before.counters[name]
    const bad = settings.recover && since('reconnects') > 0 && since('recovered') + since('unrecovered') === 0
    // This check runs beside that of messages: it has its own start time.
    if (!bad) this.#unrecovered = 0
    else this.#unrecovered ||= time
    if (!bad || time - this.#unrecovered < RECOVERY_TIME * 1000) return
    throw new RunError(
      `${this.#target} does not recover subscriptions: these channels have no history, or clients are not allowed to recover`,
    )
  }

  /**
   * While messages are published. @param {FleetSnapshot} snapshot @param {boolean} [atEnd] do not wait any longer
   * @throws {RunError} none was accepted
   */
  messages(snapshot, atEnd = false) {
    const { counters, faults, settings, time } = snapshot
    const due = (settings.publish_rate * (time - this.#before.time)) / 1000
    const bad = due >= ENOUGH_DUE && counters.published === this.#before.counters.published
    if (!this.#lasts(bad, time) && !(atEnd && bad)) return
    const [fault] = topFault(faults, this.#before.faults) ?? ['no answer']
    throw new RunError(`${this.#target} does not accept messages: ${withHint(fault, settings.transport)}`)
  }

  /** @param {boolean} bad @param {number} time */
  #lasts(bad, time) {
    if (!bad) this.#since = 0
    else this.#since ||= time
    return bad && time - this.#since >= REFUSAL_TIME * 1000
  }
}

/** Why a run cannot begin or continue; the message is one line. */
export class RunError extends Error {}
