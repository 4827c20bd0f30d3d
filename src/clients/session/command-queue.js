/** @import { Codec } from '../protocol/contract.js' */

/** Maximum bytes of queued commands, in multiples of the longest message (`websocket.message_size_limit`). */
const MAX_QUEUED_MESSAGES = 16
/** Queued commands between two checks of that limit. */
const CHECK_INTERVAL = 64
/** Memory of a queue entry besides its command, bytes. */
const ENTRY_OVERHEAD = 16

/**
 * Whether the commands of one client that wait for an earlier one are too many. Called after each new one.
 * @param {any[]} queue raw commands, and postponed functions @param {Codec} codec of the client
 * @param {{websocket: {message_size_limit: number}}} config
 */
export function exceedsLimit(queue, codec, { websocket }) {
  if (queue.length % CHECK_INTERVAL !== 0) return false
  let bytes = 0
  for (const queued of queue)
    bytes += (typeof queued === 'function' ? 0 : codec.size(queued)) + ENTRY_OVERHEAD
  return bytes > websocket.message_size_limit * MAX_QUEUED_MESSAGES
}
