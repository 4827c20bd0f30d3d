// subscribe to a map, page by page. The steps of one command:
//
//   STATE --> [hold] -> state page --+-> page
//                                    '-> transition --+-> LIVE
//   STREAM -> transition, or changes --> page         '-> page: too many changes for one reply

import { disconnects, errors } from '../../../base/errors.js'
import { Phase } from '../../protocol/requests.js'
import { resumeAfter } from '../ask.js'
import { bytesOf, CatchUp, CatchUps } from '../catch-up.js'
import { WANTS_NOTHING } from '../plan.js'
import { maxReplyBytes, whenRead } from '../replies.js'
import { continues, subscribeBegins, subscribeEnds } from '../subscription.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Publication, StatePage, SubscribeAnswer } from '../../../channels/broker/contract.js' */
/** @import { Channel } from '../../../channels/hub/channel.js' */
/** @import { SubscribeResult } from '../../protocol/contract.js' */
/** @import { State } from '../catch-up.js' */
/** @import { Grant } from '../plan.js' */
/** @import { Session } from '../session.js' */

/** Attempts to join parts: each may find new keys. */
const MAX_TRIES = 3

/** `type` of requests. */
const TYPES = Object.freeze(['stream', 'map', 'map_clients', 'map_users', 'shared_poll'])

/** @param {any} request @param {Namespace} namespace */
export const isOfType = ({ type = 0 }, { kind }) => TYPES[type] === kind

/** @param {any} request @param {Namespace} namespace @throws {Error} the channel is of another type */
export function checkType({ type = 0 }, { kind, handlers }) {
  if (TYPES[type] === kind) {
    if (kind === 'shared_poll' && handlers.pollRefresh === null) throw errors.notAvailable
    return
  }
  if (TYPES[type] === 'shared_poll') throw errors.notAvailable
  throw kind === 'shared_poll' ? errors.badRequest : errors.permissionDenied
}

/**
 * Answers a request that belongs to a catch-up, or checks a first one.
 * @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace
 * @returns {boolean} false: it needs permission
 */
export function continueCatchUp(session, id, request, { mapRules }) {
  // A shared poll has no catch-up.
  if (mapRules === null) return false
  const { channel, phase = Phase.LIVE, cursor = '', epoch = '' } = request
  const catchUps = session.extra?.catchUps
  catchUps?.sweep(channel)
  const catchUp = catchUps?.get(channel)
  if (!continues(request)) {
    if (catchUp && !catchUp.expired) throw errors.alreadySubscribed
    catchUps?.end(channel)
    return false
  }
  if (catchUp === undefined) {
    if (cursor !== '' || !request.recover) throw errors.permissionDenied
    checkPhase(phase, mapRules.streamSize > 0)
    if (epoch === '') throw errors.unrecoverablePosition
    return false
  }
  catchUp.command = id
  catchUp.check()
  checkPhase(phase, catchUp.streamed)
  if (epoch !== '' && epoch !== catchUp.epoch) throw errors.unrecoverablePosition
  subscribeBegins(session, id, channel)
  proceed(session, id, catchUp, request)
  return true
}

/** @param {number} phase @param {boolean} streamed */
function checkPhase(phase, streamed) {
  const known = phase === Phase.STATE || (streamed && (phase === Phase.STREAM || phase === Phase.LIVE))
  if (!known) throw errors.badRequest
}

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {Grant} grant */
export function beginCatchUp(session, id, request, namespace, grant) {
  // The permission may have taken time.
  if (session.subscription(request.channel)) throw errors.alreadySubscribed
  if (session.channelCount >= session.context.config.client.channel_limit) throw errors.limitExceeded
  const catchUp = new CatchUp(session, request.channel, namespace, request, grant, false)
  catchUp.command = id
  const extra = session.needExtra()
  extra.catchUps ??= new CatchUps()
  extra.catchUps.begin(catchUp)
  if (request.phase !== Phase.STATE || catchUp.streamed) return proceed(session, id, catchUp, request)
  session.hold()
  session.context.hub.prepare(catchUp.channel, WANTS_NOTHING, (error, channel) => {
    if (!error) catchUp.hold(channel)
    session.resume(id, () => {
      if (error) throw error
      proceed(session, id, catchUp, request)
    })
  })
}

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {any} request */
function proceed(session, id, catchUp, request) {
  const { phase = Phase.LIVE, offset = 0 } = request
  const limit = catchUp.pageSize(request.limit)
  whenRead(session, id, () => {
    catchUp.check()
    if (phase === Phase.STATE) return readState(session, id, catchUp, request.cursor ?? '', limit)
    catchUp.offset = offset
    const near = phase === Phase.LIVE || catchUp.top < 0 || offset + limit >= catchUp.top
    if (!near) return readStream(session, id, catchUp, limit)
    // The first request reads the top of the stream, too.
    const most = phase === Phase.LIVE || catchUp.top >= 0 ? catchUp.liveLimit : limit
    goLive(session, id, catchUp, { most, limit, state: null, phase })
  })
}

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {string} cursor @param {number} limit */
function readState(session, id, catchUp, cursor, limit) {
  const { maps } = session.context.broker
  const query = { ...catchUp.query(cursor, limit), text: catchUp.acceptsText }
  const read = maps.state(catchUp.channel, query, catchUp.rules)
  resumeAfter(session, id, read, page => {
    catchUp.check()
    if (cursor === '') catchUp.freeze(page)
    const state = page.text ?? catchUp.filtered(page.entries)
    if (!session.canReceive(state)) throw disconnects.inappropriateProtocol
    const near = !catchUp.streamed || catchUp.offset + limit >= page.offset
    if (page.cursor === '' && near)
      return goLive(session, id, catchUp, { most: catchUp.liveLimit, limit, state, phase: Phase.STATE })
    reply(session, id, catchUp, catchUp.statePage(page.cursor, state))
  })
}

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {number} limit */
function readStream(session, id, catchUp, limit) {
  const { offset: sinceOffset, epoch: sinceEpoch, channel } = catchUp
  const { pubsub } = session.context.broker
  const filter = { limit, sinceOffset, sinceEpoch, maxBytes: maxReplyBytes(session) }
  resumeAfter(session, id, pubsub.history(channel, filter, catchUp.rules.metaTtl), ({ publications }) => {
    catchUp.check()
    if (publications[0]?.offset !== sinceOffset + 1) throw errors.unrecoverablePosition
    answerStream(session, id, catchUp, publications)
  })
}

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {Publication[]} changes */
function answerStream(session, id, catchUp, changes) {
  const { publications, missing } = catchUp.readable(changes)
  if (missing.length > 0)
    return withWholes(session, id, catchUp, missing, () => answerStream(session, id, catchUp, changes))
  if (!session.canReceive(publications)) throw disconnects.inappropriateProtocol
  reply(session, id, catchUp, catchUp.streamPage(changes[changes.length - 1].offset, publications))
}

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {SubscribeResult} page */
function reply(session, id, catchUp, page) {
  catchUp.command = 0
  session.send(session.codec.subscribe(id, page))
  subscribeEnds(session, id)
}

/**
 * Reads the entries of parts, then tries again.
 * @param {Session} session @param {number} id @param {CatchUp} catchUp @param {string[]} keys @param {() => void} work
 */
function withWholes(session, id, catchUp, keys, work) {
  if (++catchUp.tries > MAX_TRIES) throw errors.unrecoverablePosition
  resumeAfter(session, id, catchUp.readWholes(keys), () => {
    catchUp.check()
    work()
  })
}

/**
 * `most`: changes in the reply; `limit`: page size of the request; `state`: in the reply, null without.
 * @typedef {{phase: number, most: number, limit: number, state: State | null}} Transition
 */

/** @param {Session} session @param {number} id @param {CatchUp} catchUp @param {Transition} transition */
function goLive(session, id, catchUp, transition) {
  const wants = catchUp.transition(transition.most, transition.state ?? [])
  session.hold()
  session.context.hub.prepare(catchUp.channel, wants, (error, channel, answer) => {
    if (session.closed && !error) catchUp.abandon(channel)
    session.resume(id, () => {
      if (error) throw error
      finish(session, id, catchUp, transition, channel, answer)
    })
  })
}

/**
 * Undoes `prepare` unless the session joins.
 * @param {Session} session @param {number} id @param {CatchUp} catchUp @param {Transition} transition
 * @param {Channel} channel @param {SubscribeAnswer} answer
 */
function finish(session, id, catchUp, transition, channel, answer) {
  // Subscribed by the server API.
  if (session.subscription(catchUp.channel)) {
    session.context.hub.release(channel)
    throw errors.alreadySubscribed
  }
  const { failure } = catchUp
  const changes = failure ? null : catchUp.changes(answer)
  if (changes === null) {
    catchUp.abandon(channel)
    if (failure) throw failure
    return behind(session, id, catchUp, transition, answer)
  }
  const { publications, missing } = catchUp.readable(changes)
  if (missing.length > 0) {
    catchUp.abandon(channel)
    return withWholes(session, id, catchUp, missing, () => goLive(session, id, catchUp, transition))
  }
  const refusal = refusalOf(session, catchUp, channel, publications)
  if (refusal !== null) {
    catchUp.abandon(channel)
    throw refusal
  }
  const result = catchUp.live(answer, publications, transition.state ?? [])
  session.extra?.catchUps?.end(catchUp.channel)
  session.send(session.codec.subscribe(id, result))
  catchUp.join(channel)
  subscribeEnds(session, id)
}

/** @param {Session} session @param {CatchUp} catchUp @param {Channel} channel @param {Publication[]} publications */
function refusalOf(session, catchUp, channel, publications) {
  if (!session.canReceive(publications)) return disconnects.inappropriateProtocol
  // Joined values may be larger than the parts.
  if (bytesOf(publications) > maxReplyBytes(session) && publications.length > 1)
    return errors.unrecoverablePosition
  return catchUp.mayFilter(channel) ? null : errors.limitExceeded
}

/**
 * Changes are missing in the transition: too many for one reply, or lost.
 * @param {Session} session @param {number} id @param {CatchUp} catchUp @param {Transition} transition
 * @param {SubscribeAnswer} answer
 */
function behind(session, id, catchUp, { phase, limit, state }, { offset: top, epoch }) {
  // The client requests the changes.
  if (state !== null) return reply(session, id, catchUp, catchUp.statePage('', state))
  const { offset, liveLimit } = catchUp
  if (catchUp.top < 0) catchUp.top = top
  const far = phase === Phase.STREAM && offset + limit < catchUp.top
  if (epoch !== catchUp.epoch || offset >= top || (!far && top - offset > liveLimit))
    throw errors.unrecoverablePosition
  readStream(session, id, catchUp, limit)
}
