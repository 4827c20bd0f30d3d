// Methods that end access before tokens expire: a change is kept first, then all workers of all nodes apply it.

import { errors, ReplyError } from '../../base/errors.js'
import { seconds, string } from './params.js'

/** @import { Denial, Kind } from '../../channels/broker/denials/contract.js' */
/** @import { Method } from './context.js' */
/** @import { Field } from './params.js' */

/** Maximum user, token id or channel, bytes. */
const MAX_KEY = 255

/** @param {string} what @throws {ReplyError} 107 */
function refuse(what) {
  const { code, message, temporary, status } = errors.badRequest
  throw new ReplyError(code, `${message}: ${what}`, temporary, status)
}

/** @param {string} name @param {string} value @throws {ReplyError} 107 */
function checkKey(name, value) {
  if (Buffer.byteLength(value) > MAX_KEY) refuse(`${name} has more than ${MAX_KEY} bytes`)
  // UTF-8 cannot keep it.
  if (!(/** @type {any} */ (value).isWellFormed())) refuse(`${name} has half a surrogate pair`)
}

/**
 * @param {Kind} kind @param {'user' | 'uid'} name of the field with the key @param {Record<string, Field>} fields
 * @param {(params: any, now: number) => Partial<Denial>} read the rest of the change; `now`: unix s
 * @returns {Method}
 */
const method = (kind, name, fields, read) => ({
  fields: { [name]: string, ...fields },
  async run(params, { broker }) {
    const key = params[name]
    if (key === '') refuse(`${name} is missing`)
    checkKey(name, key)
    const now = Math.floor(Date.now() / 1000)
    const { expire_at = 0 } = params
    if (expire_at !== 0 && expire_at <= now) refuse('expire_at has passed')
    const expireAt = Number.isSafeInteger(expire_at) ? expire_at : 0
    const denial = { kind, key, channel: '', seq: 0, expireAt, issuedBefore: 0, removed: false }
    const kept = await broker.denials.change({ ...denial, ...read(params, now) })
    // An unreachable worker applies it before its clients can use the broker again.
    await broker.control.order('denied', kept)
    return '{}'
  },
})

export const blockUser = method('user_block', 'user', { expire_at: seconds }, () => ({}))

export const unblockUser = method('user_block', 'user', {}, () => ({ removed: true }))

export const revokeToken = method('token_revoke', 'uid', { expire_at: seconds }, () => ({}))

export const invalidateUserTokens = method(
  'user_tokens_invalidate',
  'user',
  { expire_at: seconds, issued_before: seconds, channel: string },
  ({ issued_before, channel }, now) => {
    checkKey('channel', channel)
    if (issued_before < 0) refuse('issued_before is negative')
    return { channel, issuedBefore: Math.min(issued_before || now, Number.MAX_SAFE_INTEGER) }
  },
)
