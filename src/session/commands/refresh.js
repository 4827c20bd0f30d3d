import { disconnects, errors } from '../../errors.js'
import { expireConnection } from '../expiry.js'
import { withClaims } from './claims.js'

/**
 * @typedef {import('../session.js').Session} Session
 */

/**
 * @param {Session} session
 * @param {number} id
 * @param {any} request
 */
export function refresh(session, id, { token }) {
  if (!token) throw disconnects.badRequest
  const { tokens } = session.gateway
  withClaims(
    session,
    id,
    () => tokens.connect(token),
    refusal,
    claims => extend(session, id, claims),
  )
}

/** @param {Error} error */
function refusal(error) {
  return error === errors.tokenExpired || error === errors.expired ? disconnects.connectionExpired : error
}

/**
 * @param {Session} session
 * @param {number} id
 * @param {import('../../auth/tokens.js').ConnectClaims} claims
 */
function extend(session, id, claims) {
  const { gateway, codec } = session
  if (claims.user !== session.user) throw disconnects.invalidToken
  const channels = [...claims.subs.keys()].sort()
  if (channels.join('\0') !== (session.tokenChannels ?? []).join('\0')) throw disconnects.insufficientState
  session.info = claims.info ?? ''
  const former = session.expireAt
  session.expireAt = gateway.config.client.insecure ? 0 : claims.expireAt
  const expires = session.expireAt > 0
  if (expires && session.expireAt !== former) expireConnection(session)
  session.send(codec.refreshed(id, 'refresh', { expires, ttl: expires ? gateway.ttl(session.expireAt) : 0 }))
}
