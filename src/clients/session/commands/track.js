// sub_refresh of a shared poll: the client tracks and untracks keys.

import { errors } from '../../../base/errors.js'
import { checkTrackSignature } from '../../auth/track-signatures.js'
import { checkKey } from './map-writes.js'

/** @import { Session } from '../session.js' */

/** `type` of sub_refresh. */
export const SubRefresh = Object.freeze({ TOKEN: 0, TRACK: 1, UNTRACK: 2 })

/** @param {Session} session @param {string} channel @throws {Error} it is not a subscribed shared poll */
function pollOf(session, channel) {
  if (!session.subscription(channel)) throw errors.permissionDenied
  const poll = session.extra?.polls?.get(channel)
  if (poll === undefined) throw errors.badRequest
  return poll
}

/**
 * Verifies all signatures, then tracks the keys of all batches, then untracks others.
 * @param {Session} session @param {number} id
 * @param {{channel: string, track?: {signature?: string, items?: {key?: string, version?: number}[]}[],
 *   untrack?: string[]}} request
 */
export function track(session, id, { channel, track: batches = [], untrack = [] }) {
  const { context } = session
  const { tracking, expiry, pending } = pollOf(session, channel)
  if (batches.length === 0) throw errors.badRequest
  /** @type {Map<string, {key: string, version: bigint, expireAt: number}>} */
  const items = new Map()
  let soonest = 0
  for (const { signature = '', items: given = [] } of batches) {
    if (given.length === 0) throw errors.badRequest
    // Signed keys are separated by NUL.
    if (given.some(({ key = '', version = 0 }) => key.includes('\0') || version >= 2 ** 64))
      throw errors.badRequest
    const keys = given.map(({ key = '' }) => checkKey(key))
    const signed = { user: session.user, channel, keys, signature }
    const expireAt = checkTrackSignature(context.config.shared_poll, context.now(), signed)
    if (expireAt > 0 && (soonest === 0 || expireAt < soonest)) soonest = expireAt
    for (const { key = '', version = 0 } of given) items.set(key, { key, version: BigInt(version), expireAt })
  }
  const all = new Set([...tracking.keys.keys(), ...items.keys()])
  for (const request of pending) for (const key of request.keys()) all.add(key)
  for (const key of untrack) all.delete(key)
  const limit = context.rules.resolve(channel)?.options.shared_poll.max_keys_per_connection ?? 0
  if (all.size > limit) throw errors.limitExceeded
  for (const key of untrack) items.delete(key)
  const done = () => {
    const result = { expires: soonest > 0, ttl: Math.max(0, soonest - context.now()) }
    session.send(session.codec.refreshed(id, 'sub_refresh', result))
    tracking.untrack(untrack)
    expiry.schedule()
  }
  if (items.size === 0) return done()
  session.hold()
  pending.add(items)
  tracking.track([...items.values()], error => {
    pending.delete(items)
    session.resume(id, () => {
      if (error) throw error
      done()
    })
  })
}

/** @param {Session} session @param {number} id @param {{channel: string, untrack?: string[]}} request */
export function untrack(session, id, { channel, untrack: keys = [] }) {
  const { tracking, expiry } = pollOf(session, channel)
  if (keys.length === 0) throw errors.badRequest
  tracking.untrack(keys)
  expiry.schedule()
  session.send(session.codec.refreshed(id, 'sub_refresh', { expires: false, ttl: 0 }))
}
