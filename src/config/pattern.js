import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * A match takes time linear in the length of the text.
 * @typedef {{test: (text: string) => boolean, programSize: () => number,
 *   exec: (text: string) => {groups?: Record<string, string>} | null}} Pattern
 */

/**
 * RE2 of Go, because RegExp backtracks: with `^(a+)+$`, one hostile channel name would block a worker.
 * @param {string} pattern unanchored
 * @returns {Pattern}
 * @throws {Error} one sentence
 */
export function compilePattern(pattern) {
  // Loading takes 1 MB and 40 ms, and most configurations have no pattern.
  const { RE2JS } = /** @type {typeof import('re2js')} */ (require('re2js'))
  try {
    return /** @type {Pattern} */ (RE2JS.compile(pattern))
  } catch (error) {
    throw new Error(`invalid pattern ${JSON.stringify(pattern)}: ${reasonOf(error)}`)
  }
}

/** @param {Error & {error?: string, input?: string}} error */
const reasonOf = ({ message, error = message, input }) =>
  input ? `${error}: ${JSON.stringify(input)}` : error
