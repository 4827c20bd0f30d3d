import { randomBytes } from 'node:crypto'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
let pool = Buffer.alloc(0)
let at = 0

/** @returns {string} 8 random ASCII letters that identify one lifetime of a stream or worker */
export function newEpoch() {
  if (at + 8 > pool.length) {
    pool = randomBytes(4096)
    at = 0
  }
  let epoch = ''
  for (const end = at + 8; at < end; at++) epoch += LETTERS[pool[at] % LETTERS.length]
  return epoch
}
