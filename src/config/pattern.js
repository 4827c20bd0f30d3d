import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * A compiled pattern; a match takes time linear in the length of the text.
 * @typedef {{test: (text: string) => boolean,
 *   exec: (text: string) => {groups?: Record<string, string>} | null}} Pattern
 */

/**
 * Compiles a pattern in Go's RE2 syntax, not with RegExp, which backtracks: `^(a+)+$` and one hostile channel name
 * would block a worker for good.
 * @param {string} pattern unanchored unless it anchors itself
 * @returns {Pattern}
 * @throws {Error} one sentence
 */
export function compilePattern(pattern) {
  // Loaded on first use: most configurations have no pattern, and the library takes 1 MB and 40 ms.
  const { RE2JS } = /** @type {typeof import('re2js')} */ (require('re2js'))
  try {
    return /** @type {Pattern} */ (RE2JS.compile(pattern))
  } catch (error) {
    throw new Error(`invalid pattern ${JSON.stringify(pattern)}: ${reasonOf(error)}`)
  }
}

/** @param {any} error of RE2JS */
const reasonOf = ({ message, error = message, input }) =>
  input ? `${error}: ${JSON.stringify(input)}` : error
