import { compileGlob } from '../config/glob.js'
import { Disconnect, disconnects, unsubscribes } from '../errors.js'
import { expireConnection, renewInfo } from '../session/expiry.js'
import { Plan } from '../session/plan.js'

/** @import { Session } from '../session/session.js' */
/** @import { WorkerContext } from '../worker/context.js' */
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

/** @param {WorkerContext} context @param {Target} target @param {(session: Session) => void} visit */
function visitTargets(context, target, visit) {
  context.sessions.visitInSlices(targets(context, target), session => {
    if (session.closed) return
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
 * @type {Record<string, (context: WorkerContext, params: any, node: NodeIdentity) => any>}
 */
const operations = Object.freeze({
  channels({ hub }, { pattern }) {
    const matches = pattern ? compileGlob(pattern) : null
    /** @type {Record<string, number>} A channel may be called `__proto__`. */
    const counts = Object.create(null)
    for (const [name, { count }] of hub.channels) if (!matches || matches.test(name)) counts[name] = count
    return counts
  },

  info({ sessions, hub, metrics, clock }, _params, { uid, name, version, startedAt }) {
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
  connections(context, { limit, all, ...target }, { uid, name }) {
    const found = all ? firstOf(context, limit) : targets(context, target)
    return {
      node: { uid, name },
      worker: context.index,
      total: all ? context.sessions.count : found.length,
      connections: found.slice(0, limit).map(describe),
    }
  },

  disconnect(context, { whitelist, code, reason, ...target }) {
    const disconnect = new Disconnect(code, reason)
    visitTargets(context, target, session => {
      if (!whitelist?.includes(session.id)) session.close(disconnect)
    })
  },

  unsubscribe(context, { channel, ...target }) {
    visitTargets(context, target, session => {
      const subscription = session.subscription(channel)
      if (subscription) session.unsubscribe(subscription, unsubscribes.server)
    })
  },

  refresh(context, { expired, expireAt, info, ...target }) {
    const expires = expireAt > 0
    visitTargets(context, target, session => {
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
  subscribe(context, { channel, expireAt, info, data, recoverSince, override, ...target }) {
    const namespace = context.rules.resolve(channel)
    if (!namespace) return
    if (expireAt > 0 && expireAt <= context.now()) return targets(context, target).length > 0
    const request = recoverSince ? { recover: true, ...recoverSince } : {}
    const grant = { info, data, expireAt, override }
    visitTargets(context, target, session => {
      serverSubscribe(session, new Plan(session, channel, namespace, request, grant, true))
    })
  },
})

/** @param {Session} session @param {Plan} plan */
function serverSubscribe(session, plan) {
  const { hub, config } = session.context
  const held = session.subscription(plan.channel) !== undefined
  if (!held && session.subscriptionCount >= config.client.channel_limit) {
    return session.close(disconnects.channelLimit)
  }
  hub.prepare(plan.channel, plan.wants(), (error, channel, answer) => {
    if (error)
      return session.context.log.error({ err: error, channel: plan.channel }, 'server-side subscribe failed')
    if (session.closed) return plan.abandon(channel)
    const { publications, ...result } = plan.result(answer)
    if (!session.canReceive(publications)) {
      plan.abandon(channel)
      return session.inappropriateProtocol()
    }
    // An existing subscription becomes server-side: it moves to the new one in one step.
    const former = session.subscription(plan.channel)
    if (former) {
      // Its client gets everything before the new position.
      hub.batches.flush(channel, 'subscribe')
      // The batch may have had a payload that its codec cannot carry.
      if (session.closed) return plan.abandon(channel)
      session.detachSubscription(former)
      plan.withdraw(former)
    }
    session.send(session.codec.subscribed(plan.channel, result))
    // A push cannot negotiate deltas; the client goes on reading the channel as negotiated before.
    plan.delta = former?.cohort.delta ?? false
    // A subscribe push has no field for publications: they follow as separate pushes.
    for (const publication of publications ?? []) {
      const message = plan.delta
        ? session.codec.deltaPublication(plan.channel, publication, null)
        : session.codec.publication(plan.channel, publication)
      session.send(message)
    }
    plan.join(channel)
  })
}

/**
 * @param {WorkerContext} context @param {NodeIdentity} node
 * @returns {(op: string, params: any) => any} BrokerEvents.survey
 */
export function createOperations(context, node) {
  return (op, params) => {
    const operation = Object.hasOwn(operations, op) ? operations[op] : undefined
    if (!operation) throw new Error(`unknown operation ${op}`)
    return operation(context, params, node)
  }
}
