import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/**
 * @typedef {object} Script
 * @property {string} text
 * @property {string} hash by which Redis knows it once it is loaded
 */

/** @type {Script[]} what a new connection loads */
export const SCRIPTS = []

/**
 * @param {string} name of a file in scripts/, without `.lua`; what stands before the first line of code there says what it takes and returns
 * @returns {Script}
 */
function script(name) {
  const text = readFileSync(new URL(`scripts/${name}.lua`, import.meta.url), 'utf8')
  const script = Object.freeze({ text, hash: createHash('sha1').update(text).digest('hex') })
  SCRIPTS.push(script)
  return script
}

export const publish = script('publish')
export const read = script('read')
export const presenceAlive = script('presence-alive')
export const presenceBeat = script('presence-beat')
export const presenceChange = script('presence-change')
export const presenceOwn = script('presence-own')
export const presenceStats = script('presence-stats')
export const presenceSweep = script('presence-sweep')
export const userClaim = script('user-claim')
export const userWrite = script('user-write')
export const join = script('join')
export const bury = script('bury')
