// A worker's part of `connections`: finds its sessions and describes them, in slices.

import { latencyOf } from '../../clients/session/state.js'
import { list, sourceOf } from '../../clients/session/subscription.js'
import { compileLabelFilter, compileWhere, readsDetails } from './where.js'

/** @import { WorkerContext } from '../../clients/session/context.js' */
/** @import { Session } from '../../clients/session/session.js' */
/** @import { TokenStamp } from '../../clients/auth/claims.js' */
/** @import { NodeIdentity } from './context.js' */

/** Maximum connections of a result, bytes of JSON. */
export const MAX_LIST_BYTES = 16 * 1024 * 1024

/**
 * `user`: '' = all; filters as in the request; `limit`: maximum rows.
 * @typedef {{user: string, labelFilter?: any, where?: any, limit: number}} Query
 *
 * `rows`: client id and JSON text of the connections with the lowest client ids; they end after MAX_LIST_BYTES.
 * @typedef {{node: {uid: string, name: string}, worker: number, total: number, rows: [client: string, text: string][]}}
 *   WorkerList
 */

/** The sessions with the lowest client ids. */
class Lowest {
  /** @type {Session[]} */
  #kept = []
  #size
  /** Higher ids are not kept. */
  #bound = '~'

  /** @param {number} size */
  constructor(size) {
    this.#size = size
  }

  /** @param {Session} session */
  add(session) {
    if (session.id > this.#bound) return
    this.#kept.push(session)
    if (this.#kept.length >= 2 * this.#size) this.#cut()
  }

  #cut() {
    this.#kept.sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#kept.length = Math.min(this.#kept.length, this.#size)
    if (this.#kept.length === this.#size) this.#bound = this.#kept[this.#size - 1].id
  }

  /** @returns {Session[]} in the order of their ids */
  all() {
    this.#cut()
    return this.#kept
  }
}

/** @param {[name: string, text: string | number | undefined][]} members JSON texts; undefined: absent */
const objectText = members =>
  `{${members.flatMap(([name, text]) => (text === undefined ? [] : [`${JSON.stringify(name)}:${text}`])).join(',')}}`

/** @param {string} text @returns {string | undefined} JSON text; undefined if empty */
const textOf = text => (text === '' ? undefined : JSON.stringify(text))

/** @param {TokenStamp | null} stamp @returns {string | undefined} JSON text; undefined: nothing is known */
function tokenText(stamp) {
  if (stamp === null || (stamp.uid === '' && stamp.issuedAt === 0)) return undefined
  return objectText([
    ['uid', textOf(stamp.uid)],
    ['issued_at', stamp.issuedAt === 0 ? undefined : Math.trunc(stamp.issuedAt)],
  ])
}

/** @param {Session} session @param {boolean} keeps `client.keep_connection_details` */
function stateText({ subscriptions, details, stamp }, keeps) {
  /** @type {[string, string | undefined][]} */
  const channels = []
  /** @type {[string, string | undefined][]} */
  const tokens = []
  for (const subscription of list(subscriptions)) {
    const { name } = subscription.channel
    channels.push([name, `{"source":${sourceOf(subscription)}}`])
    const text = keeps ? tokenText(subscription.details.stamp) : undefined
    if (text !== undefined) tokens.push([name, text])
  }
  return objectText([
    ['channels', objectText(channels)],
    ['connection_token', keeps ? tokenText(stamp) : undefined],
    ['subscription_tokens', tokens.length > 0 ? objectText(tokens) : undefined],
    ['meta', (keeps && details?.meta) || undefined],
  ])
}

/** @param {Session} session @returns {string} ConnectionInfo as JSON text */
function describe(session) {
  const { details, transport, codec, user, context, since } = session
  const keeps = context.config.client.keep_connection_details
  const age = performance.now() - since
  return objectText([
    ['app_name', keeps && details !== null ? textOf(details.name) : undefined],
    ['app_version', keeps && details !== null ? textOf(details.version) : undefined],
    ['transport', JSON.stringify(transport.name)],
    ['protocol', codec.binary ? '"protobuf"' : '"json"'],
    ['user', JSON.stringify(user)],
    ['state', stateText(session, keeps)],
    ['connected_at_ms', Math.round(context.clock() - age)],
    ['ping_pong_latency_ms', latencyOf(session.traits)],
    ['labels', details?.labels ? JSON.stringify(details.labels) : undefined],
  ])
}

/**
 * @param {WorkerContext} context @param {Query} query @param {NodeIdentity} node
 * @returns {Promise<WorkerList | {unavailable: true}>} `unavailable`: `where` reads what this worker does not keep
 * @throws {Error} errors.badRequest: a filter that this worker does not know
 */
export async function listConnections(context, { user, labelFilter, where, limit }, { uid, name }) {
  const byLabels = labelFilter === undefined ? null : compileLabelFilter(labelFilter)
  const byFields = where === undefined ? null : compileWhere(where)
  if (!context.config.client.keep_connection_details && readsDetails(where)) return { unavailable: true }
  const { sessions } = context
  const candidates = user === '' ? sessions.everyConnected() : sessions.of(user, {})
  const lowest = new Lowest(limit)
  let total = 0
  await visit(context, candidates, session => {
    if (session.closed || byLabels?.(session) === false || byFields?.(session) === false) return
    total++
    lowest.add(session)
  })
  /** @type {[string, string][]} */
  const rows = []
  let bytes = 0
  await visit(context, lowest.all(), session => {
    if (session.closed) return void total--
    if (bytes > MAX_LIST_BYTES) return
    const text = describe(session)
    bytes += Buffer.byteLength(text)
    rows.push([session.id, text])
  })
  return { node: { uid, name }, worker: context.index, total, rows }
}

/** In slices. @param {WorkerContext} context @param {Session[]} found @param {(session: Session) => void} work */
function visit({ sessions }, found, work) {
  return new Promise((resolve, reject) => {
    /** @type {unknown} */
    let fault = null
    sessions.visitInSlices(found, session => {
      if (fault !== null) return
      try {
        work(session)
      } catch (error) {
        fault = error
      }
    })
    sessions.afterVisits(() => (fault === null ? resolve(undefined) : reject(fault)))
  })
}
