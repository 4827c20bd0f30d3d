// subscribe, unsubscribe and sub_refresh. The steps of a subscribe:
//
//   subscribe -+- token ------> its claims ----------+-> begin ---> prepare ----------------> finish
//              '- no token ---> handler or options --'   the plan   position, recovery and    reply, then
//                                                                   presence at the broker    live messages

import { disconnects, errors } from '../../../base/errors.js'
import { SubscribeEvent } from '../../hooks/events.js'
import { payloadOf } from '../../protocol/payload.js'
import { ask } from '../ask.js'
import { extendSubscription, isPast } from '../expiry.js'
import { grantOf, NO_GRANT, Plan } from '../plan.js'
import { whenRead } from '../replies.js'
import { Kind, subscribeBegins, subscribeEnds, waitsForSubscribe } from '../subscription.js'
import { withClaims } from './refresh.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { SubscribeClaims } from '../../auth/tokens.js' */
/** @import { SubscribeAnswer } from '../../../channels/broker/contract.js' */
/** @import { Disconnect } from '../../../base/errors.js' */
/** @import { Channel } from '../../../channels/hub/channel.js' */
/** @import { Grant } from '../plan.js' */
/** @import { Session } from '../session.js' */

/** @param {Session} session @param {number} id @param {any} request */
export function subscribe(session, id, request) {
  if (!waitsForSubscribe(session, id, request, subscribeInTurn, true)) subscribeInTurn(session, id, request)
}

/** @param {Session} session @param {number} id @param {any} request */
function subscribeInTurn(session, id, request) {
  const { config, rules, tokens } = session.context
  const { channel, token } = request
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (request.delta && request.delta !== 'fossil') throw disconnects.badRequest
  // A UTF-16 code unit takes at most 3 bytes of UTF-8: most names need no count of bytes.
  if (
    channel.length * 3 > config.channel.max_length &&
    Buffer.byteLength(channel) > config.channel.max_length
  ) {
    throw errors.badRequest
  }
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (session.subscription(channel)) throw errors.alreadySubscribed
  if (session.subscriptionCount >= config.client.channel_limit) throw errors.limitExceeded
  // Only streams, type 0, are supported.
  if (request.type) throw errors.permissionDenied
  if (request.tf && !namespace.options.allow_tags_filter) throw errors.badRequest

  subscribeBegins(session, id, channel)
  if (!token) return subscribeWithoutToken(session, id, request, namespace)
  withClaims(
    session,
    id,
    () => tokens.subscribe(token),
    error => error,
    claims => begin(session, id, request, namespace, grantOfToken(session, channel, claims)),
  )
}

/**
 * The subscribe handler decides. Without one, or if it returns null, the channel's options decide.
 * @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace
 */
function subscribeWithoutToken(session, id, request, namespace) {
  const { context } = session
  const { channel } = request
  const allowed = context.rules.maySubscribe(channel, namespace, session.user)
  const handler = context.rules.subscribeHandler(channel, namespace)
  const start = (/** @type {Grant | null} */ grant) => {
    if (grant === null && !allowed) throw errors.permissionDenied
    begin(session, id, request, namespace, grant ?? NO_GRANT)
  }
  if (handler === null) return start(null)
  ask(
    session,
    id,
    handler,
    new SubscribeEvent(session, channel, allowed, payloadOf(request.data)),
    answer => {
      if (answer === null) return start(null)
      if (isPast(answer.expireAt, context)) throw errors.expired
      const grant = grantOf(answer)
      if (typeof grant.data === 'object' && !session.codec.binary) throw disconnects.inappropriateProtocol
      start(grant)
    },
  )
}

/**
 * @param {Session} session @param {string} channel @param {SubscribeClaims} claims of a subscription token
 * @returns {Grant}
 * @throws {Disconnect} if the token is for another user, channel or client
 */
function grantOfToken(session, channel, claims) {
  const foreign = claims.user !== session.user || claims.channel !== channel
  if (foreign || (claims.client && claims.client !== session.id)) throw disconnects.invalidToken
  const { info, data, override, expireAt } = claims
  return { info, data, override, expireAt, token: true }
}

/**
 * Plans the subscription. A recovery waits until the client has read earlier large replies.
 * @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {Grant} grant
 */
function begin(session, id, request, namespace, grant) {
  const plan = new Plan(session, request.channel, namespace, request, grant, false)
  if (plan.recovering) whenRead(session, id, () => prepare(session, id, plan))
  else prepare(session, id, plan)
}

/** Gets from the broker what the plan needs. @param {Session} session @param {number} id @param {Plan} plan */
function prepare(session, id, plan) {
  session.hold()
  session.context.hub.prepare(plan.channel, plan.wants(), (error, channel, answer) => {
    if (session.closed && !error) plan.abandon(channel)
    session.resume(id, () => {
      if (error) throw error
      finish(session, id, plan, channel, answer)
    })
  })
}

/**
 * Sends the reply and makes the subscription live.
 * @param {Session} session @param {number} id @param {Plan} plan @param {Channel} channel
 * @param {SubscribeAnswer} answer of the broker
 * @throws {Error | Disconnect} after it has undone `prepare`
 */
function finish(session, id, plan, channel, answer) {
  // The server API, or another command, may have subscribed the session meanwhile.
  if (session.subscription(plan.channel)) {
    // `abandon` would also remove the presence of that subscription.
    session.context.hub.release(channel)
    throw errors.alreadySubscribed
  }
  if (session.subscriptionCount >= session.context.config.client.channel_limit) {
    plan.abandon(channel)
    throw errors.limitExceeded
  }
  const result = plan.result(answer)
  if (plan.rejectUnrecovered && !result.recovered) {
    plan.abandon(channel)
    throw errors.unrecoverablePosition
  }
  if (!session.canReceive(result.publications)) {
    plan.abandon(channel)
    throw disconnects.inappropriateProtocol
  }
  // Checked right before the join: filters of subscriptions that joined meanwhile count too.
  if (!plan.mayFilter(channel)) {
    plan.abandon(channel)
    throw errors.limitExceeded
  }
  session.send(session.codec.subscribe(id, result))
  plan.join(channel)
  subscribeEnds(session, id)
}

/** Also succeeds if there is no subscription. @param {Session} session @param {number} id @param {any} request */
export function unsubscribe(session, id, request) {
  if (!waitsForSubscribe(session, id, request, unsubscribeInTurn, false))
    unsubscribeInTurn(session, id, request)
}

/** @param {Session} session @param {number} id @param {any} request */
function unsubscribeInTurn(session, id, request) {
  const subscription = session.subscription(request.channel)
  if (subscription) {
    session.removeSubscription(subscription)
    session.context.lifecycle?.unsubscribed(session, request.channel, 0, 'client unsubscribed')
  }
  session.send(session.codec.empty(id, 'unsubscribe'))
}

/** @param {Session} session @param {number} id @param {any} request */
export function subRefresh(session, id, { channel, token }) {
  const { tokens, rules } = session.context
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  // A sub_refresh handler extends subscriptions without their clients, except those whose clients were told the expiry
  // before a reload added the handler.
  const handled = Boolean(rules.resolve(channel)?.handlers.subRefresh)
  if (handled && !subscription.is(Kind.REFRESHED_BY_CLIENT)) throw disconnects.badRequest
  if (!token) throw errors.badRequest
  withClaims(
    session,
    id,
    () => tokens.subscribe(token),
    refusal,
    claims => extend(session, id, channel, claims),
  )
}

/** @param {Error} error of the token @returns {Error} */
function refusal(error) {
  // The client already has the subscription, so a bad token is not a missing permission.
  return error === errors.permissionDenied ? disconnects.invalidToken : error
}

/** @param {Session} session @param {number} id @param {string} channel @param {SubscribeClaims} claims */
function extend(session, id, channel, claims) {
  const { context, codec } = session
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  const { info, expireAt = 0 } = grantOfToken(session, channel, claims)
  extendSubscription(session, subscription, info, expireAt)
  session.send(
    codec.refreshed(id, 'sub_refresh', {
      expires: expireAt > 0,
      ttl: expireAt > 0 ? context.ttl(expireAt) : 0,
    }),
  )
}
