import { disconnects, errors } from '../../../base/errors.js'
import { resumeAfter } from '../ask.js'
import { expireConnection, renewInfo, renewMeta } from '../expiry.js'
import { replaceCapabilities } from '../rights.js'
import { Trait } from '../state.js'
import { Kind, list } from '../subscription.js'

/** @import { ConnectClaims } from '../../auth/tokens.js' */
/** @import { Session } from '../session.js' */

/** @param {Session} session @param {number} id @param {any} request */
export function refresh(session, id, { token }) {
  const { tokens, handlers } = session.context
  // Clients connected before a reload added the handler still refresh.
  const handled = handlers.refresh !== null && !(session.traits & Trait.REFRESHED_BY_CLIENT)
  if (!token || handled) throw disconnects.badRequest
  withClaims(
    session,
    id,
    () => tokens.connect(token),
    refusalOfRefresh,
    claims => extend(session, id, claims),
  )
}

/** @param {Error} error of the token */
function refusalOfRefresh(error) {
  if (error === errors.tokenRevoked) return disconnects.stateInvalidated
  return error === errors.tokenExpired ? disconnects.connectionExpired : error
}

/** @param {Session} session @param {Map<string, any>} subs channels of the new token */
function channelsChanged(session, subs) {
  for (const channel of subs.keys()) if (!session.subscription(channel)) return true
  return list(session.subscriptions).some(
    subscription => subscription.is(Kind.FROM_CONNECTION_TOKEN) && !subs.has(subscription.channel.name),
  )
}

/** @param {Session} session @param {number} id @param {ConnectClaims} claims */
function extend(session, id, claims) {
  const { context, codec } = session
  for (const channel of claims.subs.keys()) if (!context.rules.resolve(channel)) throw errors.unknownChannel
  if (claims.user !== session.user) throw disconnects.invalidToken
  // The client reconnects with its new token's channels.
  if (channelsChanged(session, claims.subs)) throw disconnects.insufficientState
  session.stamp = claims.stamp
  renewInfo(session, claims.info)
  renewMeta(session, claims.meta)
  const { expireAt } = claims
  expireConnection(session, expireAt)
  const expires = expireAt > 0
  session.send(codec.refreshed(id, 'refresh', { expires, ttl: expires ? context.ttl(expireAt) : 0 }))
  replaceCapabilities(session, claims.caps)
}

/**
 * Continues immediately, or after fetching the token's keys.
 * @template T
 * @param {Session} session @param {number} id @param {() => T | Promise<T>} verify
 * @param {(error: Error) => Error} refusal error for a rejected token @param {(claims: T) => void} work
 */
export function withClaims(session, id, verify, refusal, work) {
  /** @type {T | Promise<T>} */
  let claims
  try {
    claims = verify()
  } catch (error) {
    throw refusal(error)
  }
  if (!(claims instanceof Promise)) return work(claims)
  const refused = claims.catch(error => {
    throw refusal(error)
  })
  resumeAfter(session, id, refused, work)
}
