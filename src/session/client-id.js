import { randomFillSync } from 'node:crypto'

const HEX = Buffer.from('0123456789abcdef')
const POOLED_IDS = 256

/**
 * Makes client ids: UUIDs of version 4 as flat strings. `crypto.randomUUID` joins its strings from 20 parts, and V8 keeps
 * them so: 450 bytes for each connection that lives, against 56 for these.
 * @returns {() => string}
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
