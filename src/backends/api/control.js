// Methods on the connections of a user, on any node: subscribe, unsubscribe, disconnect, refresh. Every worker runs
// them; matching no connection is no error.

import { disconnects, errors } from '../../base/errors.js'
import {
  flag,
  ignored,
  object,
  offset,
  payload,
  raw,
  readJson,
  refuseRestrictions,
  seconds,
  string,
  strings,
  uint32,
} from './params.js'

/** @import { ReplyError } from '../../base/errors.js' */
/** @import { ApiContext, Method } from './context.js' */

/** Room in a WebSocket close frame. */
const MAX_REASON_BYTES = 123

/** Fields that select connections: all of `user` ('' = anonymous ones), or one of them. */
const target = { user: string, client: string, session: string }
/** Fields that select them by more, which is not supported. */
const labels = { label_filter: ignored, all_users: flag }
const selection = { ...target, ...labels }
/** Of `subscribe`. */
const restrictions = { ...labels, server_tags_filter: ignored }

/** @param {string} channel @param {ApiContext} context @throws {ReplyError} 107 or 102 */
function checkChannel(channel, { rules }) {
  if (channel === '') throw errors.badRequest
  if (rules.resolve(channel) === undefined) throw errors.unknownChannel
}

/** @param {ApiContext} context @param {string} op @param {object} params */
async function tellAll({ broker }, op, params) {
  const refusals = await broker.control.order(op, params)
  // As the reference server answers.
  if (refusals.includes(true)) throw errors.internal
  return '{}'
}

const switchable = object({ value: flag })

/** @type {Method} */
export const subscribe = {
  fields: {
    channel: string,
    ...target,
    ...restrictions,
    expire_at: seconds,
    info: raw,
    b64info: string,
    data: payload,
    b64data: string,
    recover_since: object({ offset, epoch: string }),
    override: object({
      presence: switchable,
      join_leave: switchable,
      force_push_join_leave: switchable,
      force_positioning: switchable,
      force_recovery: switchable,
    }),
  },
  run(params, context) {
    const { channel, user, client, session } = params
    refuseRestrictions(restrictions, params, errors.badRequest)
    checkChannel(channel, context)
    /** @type {Record<string, boolean>} */
    const override = {}
    for (const [option, set] of Object.entries(params.override ?? {})) {
      if (set !== null) override[option] = set.value
    }
    return tellAll(context, 'subscribe', {
      channel,
      user,
      client,
      session,
      expireAt: params.expire_at,
      info: readJson(params.info, params.b64info),
      data: readJson(params.data, params.b64data),
      recoverSince: params.recover_since,
      override,
    })
  },
}

/** @type {Method} */
export const unsubscribe = {
  fields: { channel: string, ...selection },
  run(params, context) {
    const { channel, user, client, session } = params
    refuseRestrictions(labels, params, errors.badRequest)
    checkChannel(channel, context)
    return tellAll(context, 'unsubscribe', { channel, user, client, session })
  },
}

/** @type {Method} */
export const disconnect = {
  fields: { ...selection, disconnect: object({ code: uint32, reason: string }), whitelist: strings },
  run(params, context) {
    const { user, client, session, disconnect, whitelist } = params
    refuseRestrictions(labels, params, errors.badRequest)
    let { code, reason } = disconnects.forceDisconnect
    if (disconnect !== null && disconnect.code !== 0) {
      // Other codes cannot be sent in a close frame, or have another meaning for SDKs.
      if (disconnect.code < 3000 || disconnect.code > 4999) throw errors.badRequest
      if (Buffer.byteLength(disconnect.reason) > MAX_REASON_BYTES) throw errors.badRequest
      code = disconnect.code
      // Without a reason SDKs make up their own code.
      reason = disconnect.reason || 'disconnect'
    }
    return tellAll(context, 'disconnect', { user, client, session, whitelist, code, reason })
  },
}

/** @type {Method} */
export const refresh = {
  fields: { ...selection, expired: flag, expire_at: seconds, info: raw },
  run(params, context) {
    const { user, client, session, expired, expire_at, info } = params
    refuseRestrictions(labels, params, errors.badRequest)
    return tellAll(context, 'refresh', { user, client, session, expired, expireAt: expire_at, info })
  },
}
