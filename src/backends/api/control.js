// Methods on the connections of a user. Every worker runs them; a call without matching connections succeeds.

import { disconnects, errors } from '../../base/errors.js'
import { readServerFilter } from '../../clients/protocol/filter.js'
import { checkServerFilter } from '../../clients/session/rights.js'
import {
  flag,
  ignored,
  object,
  offset,
  payload,
  raw,
  readJson,
  seconds,
  string,
  strings,
  uint32,
} from './params.js'
import { checkFilter, compileLabelFilter } from './where.js'

/** @import { Method } from './context.js' */
/** @import { Field } from './params.js' */

/** Maximum reason in a WebSocket close frame. */
const MAX_REASON_BYTES = 123

/**
 * Fields that select connections: all of `user` ('' = anonymous, or with `all_users` everybody), or one of them; those
 * whose labels match.
 */
const target = { user: string, client: string, session: string, label_filter: ignored, all_users: flag }

/**
 * @param {string} op
 * @param {Record<string, Field>} fields without the target
 * @param {(params: any) => object} [paramsOf] of the order, without channel and target
 * @returns {Method}
 */
const method = (op, fields, paramsOf = () => ({})) => ({
  fields: { ...target, ...fields },
  async run(params, { rules, broker }) {
    const { channel, user, client, session, label_filter: labelFilter, all_users: allUsers } = params
    checkFilter('label_filter', labelFilter, compileLabelFilter)
    if (channel === '') throw errors.badRequest
    const namespace = channel === undefined ? null : rules.resolve(channel)
    if (namespace === undefined) throw errors.unknownChannel
    // Server-side subscriptions have no state.
    if (op === 'subscribe' && namespace?.kind !== 'stream') throw errors.badRequest
    const order = { channel, user, client, session, ...paramsOf(params) }
    if (op === 'subscribe' && namespace) checkServerFilter(namespace, params.server_tags_filter)
    const selects = labelFilter !== undefined || allUsers
    const refusals = selects
      ? await broker.control.order('select', { ...order, op, labelFilter, allUsers })
      : await broker.control.order(op, order)
    // As in Centrifugo.
    if (refusals.includes(true)) throw errors.internal
    return '{}'
  },
})

const switchable = object({ value: flag })

export const subscribe = method(
  'subscribe',
  {
    channel: string,
    server_tags_filter: ignored,
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
  params => {
    const { server_tags_filter: given } = params
    const override = Object.entries(params.override ?? {}).filter(([, set]) => set !== null)
    return {
      expireAt: params.expire_at,
      info: readJson(params.info, params.b64info),
      data: readJson(params.data, params.b64data),
      recoverSince: params.recover_since,
      // Checked here: workers only log errors.
      filter: given === undefined ? undefined : readServerFilter(given).node,
      override: Object.fromEntries(override.map(([option, { value }]) => [option, value])),
    }
  },
)

export const unsubscribe = method('unsubscribe', { channel: string })

export const disconnect = method(
  'disconnect',
  { disconnect: object({ code: uint32, reason: string }), whitelist: strings },
  ({ disconnect, whitelist }) => {
    if (disconnect === null || disconnect.code === 0) {
      const { code, reason } = disconnects.forceDisconnect
      return { whitelist, code, reason }
    }
    const { code, reason } = disconnect
    // Other codes cannot be sent in a close frame, or have another meaning for SDKs.
    if (code < 3000 || code > 4999) throw errors.badRequest
    if (Buffer.byteLength(reason) > MAX_REASON_BYTES) throw errors.badRequest
    // Without a reason SDKs replace the code.
    return { whitelist, code, reason: reason || 'disconnect' }
  },
)

export const refresh = method(
  'refresh',
  { expired: flag, expire_at: seconds, info: raw },
  ({ expired, expire_at, info }) => ({ expired, expireAt: expire_at, info }),
)
