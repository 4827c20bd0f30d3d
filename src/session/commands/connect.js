import { identify } from '../../auth/tokens.js'
import { bytesOf } from '../../broker/size.js'
import { Disconnect, disconnects, errors, ReplyError } from '../../errors.js'
import { reasonOf } from '../../stats/refusals.js'
import { expireConnection } from '../expiry.js'
import { maxReplyBytes } from '../large-replies.js'
import { planServerSide } from '../server-side.js'
import { State, Trait } from '../state.js'

/** @import { Identity } from '../../auth/tokens.js' */
/** @import { Channel, PublicationBuffer } from '../../hub/channel.js' */
/** @import { SubscribeResult } from '../../protocol/contract.js' */
/** @import { Plan } from '../plan.js' */
/** @import { Session } from '../session.js' */

/**
 * @typedef {object} Ready a server-side subscription with the broker's answer
 * @property {Plan} plan
 * @property {Channel} channel
 * @property {SubscribeResult} result
 * @property {PublicationBuffer | null} liveBuffer messages since the answer; null: not buffered
 */

/** @param {Session} session @param {number} id @param {any} request */
export function connect(session, id, request) {
  session.state = State.CONNECTING
  guarded(session, id, () => {
    const { config, tokens } = session.context
    // Until now `user` holds the id of the trusted header.
    const identity = identify({ client: config.client, tokens }, request.token, session.user)
    if (!(identity instanceof Promise)) return admit(session, id, request, identity)
    session.hold()
    identity.then(
      identity => session.resume(id, () => guarded(session, id, () => admit(session, id, request, identity))),
      error => session.resume(id, () => guarded(session, id, () => raise(error))),
    )
  })
}

/** @param {Error} error @returns {never} */
function raise(error) {
  throw error
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
  const known = error instanceof Disconnect || error instanceof ReplyError
  const limit = error === disconnects.connectionLimit
  const reason = limit ? 'user_connection_limit' : reasonOf(known ? error : errors.internal)
  session.context.refusals.add(reason, session)
  if (session.codec.unidirectional) {
    const { client } = session.context.config
    let cause = error
    if (!known) {
      session.context.log.error({ err: error }, 'connect of a one-way client failed')
      // Internal details must not reach the client.
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
  const { config, broker } = session.context
  const { client } = config
  session.user = identity.user
  session.info = identity.info ?? ''
  if (identity.user === '' && request.token && client.disallow_anonymous_connection_tokens) {
    throw disconnects.permissionDenied
  }
  session.id = session.context.newClientId()
  const plans = planServerSide(session, request, identity)
  const limit = client.user_connection_limit
  if (limit === 0 || identity.user === '') return subscribeAll(session, id, plans, identity.expireAt)
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
        session.traits |= Trait.CLAIMED
        subscribeAll(session, id, plans, identity.expireAt)
      }),
    )
  })
}

/** @param {Session} session @param {number} id @param {Plan[]} plans @param {number} expireAt unix s, 0 = never */
function subscribeAll(session, id, plans, expireAt) {
  if (plans.length === 0) return complete(session, id, null, expireAt)
  const { hub } = session.context
  /** @type {Ready[]} */
  const ready = []
  /** @type {Error | null} */
  let failure = null
  let missing = plans.length
  /** Bytes of recovered publications: all subscriptions share the reply. */
  let recovered = 0
  session.hold()
  for (const plan of plans) {
    hub.prepare(plan.channel, plan.wants(), (error, channel, answer) => {
      missing--
      if (error) failure = error
      else {
        // The connect reply comes first and needs all answers: buffer later messages.
        const room = recovered === 0 ? Infinity : maxReplyBytes(session) - recovered
        const result = plan.result(answer, room)
        recovered += bytesOf(result.publications)
        ready.push({ plan, channel, result, liveBuffer: missing > 0 ? plan.buffer(channel) : null })
      }
      if (missing > 0) return
      for (const { channel, liveBuffer } of ready) if (liveBuffer) hub.unbuffer(channel, liveBuffer)
      const refusal = failure ?? faultOf(session, ready)
      if (session.closed || refusal) {
        for (const { plan, channel } of ready) plan.abandon(channel)
        if (refusal) session.resume(id, () => refuse(session, id, refusal))
        return
      }
      session.resume(id, () => complete(session, id, ready, expireAt))
    })
  }
}

/**
 * @param {Session} session @param {Ready[]} ready
 * @returns {Disconnect | null} why the client cannot receive the results and messages
 */
function faultOf(session, ready) {
  for (const { result, liveBuffer } of ready) {
    if (liveBuffer?.fault) return liveBuffer.fault
    if (!session.canReceive(result.publications)) return disconnects.inappropriateProtocol
  }
  return null
}

/** @param {Ready[]} ready */
function resultsOf(ready) {
  const results = new Map()
  for (const { plan, result } of ready) results.set(plan.channel, result)
  return results
}

/** @param {Session} session @param {number} id @param {Ready[] | null} ready @param {number} expireAt unix s */
function complete(session, id, ready, expireAt) {
  const { context, codec } = session
  const { config, sessions, broker } = context
  const { client } = config
  const framePings = (session.traits & Trait.FRAME_PINGS) !== 0
  const pings = client.ping_interval > 0 && !framePings
  session.state = State.CONNECTED
  sessions.connected(session)
  expireConnection(session, expireAt)
  session.send(
    codec.connect(id, {
      client: session.id,
      version: context.version,
      expires: expireAt > 0,
      ttl: expireAt > 0 ? context.ttl(expireAt) : 0,
      subs: ready && resultsOf(ready),
      ping: pings ? Math.max(1, Math.round(client.ping_interval / 1000)) : 0,
      pong: pings && client.pong_timeout > 0 && !codec.unidirectional,
      session: session.sessionId,
      node: session.transport.emulated ? context.node : '',
      time: client.connect_include_server_time ? context.clock() : 0,
    }),
  )
  for (const { plan, channel, liveBuffer } of ready ?? []) {
    for (const message of liveBuffer?.messages ?? []) session.send(message)
    plan.join(channel)
  }
  session.transport.connected?.(session)
  const personal = client.subscribe_to_user_personal_channel
  if (personal.enabled && personal.single_connection && session.user !== '') {
    const { code, reason } = disconnects.connectionLimit
    broker.control
      .survey('disconnect', { user: session.user, whitelist: [session.id], code, reason })
      .catch(error => context.log.error({ err: error }, 'other connections of the user were not closed'))
  }
}

/** Error code -> disconnect: one-way clients get no error replies (client protocol). */
const DISCONNECTS = new Map([
  [errors.tokenExpired.code, disconnects.connectionExpired],
  [errors.expired.code, disconnects.connectionExpired],
  [errors.tooManyRequests.code, disconnects.tooManyRequests],
  [errors.permissionDenied.code, disconnects.permissionDenied],
])

/**
 * How a failed connect closes the connection of a one-way client.
 * @param {Error & {code?: number}} error
 * @param {{enabled: boolean, transforms: {code: number, to: {code: number, reason: string}}[]}} overrides
 *   client.connect_code_to_unidirectional_disconnect
 * @returns {Disconnect}
 */
function disconnectFor(error, { enabled, transforms }) {
  if (error instanceof Disconnect) return error
  const own = enabled ? transforms.find(({ code }) => code === error.code)?.to : undefined
  if (own) return new Disconnect(own.code, own.reason)
  return DISCONNECTS.get(error.code ?? 0) ?? disconnects.internal
}
