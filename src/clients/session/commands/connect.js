import { Disconnect, disconnects, errors, ReplyError, reasonOf, unsubscribes } from '../../../base/errors.js'
import { bytesOf } from '../../../channels/broker/size.js'
import { identify } from '../../auth/tokens.js'
import { CallFailed } from '../../hooks/contract.js'
import { ConnectEvent } from '../../hooks/events.js'
import { payloadOf, rawOf } from '../../protocol/payload.js'
import { APPEND_FLAG } from '../../protocol/requests.js'
import { ask } from '../ask.js'
import { prepareCached } from '../cache-empty.js'
import { CatchUp } from '../catch-up.js'
import { denialOf } from '../denials.js'
import { expireConnection, isPast } from '../expiry.js'
import { readStates } from '../one-way-maps.js'
import { grantOf } from '../plan.js'
import { IN_REDIS } from '../rate-limits.js'
import { maxReplyBytes } from '../replies.js'
import { planServerSide } from '../server-side.js'
import { State, Trait } from '../state.js'
import { Source } from '../subscription.js'

/** @import { Config } from '../../../config/options.js' */
/** @import { Identity } from '../../auth/tokens.js' */
/** @import { ConnectAnswer, Handlers } from '../../hooks/contract.js' */
/** @import { Channel, PublicationBuffer } from '../../../channels/hub/channel.js' */
/** @import { SubscribeResult } from '../../protocol/contract.js' */
/** @import { Prepared } from '../cache-empty.js' */
/** @import { Grant, Plan } from '../plan.js' */
/** @import { Session } from '../session.js' */

/** @typedef {{plan: Plan, channel: Channel, result: SubscribeResult, liveBuffer: PublicationBuffer | null}} Ready */
/** @param {Session} session @param {number} id @param {any} request */
export function connect(session, id, request) {
  const { context } = session
  const { handlers } = context
  session.state = State.CONNECTING
  if (request.flag & APPEND_FLAG) session.traits |= Trait.JOINS_PARTS
  // Handlers need the id.
  session.id = context.newClientId()
  if (context.observed) session.needExtra().emulatedHeaders = request.headers ?? null
  guarded(session, id, () => {
    if (request.token || handlers.connect === null) identifyClient(session, id, request)
    else askHandler(session, id, request, null)
  })
}

/** @param {Session} session @param {number} id @param {any} request */
function identifyClient(session, id, request) {
  const { config, tokens, handlers } = session.context
  const next = (/** @type {Identity} */ identity) => {
    if (!request.token || !handlers.connectWithToken) return admit(session, id, request, identity)
    session.user = identity.user
    keepDetails(session, request, identity)
    askHandler(session, id, request, identity)
  }
  // `user` is still the trusted header's.
  const identity = identify({ client: config.client, tokens }, request.token, session.user)
  if (!(identity instanceof Promise)) return next(identity)
  session.hold()
  identity.then(
    identity => session.resume(id, () => guarded(session, id, () => next(identity))),
    error => session.resume(id, () => refuse(session, id, error)),
  )
}

/** @param {Session} session @param {number} id @param {any} request @param {Identity | null} identity from a token */
function askHandler(session, id, request, identity) {
  const handler = /** @type {NonNullable<Handlers['connect']>} */ (session.context.handlers.connect)
  const event = new ConnectEvent(session, payloadOf(request.data), request, identity)
  const next = (/** @type {ConnectAnswer | null} */ answer) =>
    guarded(session, id, () => {
      if (answer !== null) admit(session, id, request, identityOf(answer, identity, session))
      else if (identity !== null) admit(session, id, request, identity)
      else identifyClient(session, id, request)
    })
  ask(session, id, handler, event, next, error => refuse(session, id, error))
}

/** @param {ConnectAnswer} answer @param {Identity | null} token @param {Session} session */
function identityOf(answer, token, { context, codec }) {
  if (isPast(answer.expireAt, context)) throw errors.expired
  const data = answer.data && rawOf(answer.data)
  if (typeof data === 'object' && !codec.binary) throw disconnects.inappropriateProtocol
  /** @type {Map<string, Grant>} */
  const subs = new Map(token?.subs)
  for (const [channel, options] of answer.subs ?? []) {
    if (isPast(options.expireAt, context)) throw errors.expired
    const grant = grantOf(options, Source.CONNECT_PROXY)
    // As in a sub_refresh: a filter of the token stays unless there is another one.
    grant.filter ??= token?.subs.get(channel)?.filter
    if (typeof grant.data === 'object' && !codec.binary) throw disconnects.inappropriateProtocol
    subs.set(channel, grant)
  }
  return {
    user: answer.user ?? token?.user ?? '',
    expireAt: Math.max(0, answer.expireAt ?? token?.expireAt ?? 0),
    info: answer.info ?? token?.info,
    meta: answer.meta ?? token?.meta,
    subs,
    data,
    caps: answer.caps === undefined ? token?.caps : answer.caps,
    labels: answer.labels === undefined ? token?.labels : answer.labels,
    stamp: token?.stamp,
    answered: true,
  }
}

/** Refuses the connect if `work` throws. @param {Session} session @param {number} id @param {() => void} work */
function guarded(session, id, work) {
  try {
    work()
  } catch (error) {
    refuse(session, id, error)
  }
}

/** @param {Session} session @param {number} id @param {Error} error */
function refuse(session, id, error) {
  if (error instanceof CallFailed) return refuse(session, id, errors.internal)
  const known = error instanceof Disconnect || error instanceof ReplyError
  const limit = error === disconnects.connectionLimit
  const reason = limit ? 'user_connection_limit' : reasonOf(known ? error : errors.internal)
  session.context.refusals.add(reason, session)
  if (session.codec.unidirectional) {
    const { client } = session.context.config
    let cause = error
    if (!known) {
      session.context.log.error({ err: error }, 'connect of a one-way client failed')
      // Hides internal details from the client.
      cause = errors.internal
    }
    session.close(disconnectFor(cause, client.connect_code_to_unidirectional_disconnect), cause)
    return
  }
  if (!(error instanceof Disconnect)) session.state = State.REFUSED
  session.fail(id, error)
}

/** @param {Session} session @param {number} id @param {any} request @param {Identity} identity */
function admit(session, id, request, identity) {
  const { client } = session.context.config
  session.user = identity.user
  session.info = identity.info ?? ''
  session.stamp = identity.stamp ?? null
  const anonymousToken = identity.user === '' && request.token && !identity.answered
  if (anonymousToken && client.disallow_anonymous_connection_tokens) throw disconnects.permissionDenied
  const denial = denialOf(session)
  if (denial !== null) throw denial
  const { rateLimits } = session.context
  if (rateLimits === null) return claimConnection(session, id, request, identity)
  const proceed = (/** @type {Error | null} */ refusal) => {
    if (refusal !== null) throw refusal
    claimConnection(session, id, request, identity)
  }
  const refusal = rateLimits.check(session, 'connect', request)
  if (refusal !== IN_REDIS) return proceed(refusal)
  session.hold()
  rateLimits.checkInRedis(session, 'connect', request, error =>
    session.resume(id, () => guarded(session, id, () => proceed(error))),
  )
}

/** @param {Session} session @param {any} request @param {Identity} identity */
function keepDetails(session, { name, version }, { meta, labels }) {
  const { details, config, keepsMeta } = session.context
  const keeps = config.client.keep_connection_details
  // No object is allocated here: most clients of a storm have none of them.
  session.details = details.of(keeps ? name : '', keeps ? version : '', keepsMeta ? meta : '', labels)
}

/** @param {Session} session @param {number} id @param {any} request @param {Identity} identity */
function claimConnection(session, id, request, identity) {
  const { config, broker } = session.context
  const { client } = config
  keepDetails(session, request, identity)
  if (identity.caps) session.needExtra().caps = identity.caps
  const plans = planServerSide(session, request, identity)
  const limit = client.user_connection_limit
  if (limit === 0 || identity.user === '') return subscribeAll(session, id, plans, identity)
  session.hold()
  broker.control.claimUser(identity.user, limit, (error, admitted) => {
    if (session.closed) {
      if (admitted) broker.control.releaseUser(identity.user)
      return
    }
    session.resume(id, () =>
      guarded(session, id, () => {
        if (error) throw error
        if (!admitted) throw disconnects.connectionLimit
        session.traits |= Trait.USER_CLAIMED
        subscribeAll(session, id, plans, identity)
      }),
    )
  })
}

/** @param {Session} session @param {number} id @param {Plan[]} plans @param {Identity} identity */
function subscribeAll(session, id, plans, identity) {
  if (plans.length === 0) return complete(session, id, null, [], identity)
  const maps = plans.filter(plan => plan instanceof CatchUp)
  if (maps.length === 0) return prepareAll(session, id, plans, [], 0, identity)
  session.hold()
  readStates(session, maps).then(
    bytes => {
      const refused = maps.filter(({ state }) => state === null)
      const others = plans.filter(plan => !(plan instanceof CatchUp && plan.state === null))
      session.resume(id, () =>
        guarded(session, id, () => prepareAll(session, id, others, refused, bytes, identity)),
      )
    },
    error => session.resume(id, () => refuse(session, id, error)),
  )
}

/**
 * @param {Session} session @param {number} id @param {Plan[]} plans @param {CatchUp[]} refused maps
 * @param {number} bytes of the maps' states @param {Identity} identity
 */
function prepareAll(session, id, plans, refused, bytes, identity) {
  if (plans.length === 0) return complete(session, id, null, refused, identity)
  const { hub } = session.context
  /** @type {Ready[]} */
  const ready = []
  /** @type {Error | null} */
  let failure = null
  let missing = plans.length
  /** Bytes: all subscriptions share one reply. */
  let recovered = bytes
  session.hold()
  for (const plan of plans) {
    const map = plan instanceof CatchUp ? plan : null
    /** @type {Prepared} */
    const prepared = (error, channel, answer) => {
      missing--
      if (error) failure = error
      else {
        // Messages wait for the connect reply, which needs all results.
        const room = recovered === 0 ? Infinity : maxReplyBytes(session) - recovered
        const result = map ? map.oneWay(answer) : plan.result(answer, room)
        if (result === null) {
          plan.abandon(channel)
          failure = disconnects.insufficientState
        } else {
          recovered += bytesOf(result.publications)
          ready.push({ plan, channel, result, liveBuffer: missing > 0 ? plan.buffer(channel) : null })
        }
      }
      if (missing > 0) return
      for (const { channel, liveBuffer } of ready) if (liveBuffer) hub.unbuffer(channel, liveBuffer)
      const refusal = failure ?? faultOf(session, ready)
      if (session.closed || refusal) {
        for (const { plan, channel } of ready) plan.abandon(channel)
        if (refusal) session.resume(id, () => refuse(session, id, refusal))
        return
      }
      session.resume(id, () => complete(session, id, ready, refused, identity))
    }
    if (map) hub.prepare(plan.channel, map.transition(), prepared)
    else prepareCached(plan, prepared)
  }
}

/** @param {Session} session @param {Ready[]} ready */
function faultOf(session, ready) {
  for (const { plan, channel, result, liveBuffer } of ready) {
    if (liveBuffer?.fault) return liveBuffer.fault
    if (!plan.mayFilter(channel)) return errors.limitExceeded
    if (!session.canReceive(result.publications) || !session.canReceive(result.state))
      return disconnects.inappropriateProtocol
  }
  return null
}

/**
 * @param {Session} session @param {number} id @param {Ready[] | null} ready @param {CatchUp[]} refused maps
 * @param {Identity} identity
 */
function complete(session, id, ready, refused, { expireAt, data }) {
  const { context, codec } = session
  // The user may have been blocked meanwhile.
  const denial = denialOf(session)
  if (denial !== null) {
    for (const { plan, channel } of ready ?? []) plan.abandon(channel)
    return refuse(session, id, denial)
  }
  const { config, sessions, handlers } = context
  // A handler extends connections without client requests.
  const expires = expireAt > 0 && handlers.refresh === null
  const { client } = config
  const framePings = (session.traits & Trait.FRAME_PINGS) !== 0
  const pings = client.ping_interval > 0 && !framePings
  session.state = State.CONNECTED
  session.since = Math.floor(performance.now())
  sessions.connected(session)
  if (context.userStatus !== null) context.userStatus.connected(session.user)
  expireConnection(session, expireAt)
  if (expires) session.traits |= Trait.REFRESHED_BY_CLIENT
  if (context.observed) observe(session)
  session.send(
    codec.connect(id, {
      client: session.id,
      version: context.version,
      expires,
      ttl: expires ? context.ttl(expireAt) : 0,
      data,
      subs: ready && new Map(ready.map(({ plan, result }) => [plan.channel, result])),
      ping: pings ? Math.max(1, Math.round(client.ping_interval / 1000)) : 0,
      pong: pings && client.pong_timeout > 0 && !codec.unidirectional,
      session: session.sessionId,
      node: session.transport.emulated ? context.node : '',
      time: client.connect_include_server_time ? context.clock() : 0,
    }),
  )
  for (const { plan, channel, liveBuffer } of ready ?? []) {
    for (const message of liveBuffer?.messages ?? []) session.send(message)
    session.extra?.catchUps?.end(plan.channel)
    plan.join(channel)
  }
  for (const { channel } of refused) session.refuseCatchUp(channel, unsubscribes.tooLarge)
  session.transport.connected?.(session)
  const personal = client.subscribe_to_user_personal_channel
  if (personal.enabled && personal.single_connection && session.user !== '') context.singles.claim(session)
}

/** @param {Session} session */
function observe(session) {
  const { handlers, lifecycle, clock } = session.context
  const extra = session.needExtra()
  extra.connectedAt = clock()
  extra.keep(handlers)
  lifecycle?.connected(session)
}

/** Error code -> disconnect: one-way clients get no error replies (client protocol). */
const DISCONNECTS = new Map([
  [errors.tokenExpired.code, disconnects.connectionExpired],
  [errors.expired.code, disconnects.connectionExpired],
  [errors.tooManyRequests.code, disconnects.tooManyRequests],
  [errors.permissionDenied.code, disconnects.permissionDenied],
])

/**
 * @param {Error & {code?: number}} error
 * @param {Config['client']['connect_code_to_unidirectional_disconnect']} overrides
 */
function disconnectFor(error, { enabled, transforms }) {
  if (error instanceof Disconnect) return error
  // Without a code for "get a new token", it would reconnect with the same one.
  if (error === errors.tokenRevoked) return disconnects.invalidToken
  const own = enabled ? transforms.find(({ code }) => code === error.code)?.to : undefined
  if (own) return new Disconnect(own.code, own.reason)
  return DISCONNECTS.get(error.code ?? 0) ?? disconnects.internal
}
