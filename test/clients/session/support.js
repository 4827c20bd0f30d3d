// Shared by tests of sessions: tokens, channel options, clients that disconnect with the test.

import { RawClient } from '../../kit/raw-client.js'
import { makeToken } from '../auth/jwt.js'

export const SECRET = 'secret of the tests'

/** @param {number} [seconds] from now @returns {number} unix s */
export const at = (seconds = 0) => Math.floor(Date.now() / 1000) + seconds

/** @param {object} claims */
export const token = claims => makeToken(claims, SECRET)

/** Signed with a key that the gateway does not have. @param {object} claims */
export const forged = claims => makeToken(claims, 'another secret')

/** @param {object} [more] */
export const tokenClient = (more = {}) => ({ token: { hmac_secret_key: SECRET }, ...more })

/** Clients may do everything. */
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

/** A connected client with a token. @param {any} t @param {{ws: string}} gateway @param {object} [claims] @param {object} [request] */
export const user = (t, gateway, claims = { sub: 'u1' }, request = {}) =>
  anonymous(t, gateway, { token: token(claims), ...request })

/** A connected client. @param {any} t @param {{ws: string}} gateway @param {object} [request] of the connect command */
export async function anonymous(t, gateway, request = {}) {
  const client = await opened(t, gateway)
  await client.login(request)
  return client
}

/** An open connection, with the first frame sent. @param {any} t @param {{ws: string}} gateway @param {...object} commands */
export async function opened(t, gateway, ...commands) {
  const client = await RawClient.open(gateway.ws)
  t.teardown(() => client.socket.terminate())
  if (commands.length > 0) client.send(...commands)
  return client
}

/** Waits until all that was sent has been handled. @param {import('../../kit/protocol-client.js').ProtocolClient} client */
export async function roundTrip(client) {
  const reply = await client.call('unsubscribe', { channel: 'round-trip' })
  if (reply.error) throw new Error(`unsubscribe: ${reply.error.code}`)
}

/** The error object of a reply. @param {number} code @param {string} message @param {true} [temporary] */
export const error = (code, message, temporary) =>
  temporary ? { code, message, temporary } : { code, message }
