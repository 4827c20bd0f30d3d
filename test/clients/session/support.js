// What the tests of sessions share: tokens, and clients that say how they ended.

import { RawClient } from '../../kit/raw-client.js'
import { makeToken } from '../auth/jwt.js'

export const SECRET = 'secret of the tests'

/** @param {number} [seconds] from now */
export const at = (seconds = 0) => Math.floor(Date.now() / 1000) + seconds

/** @param {object} claims */
export const token = claims => makeToken(claims, SECRET)

/** Signed with a key that the gateway does not have. @param {object} claims */
export const forged = claims => makeToken(claims, 'another secret')

/** @param {object} [more] */
export const tokenClient = (more = {}) => ({ token: { hmac_secret_key: SECRET }, ...more })

/** Everything is allowed to everybody. */
export const open = Object.freeze({
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allow_publish_for_client: true,
  allow_publish_for_anonymous: true,
  presence: true,
  allow_presence_for_client: true,
  allow_presence_for_anonymous: true,
})

export const history = Object.freeze({
  history_size: 100,
  history_ttl: '60s',
  allow_history_for_client: true,
  allow_history_for_anonymous: true,
})

/**
 * A connected client of this user, which leaves with the test.
 * @param {any} t
 * @param {{ws: string}} gateway
 * @param {object} [claims]
 * @param {object} [request] more of the connect command
 */
export async function user(t, gateway, claims = { sub: 'u1' }, request = {}) {
  const client = await RawClient.connected(gateway.ws, { token: token(claims), ...request })
  t.teardown(() => client.socket.terminate())
  return client
}

/**
 * A connected client without a token, which leaves with the test.
 * @param {any} t
 * @param {{ws: string}} gateway
 * @param {object} [request]
 */
export async function anonymous(t, gateway, request = {}) {
  const client = await RawClient.connected(gateway.ws, request)
  t.teardown(() => client.socket.terminate())
  return client
}

/**
 * A client that has not said anything yet, which leaves with the test.
 * @param {any} t
 * @param {{ws: string}} gateway
 * @param {string} [query]
 */
export async function stranger(t, gateway, query = '') {
  const client = await RawClient.open(gateway.ws + query)
  t.teardown(() => client.socket.terminate())
  return client
}

/** How a channel answers that it is alive: what came before has been handled. @param {RawClient} client */
export async function roundTrip(client) {
  const reply = await client.call('unsubscribe', { channel: 'round-trip' })
  if (reply.error) throw new Error(`unsubscribe: ${reply.error.code}`)
}

/** The error object of a reply. @param {number} code @param {string} message @param {true} [temporary] */
export const error = (code, message, temporary) =>
  temporary ? { code, message, temporary } : { code, message }
