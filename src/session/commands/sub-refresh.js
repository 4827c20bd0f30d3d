import { disconnects, errors } from '../../errors.js'
import { expireSubscription } from '../expiry.js'
import { withClaims } from './claims.js'
import { grant } from './subscribe.js'

/**
 * @typedef {import('../session.js').Session} Session
 */

/**
 * @param {Session} session
 * @param {number} id
 * @param {any} request
 */
export function subRefresh(session, id, { channel, token }) {
  const { tokens } = session.context
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  if (!token) throw errors.badRequest
  withClaims(
    session,
    id,
    () => tokens.subscribe(token),
    refusal,
    claims => extend(session, id, channel, claims),
  )
}

/** @param {Error} error */
function refusal(error) {
  // The subscription exists already, so a bad token is not a question of permission any more.
  return error === errors.permissionDenied ? disconnects.invalidToken : error
}

/**
 * @param {Session} session
 * @param {number} id
 * @param {string} channel
 * @param {import('../../auth/tokens.js').SubscribeClaims} claims
 */
function extend(session, id, channel, claims) {
  const { context, codec } = session
  const subscription = session.subscription(channel)
  if (!subscription) throw errors.permissionDenied
  const { info = '', expireAt = 0 } = grant(session, channel, claims)
  const former = subscription.details.expireAt
  subscription.details = { info, expireAt }
  if (expireAt > 0 && expireAt !== former) expireSubscription(session, subscription)
  session.send(
    codec.refreshed(id, 'sub_refresh', {
      expires: expireAt > 0,
      ttl: expireAt > 0 ? context.ttl(expireAt) : 0,
    }),
  )
}
