import { randomFillSync } from 'node:crypto'

const HEX = Buffer.from('0123456789abcdef')
const POOLED_IDS = 256
/** Characters of a session id before the worker number. */
const RANDOM_SIZE = 28
const WORKER_DIGITS = 8

/**
 * Version 4 UUIDs as flat strings. V8 keeps a `crypto.randomUUID` as a tree of 20 parts: 450 bytes per connection
 * instead of 56.
 */
export function createClientIds() {
  const pool = Buffer.alloc(POOLED_IDS * 16)
  const text = Buffer.alloc(36, '-')
  let at = pool.length
  return () => {
    if (at === pool.length) {
      randomFillSync(pool)
      at = 0
    }
    pool[at + 6] = (pool[at + 6] & 0x0f) | 0x40
    pool[at + 8] = (pool[at + 8] & 0x3f) | 0x80
    for (let to = 0; to < 36; to += 2, at++) {
      if (to === 8 || to === 13 || to === 18 || to === 23) to++
      text[to] = HEX[pool[at] >> 4]
      text[to + 1] = HEX[pool[at] & 15]
    }
    return text.toString('latin1')
  }
}

/** Secret UUIDs ending with the worker number, to locate the session. @param {number} worker 32 bits */
export function createSessionIds(worker) {
  const next = createClientIds()
  const end = worker.toString(16).padStart(WORKER_DIGITS, '0')
  const text = Buffer.alloc(RANDOM_SIZE + WORKER_DIGITS)
  return () => {
    text.write(next(), 0, 'latin1')
    text.write(end, RANDOM_SIZE, 'latin1')
    return text.toString('latin1')
  }
}

/** @param {string} sessionId untrusted @returns {number} worker number; -1: not a session id */
export const workerOf = sessionId =>
  /^[0-9a-f-]{28}[0-9a-f]{8}$/.test(sessionId) ? Number.parseInt(sessionId.slice(RANDOM_SIZE), 16) : -1
