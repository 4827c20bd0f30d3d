// subscribe, unsubscribe and sub_refresh. The steps of a subscribe:
//
//   subscribe -+- token ------> its claims ----------+-> begin ---> prepare ----------------> finish
//              '- no token ---> handler or options --'   the plan   position, recovery and    reply, then
//                                                                   presence at the broker    live messages

import { disconnects, errors, unsubscribes } from '../../../base/errors.js'
import { SubscribeEvent } from '../../hooks/events.js'
import { payloadOf } from '../../protocol/payload.js'
import { ask } from '../ask.js'
import { prepareCached } from '../cache-empty.js'
import { isRevoked } from '../denials.js'
import { extendSubscription, isPast } from '../expiry.js'
import { grantBy, grantOf, Plan } from '../plan.js'
import { PollPlan } from '../polls.js'
import { whenRead } from '../replies.js'
import {
  CAPABILITY_GRANT,
  checkServerFilter,
  maySubscribeByCapability,
  replaceServerFilter,
} from '../rights.js'
import { Kind, Source, subscribeBegins, subscribeEnds, waitsForSubscribe } from '../subscription.js'
import { beginCatchUp, checkType, continueCatchUp } from './catch-up.js'
import { withClaims } from './refresh.js'
import { SubRefresh, track, untrack } from './track.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { SubscribeClaims } from '../../auth/tokens.js' */
/** @import { SubscribeAnswer } from '../../../channels/broker/contract.js' */
/** @import { Channel } from '../../../channels/hub/channel.js' */
/** @import { SubscribeResult } from '../../protocol/contract.js' */
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
  // A UTF-16 code unit is at most 3 bytes of UTF-8: skips counting for most names.
  if (
    channel.length * 3 > config.channel.max_length &&
    Buffer.byteLength(channel) > config.channel.max_length
  ) {
    throw errors.badRequest
  }
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (request.type || namespace.kind !== 'stream') {
    checkType(request, namespace)
    if (continueCatchUp(session, id, request, namespace)) return
  }
  if (session.subscription(channel)) throw errors.alreadySubscribed
  if (session.channelCount >= config.client.channel_limit) throw errors.limitExceeded
  const filtered = namespace.options.allow_tags_filter && namespace.kind !== 'shared_poll'
  if (request.tf && !filtered) throw errors.badRequest

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

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace */
function subscribeWithoutToken(session, id, request, namespace) {
  const { context } = session
  const { channel } = request
  const allowed = context.rules.maySubscribe(channel, namespace, session.user)
  const handler = context.rules.subscribeHandler(channel, namespace)
  const start = (/** @type {Grant | null} */ grant) => {
    if (grant === null && !allowed) throw errors.permissionDenied
    begin(session, id, request, namespace, grant ?? grantBy(sourceOfAllowed(session, channel, namespace)))
  }
  // Before the handler. The options need no capability if they allow it and there is no handler.
  if ((handler !== null || !allowed) && maySubscribeByCapability(session, channel))
    return start(CAPABILITY_GRANT)
  if (handler === null) return start(null)
  ask(
    session,
    id,
    handler,
    new SubscribeEvent(session, channel, allowed, payloadOf(request.data)),
    answer => {
      if (answer === null) return start(null)
      if (isPast(answer.expireAt, context)) throw errors.expired
      const grant = grantOf(answer, Source.SUBSCRIBE_PROXY)
      if (typeof grant.data === 'object' && !session.codec.binary) throw disconnects.inappropriateProtocol
      start(grant)
    },
  )
}

/** @param {Session} session @param {string} channel an allowed one @param {Namespace} namespace @returns {number} */
function sourceOfAllowed({ context: { config, rules } }, channel, namespace) {
  if (config.client.insecure) return Source.INSECURE
  return rules.userLimited(channel, namespace) === undefined ? Source.OPTION : Source.USER_LIMITED
}

/** @param {Session} session @param {string} channel @param {SubscribeClaims} claims */
function grantOfToken(session, channel, claims) {
  const foreign = claims.user !== session.user || claims.channel !== channel
  if (foreign || (claims.client && claims.client !== session.id)) throw disconnects.invalidToken
  const { info, data, override, expireAt, allow, filter, stamp } = claims
  return { info, data, override, expireAt, allow, filter, stamp, source: Source.SUBSCRIPTION_TOKEN }
}

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {Grant} grant */
function begin(session, id, request, namespace, grant) {
  checkServerFilter(namespace, grant.filter)
  if (namespace.mapRules !== null) return beginCatchUp(session, id, request, namespace, grant)
  if (namespace.kind === 'shared_poll') return beginPoll(session, id, request, namespace, grant)
  const plan = new Plan(session, request.channel, namespace, request, grant, false)
  if (plan.recovering) whenRead(session, id, () => prepare(session, id, plan))
  else prepare(session, id, plan)
}

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {Grant} grant */
function beginPoll(session, id, request, namespace, grant) {
  const plan = new PollPlan(session, request.channel, namespace, request, grant)
  session.hold()
  plan.open(error =>
    session.resume(id, () => {
      if (error) throw error
      prepare(session, id, plan)
    }),
  )
}

/** @param {Session} session @param {number} id @param {Plan} plan */
function prepare(session, id, plan) {
  session.hold()
  prepareCached(plan, (error, channel, answer) => {
    if (session.closed && !error) plan.abandon(channel)
    if (error) plan.drop()
    session.resume(id, () => {
      if (error) throw error
      finish(session, id, plan, channel, answer)
    })
  })
}

/**
 * Undoes `prepare` before throwing.
 * @param {Session} session @param {number} id @param {Plan} plan @param {Channel} channel
 * @param {SubscribeAnswer} answer
 */
function finish(session, id, plan, channel, answer) {
  // The server API or another command may have subscribed the session.
  if (session.subscription(plan.channel)) {
    // `abandon` would also remove the presence of that subscription.
    session.context.hub.release(channel)
    plan.drop()
    throw errors.alreadySubscribed
  }
  if (session.channelCount >= session.context.config.client.channel_limit) {
    plan.abandon(channel)
    throw errors.limitExceeded
  }
  const result = plan.result(answer)
  const refusal = refusalOf(session, plan, channel, result)
  if (refusal !== null) {
    plan.abandon(channel)
    throw refusal
  }
  session.send(session.codec.subscribe(id, result))
  plan.join(channel)
  subscribeEnds(session, id)
}

/** @param {Session} session @param {Plan} plan @param {Channel} channel @param {SubscribeResult} result */
function refusalOf(session, plan, channel, result) {
  // A refresh may have ended the capabilities meanwhile.
  if (plan.grant.capability && !maySubscribeByCapability(session, plan.channel))
    return errors.permissionDenied
  if (isRevoked(session, plan)) return errors.tokenRevoked
  if (plan.rejectUnrecovered && !result.recovered) return errors.unrecoverablePosition
  if (!session.canReceive(result.publications)) return disconnects.inappropriateProtocol
  // Immediately before the join, to count filters of concurrent joins.
  return plan.mayFilter(channel) ? null : errors.limitExceeded
}

/** @param {Session} session @param {number} id @param {any} request */
export function unsubscribe(session, id, request) {
  if (!waitsForSubscribe(session, id, request, unsubscribeInTurn, false))
    unsubscribeInTurn(session, id, request)
}

/** @param {Session} session @param {number} id @param {any} request */
function unsubscribeInTurn(session, id, request) {
  session.extra?.catchUps?.end(request.channel)
  const subscription = session.subscription(request.channel)
  if (subscription) {
    session.removeSubscription(subscription)
    session.context.lifecycle?.unsubscribed(session, request.channel, 0, 'client unsubscribed')
  }
  session.send(session.codec.empty(id, 'unsubscribe'))
}

/** @param {Session} session @param {number} id @param {any} request */
export function subRefresh(session, id, request) {
  const { channel, token, type = SubRefresh.TOKEN } = request
  if (type === SubRefresh.TRACK) return track(session, id, request)
  if (type === SubRefresh.UNTRACK) return untrack(session, id, request)
  if (type !== SubRefresh.TOKEN) throw errors.badRequest
  const { tokens, rules } = session.context
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  // Clients connected before a reload added the handler still refresh.
  const handled = Boolean(rules.resolve(channel)?.handlers.subRefresh)
  if (handled && !subscription.is(Kind.REFRESHED_BY_CLIENT)) throw disconnects.badRequest
  if (!token) throw errors.badRequest
  withClaims(
    session,
    id,
    () => tokens.subscribe(token),
    error => refusalOfRefresh(session, channel, error),
    claims => extend(session, id, channel, claims),
  )
}

/** @param {Session} session @param {string} channel @param {Error} error of the token */
function refusalOfRefresh(session, channel, error) {
  // The client is subscribed: an invalid token is not a missing permission.
  if (error === errors.permissionDenied) return disconnects.invalidToken
  // After error 109 alone, SDKs end the subscription; after this they get a new token.
  const subscription = session.subscription(channel)
  if (error === errors.tokenRevoked && subscription)
    session.unsubscribe(subscription, unsubscribes.stateInvalidated)
  return error
}

/** @param {Session} session @param {number} id @param {string} channel @param {SubscribeClaims} claims */
function extend(session, id, channel, claims) {
  const { context, codec } = session
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  const { info, expireAt = 0, allow = 0, filter, stamp } = grantOfToken(session, channel, claims)
  const finish = filter && replaceServerFilter(session, subscription, filter)
  extendSubscription(session, subscription, info, expireAt, stamp)
  subscription.renewed(allow)
  session.send(
    codec.refreshed(id, 'sub_refresh', {
      expires: expireAt > 0,
      ttl: expireAt > 0 ? context.ttl(expireAt) : 0,
    }),
  )
  finish?.()
}
