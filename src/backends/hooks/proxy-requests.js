// The fields that a backend gets, in the order of the proxy protocol. `data` and `meta` are JSON text.

import { CallFailed } from '../../clients/hooks/contract.js'

/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { HookEvent } from '../../clients/hooks/events.js' */

/** @typedef {{binary: boolean, meta: boolean}} RequestOptions `binary_encoding`, `include_connection_meta` */

/** @param {string} text @returns {string | undefined} */
const filled = text => (text === '' ? undefined : text)

/** @param {HookEvent} event @param {RequestOptions} options */
const headOf = (event, { binary }) => ({
  client: event.client,
  transport: event.transport,
  protocol: event.protocol,
  encoding: binary ? 'binary' : 'json',
})

/**
 * @param {Payload} payload @param {RequestOptions} options
 * @returns {{data?: string, b64data?: string}}
 * @throws {CallFailed} if a backend that reads JSON cannot get the bytes
 */
function dataOf({ data, json }, { binary }) {
  if (data.length === 0) return {}
  if (binary) return { b64data: Buffer.from(/** @type {any} */ (data)).toString('base64') }
  if (!json) throw new CallFailed('the data of the client is not JSON; binary_encoding is off', 'data')
  return { data: data.toString() }
}

/** @param {HookEvent} event @param {RequestOptions} options @returns {{meta?: string}} */
const metaOf = (event, { meta }) => (meta ? { meta: filled(event.metaText) } : {})

/**
 * By event.
 * @type {Readonly<Record<string, (event: any, options: RequestOptions) => Record<string, any>>>}
 */
export const requests = Object.freeze({
  connect: (event, options) => ({
    ...headOf(event, options),
    ...dataOf(event.payload, options),
    name: filled(event.name),
    version: filled(event.version),
    channels: event.channels.length === 0 ? undefined : event.channels,
  }),
  refresh: (event, options) => ({ ...headOf(event, options), user: event.user, ...metaOf(event, options) }),
  subscribe: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    channel: event.channel,
    ...metaOf(event, options),
    ...dataOf(event.payload, options),
  }),
  sub_refresh: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    channel: event.channel,
    ...metaOf(event, options),
  }),
  publish: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    channel: event.channel,
    ...dataOf(event.payload, options),
    ...metaOf(event, options),
  }),
  rpc: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    method: filled(event.method),
    ...dataOf(event.payload, options),
    ...metaOf(event, options),
  }),
  disconnected: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    code: event.code,
    reason: event.reason,
    channels: event.channels,
    duration: event.duration,
    ...metaOf(event, options),
  }),
  unsubscribed: (event, options) => ({
    ...headOf(event, options),
    user: event.user,
    channel: event.channel,
    code: event.code,
    reason: event.reason,
    ...metaOf(event, options),
  }),
})
