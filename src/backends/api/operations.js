import { Disconnect, disconnects, unsubscribes } from '../../base/errors.js'
import { expireConnection, renewInfo } from '../../clients/session/expiry.js'
import { Plan } from '../../clients/session/plan.js'
import { compileGlob } from '../../config/glob.js'
import { ServerSubscribes } from './server-subscribes.js'

/** @import { Session } from '../../clients/session/session.js' */
/** @import { WorkerContext } from '../../clients/session/context.js' */
/** @import { NodeIdentity } from './context.js' */

/**
 * @typedef {{user: string, client?: string, session?: string}} Target selects connections
 * @typedef {{client: string, user: string, transport: string, codec: string, subscriptions: number,
 *   channels: string[]}} Connection `channels`: the first ones of its subscriptions
 */

/** @param {WorkerContext} context @param {Target} target @returns {Session[]} */
function targets({ sessions }, { user, client, session }) {
  return sessions.of(user ?? '', { client, session })
}

/**
 * @typedef {object} Parts
 * @property {NodeIdentity} node
 * @property {number} before an order concerns connections made before, ms of performance.now()
 * @property {ServerSubscribes} subscribes
 */

/**
 * @param {WorkerContext} context @param {Target} target @param {Parts} parts @param {(session: Session) => void} visit
 */
function visitTargets(context, target, { before }, visit) {
  context.sessions.visitInSlices(targets(context, target), session => {
    if (session.closed || session.since >= before) return
    try {
      visit(session)
    } catch (error) {
      context.log.error({ err: error, client: session.id }, 'server API call failed for a client')
    }
  })
}

/** @param {WorkerContext} context @param {number} limit @returns {Session[]} connected ones of any user */
function firstOf({ sessions }, limit) {
  /** @type {Session[]} */
  const found = []
  sessions.forEach(session => {
    if (found.length < limit) found.push(session)
  })
  return found
}

/** Channels listed for a connection. */
const MAX_CHANNELS = 20

/** @param {Session} session @returns {Connection} */
function describe(session) {
  const { id, user, subscriptions } = session
  /** @type {string[]} */
  const channels = []
  if (subscriptions instanceof Map) {
    for (const name of subscriptions.keys()) {
      if (channels.length === MAX_CHANNELS) break
      channels.push(name)
    }
  } else if (subscriptions) channels.push(subscriptions.channel.name)
  return {
    client: id,
    user,
    transport: session.transport.name,
    codec: session.codec.name,
    subscriptions: session.subscriptionCount,
    channels,
  }
}

/**
 * A worker's part of server API methods, requested by any worker. Each returns at once; work on thousands of
 * connections is done in slices.
 * @type {Record<string, (context: WorkerContext, params: any, parts: Parts) => any>}
 */
const operations = Object.freeze({
  channels({ hub }, { pattern }) {
    const matches = pattern ? compileGlob(pattern) : null
    /** @type {Record<string, number>} A channel may be called `__proto__`. */
    const counts = Object.create(null)
    for (const [name, { count }] of hub.channels) if (!matches || matches.test(name)) counts[name] = count
    return counts
  },

  info({ sessions, hub, metrics, clock }, _params, { node }) {
    const { uid, name, version, startedAt } = node
    return {
      node: { uid, name, version },
      uptime: Math.max(0, clock() - startedAt),
      clients: sessions.count,
      users: [...sessions.users(), ...(sessions.anonymous > 0 ? [''] : [])],
      channels: [...hub.channels.keys()],
      subscriptions: hub.subscriptions,
      metrics: metrics.last,
    }
  },

  /** At most `limit` connections of a user, or of everybody (`all`), and their `total`. */
  connections(context, { limit, all, ...target }, { node: { uid, name } }) {
    const found = all ? firstOf(context, limit) : targets(context, target)
    return {
      node: { uid, name },
      worker: context.index,
      total: all ? context.sessions.count : found.length,
      connections: found.slice(0, limit).map(describe),
    }
  },

  /** `claim`: id of a client that is to be the only one of its user */
  disconnect(context, { whitelist, code, reason, claim, ...target }, parts) {
    const disconnect = new Disconnect(code, reason)
    const { singles } = context
    const live = parts.before === Infinity
    if (claim) singles.arrived(claim)
    visitTargets(context, target, parts, session => {
      if (claim && live && singles.isNewest(session)) return
      if (!whitelist?.includes(session.id)) session.close(disconnect)
    })
  },

  unsubscribe(context, { channel, ...target }, parts) {
    visitTargets(context, target, parts, session => {
      parts.subscribes.cancel(session, channel)
      const subscription = session.subscription(channel)
      if (subscription) session.unsubscribe(subscription, unsubscribes.server)
    })
  },

  refresh(context, { expired, expireAt, info, ...target }, parts) {
    const expires = expireAt > 0
    visitTargets(context, target, parts, session => {
      if (expired || (expires && expireAt <= context.now())) {
        session.close(disconnects.connectionExpired)
        return
      }
      expireConnection(session, expires ? expireAt : 0)
      renewInfo(session, info || undefined)
      session.send(session.codec.refresh({ expires, ttl: expires ? context.ttl(expireAt) : 0 }))
    })
  },

  /** @returns true: there are connections to subscribe, but `expireAt` has passed */
  subscribe(context, { channel, expireAt, info, data, recoverSince, override, ...target }, parts) {
    const namespace = context.rules.resolve(channel)
    if (!namespace) return
    if (expireAt > 0 && expireAt <= context.now()) return targets(context, target).length > 0
    const request = recoverSince ? { recover: true, ...recoverSince } : {}
    const grant = { info, data, expireAt, override }
    visitTargets(context, target, parts, session =>
      parts.subscribes.start(
        session,
        channel,
        () => new Plan(session, channel, namespace, request, grant, true),
      ),
    )
  },
})

/**
 * @param {WorkerContext} context @param {NodeIdentity} node
 * @returns {(op: string, params: any, before?: number) => any} BrokerEvents.survey
 */
export function createOperations(context, node) {
  const subscribes = new ServerSubscribes()
  return (op, params, before = Infinity) => {
    const operation = Object.hasOwn(operations, op) ? operations[op] : undefined
    if (!operation) throw new Error(`unknown operation ${op}`)
    return operation(context, params, { node, before, subscribes })
  }
}
