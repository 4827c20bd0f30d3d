import { Disconnect, disconnects, errors, unsubscribes } from '../../base/errors.js'
import { readServerFilter } from '../../clients/protocol/filter.js'
import { prepareCached } from '../../clients/session/cache-empty.js'
import { expireConnection, renewInfo } from '../../clients/session/expiry.js'
import { Plan } from '../../clients/session/plan.js'
import { serverFilterOf } from '../../clients/session/rights.js'
import { Source } from '../../clients/session/subscription.js'
import { compileGlob } from '../../config/glob.js'
import { listConnections } from './connection-list.js'
import { compileLabelFilter } from './where.js'

/** @import { WorkerContext } from '../../clients/session/context.js' */
/** @import { Session } from '../../clients/session/session.js' */
/** @import { NodeIdentity } from './context.js' */

const FIRST_RETRY_MS = 50
const MAX_RETRY_MS = 1000
const MAX_TRIES = 30

class ServerSubscribes {
  /** Subscriptions in progress. @type {Map<Session, Set<{channel: string, cancelled: boolean}>>} */
  #underway = new Map()

  /** @param {Session} session @param {string} channel @param {() => Plan} newPlan */
  start(session, channel, newPlan) {
    const entry = { channel, cancelled: false }
    const own = this.#underway.get(session) ?? new Set()
    this.#underway.set(session, own.add(entry))
    this.#try(session, entry, newPlan, 1)
  }

  /** Cancels subscriptions in progress before an unsubscribe. @param {Session} session @param {string} channel */
  cancel(session, channel) {
    for (const entry of this.#underway.get(session) ?? [])
      if (entry.channel === channel) entry.cancelled = true
  }

  /** @param {Session} session @param {{channel: string, cancelled: boolean}} entry */
  #finish(session, entry) {
    const own = this.#underway.get(session)
    own?.delete(entry)
    if (own?.size === 0) this.#underway.delete(session)
  }

  /**
   * @param {Session} session @param {{channel: string, cancelled: boolean}} entry @param {() => Plan} newPlan
   * @param {number} tries
   */
  #try(session, entry, newPlan, tries) {
    const { config, log } = session.context
    const held = session.subscription(entry.channel) !== undefined
    if (!held && session.subscriptionCount >= config.client.channel_limit) {
      this.#finish(session, entry)
      return session.close(disconnects.channelLimit)
    }
    const plan = newPlan()
    prepareCached(plan, (error, channel, answer) => {
      const dropped = session.closed || entry.cancelled
      if (error && !dropped && error === errors.internal && tries < MAX_TRIES) {
        const delay = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1))
        setTimeout(() => {
          if (session.closed || entry.cancelled) this.#finish(session, entry)
          else this.#try(session, entry, newPlan, tries + 1)
        }, delay)
        return
      }
      this.#finish(session, entry)
      if (error) {
        if (dropped) return
        log.error({ err: error, channel: plan.channel }, 'server-side subscribe failed')
        return session.close(disconnects.insufficientState)
      }
      if (dropped) return plan.abandon(channel)
      this.#join(session, plan, channel, answer)
    })
  }

  /**
   * @param {Session} session @param {Plan} plan @param {import('../../channels/hub/channel.js').Channel} channel
   * @param {import('../../channels/broker/contract.js').SubscribeAnswer} answer
   */
  #join(session, plan, channel, answer) {
    const { hub } = session.context
    const { publications, ...result } = plan.result(answer)
    if (!session.canReceive(publications)) {
      plan.abandon(channel)
      return session.inappropriateProtocol()
    }
    // An existing subscription becomes server-side: it moves to the new one in one step.
    const former = session.subscription(plan.channel)
    const server = plan.filter?.server ?? null
    // A refresh has replaced the filter meanwhile, or there is no room for it; or deltas were negotiated, which exclude it.
    const stale = former && plan.grant.keepsFilter && former.cohort.filter?.server?.key !== server?.key
    if (stale || (server !== null && former?.cohort.delta) || !plan.mayFilter(channel)) {
      plan.abandon(channel)
      return session.close(disconnects.insufficientState)
    }
    if (former) {
      // Deliver everything before the new position.
      hub.batches.flush(channel, 'subscribe')
      // The codec may have failed to encode a payload of the batch.
      if (session.closed) return plan.abandon(channel)
      session.detachSubscription(former)
      plan.withdraw(former)
    }
    session.send(session.codec.subscribed(plan.channel, result))
    // A push cannot negotiate deltas: keep the earlier negotiation.
    plan.delta = former?.cohort.delta ?? false
    // A subscribe push has no field for publications: they follow as separate pushes.
    for (const publication of publications ?? []) {
      const message = plan.delta
        ? session.codec.deltaPublication(plan.channel, publication, null)
        : session.codec.publication(plan.channel, publication)
      session.send(message)
    }
    plan.join(channel)
  }
}

/**
 * Selects connections; `labelFilter`: a FilterNode, which their labels match.
 * @typedef {{user: string, client?: string, session?: string, allUsers?: boolean, labelFilter?: any}} Target
 */

/** @param {WorkerContext} context @param {Target} target @returns {Session[]} with any labels */
const targets = ({ sessions }, { user, client, session, allUsers }) =>
  sessions.of(user ?? '', { client, session, allUsers })

/**
 * @param {Target} target
 * @returns {(session: Session) => boolean} whether the labels match
 * @throws {Error} errors.badRequest: a filter that this worker does not know
 */
const labelsOf = ({ labelFilter }) =>
  labelFilter === undefined ? () => true : compileLabelFilter(labelFilter)

/**
 * `before`: affects only connections made before, ms of performance.now().
 * @typedef {{node: NodeIdentity, before: number, subscribes: ServerSubscribes}} Parts
 */

/** @param {WorkerContext} context @param {Target} target @param {Parts} parts @param {(session: Session) => void} visit */
function visitTargets(context, target, { before }, visit) {
  const matches = labelsOf(target)
  context.sessions.visitInSlices(targets(context, target), session => {
    if (session.closed || session.since >= before || !matches(session)) return
    try {
      visit(session)
    } catch (error) {
      context.log.error({ err: error, client: session.id }, 'server API call failed for a client')
    }
  })
}

/** Orders that `select` may execute. */
const SELECTING = Object.freeze(['subscribe', 'unsubscribe', 'disconnect', 'refresh'])

/**
 * A worker's part of server API methods; thousands of connections are processed in slices.
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

  /** Registers the clients of a request. @returns null: not available in this worker */
  acks: ({ acks }, survey) => acks?.register(survey) ?? null,

  list_connections: (context, query, { node }) => listConnections(context, query, node),

  /**
   * An order with `labelFilter` or `allUsers`. Nodes of earlier versions do not know them and would reach too many
   * clients: they refuse this operation.
   */
  select(context, { op, ...params }, parts) {
    if (!SELECTING.includes(op)) throw new Error(`unknown operation ${op}`)
    return operations[op](context, params, parts)
  },

  /** `claim`: id of the client to keep as the user's only one; `time`: see Control.order */
  disconnect(context, { whitelist, code, reason, claim, time, ...target }, parts) {
    const disconnect = new Disconnect(code, reason)
    const { before } = parts
    visitTargets(context, target, claim ? { ...parts, before: Infinity } : parts, session => {
      if (claim ? !context.singles.loses(session, claim, time, before) : whitelist?.includes(session.id))
        return
      session.close(disconnect)
    })
  },

  unsubscribe(context, { channel, ...target }, parts) {
    visitTargets(context, target, parts, session => {
      parts.subscribes.cancel(session, channel)
      const subscription = session.subscription(channel)
      if (subscription) session.unsubscribe(subscription, unsubscribes.server)
      else session.refuseCatchUp(channel, unsubscribes.server)
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

  /** A change of the denylist, kept by the node that was called. */
  denied({ broker }, denial) {
    broker.denials.apply([denial])
  },

  /** @returns true: `expireAt` has passed, and there are connections */
  subscribe(context, { channel, expireAt, info, data, recoverSince, override, filter, ...target }, parts) {
    const namespace = context.rules.resolve(channel)
    if (!namespace) return
    if (expireAt > 0 && expireAt <= context.now()) return targets(context, target).some(labelsOf(target))
    const request = recoverSince ? { recover: true, ...recoverSince } : {}
    const grant = { info, data, expireAt, override, source: Source.API }
    const given = filter ? readServerFilter(filter) : null
    visitTargets(context, target, parts, session =>
      parts.subscribes.start(session, channel, () => {
        const own = given ?? serverFilterOf(session, channel) ?? undefined
        const whole = { ...grant, filter: own, keepsFilter: given === null }
        return new Plan(session, channel, namespace, request, whole, true)
      }),
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
