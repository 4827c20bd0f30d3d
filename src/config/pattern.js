import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * @typedef {object} Pattern what a compiled pattern can do; a match takes time linear in the length of the text
 * @property {(text: string) => boolean} test
 * @property {(text: string) => {groups?: Record<string, string>} | null} exec
 */

/**
 * Compiles a pattern of the configuration in Go's RE2 syntax. RegExp cannot run them: it backtracks, and `^(a+)+$`
 * with one hostile channel name would keep a worker busy for good.
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
    throw new Error(`the pattern ${JSON.stringify(pattern)} cannot be used: ${reasonOf(error)}`)
  }
}

/** @param {any} error of RE2JS */
const reasonOf = ({ message, error = message, input }) =>
  input ? `${error}: ${JSON.stringify(input)}` : error
