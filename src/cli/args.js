import { parseArgs } from 'node:util'
import { didYouMean } from '../config/nearest.js'

/** Has a one-line message. */
export class UsageError extends Error {}

/** @typedef {{type: 'string' | 'boolean', short?: string, multiple?: boolean}} Flag */

/** @type {Record<string, Flag>} */
const COMMON = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'V' } }

/**
 * @param {string[]} args after the command @param {Record<string, Flag>} own flags
 * @param {number} [max] words, not flags
 * @returns {Record<string, any>} by flag name; `words`: other arguments
 * @throws {UsageError}
 */
export function parseFlags(args, own, max = 0) {
  const flags = { ...COMMON, ...own }
  const { tokens, values, positionals } = parseArgs({
    args,
    options: flags,
    strict: false,
    tokens: true,
    allowPositionals: true,
  })
  // `--help` works even on invalid input.
  if (values.help || values.version) return { help: values.help, version: values.version }
  for (const token of tokens) {
    if (token.kind === 'positional' && token.value === positionals[max])
      throw new UsageError(`unexpected argument "${token.value}"`)
    if (token.kind !== 'option') continue
    const flag = flags[token.name]
    if (flag === undefined || token.rawName === `-${token.name}`) {
      throw new UsageError(`unknown flag ${token.rawName}${didYouMean(token.name, Object.keys(flags), '--')}`)
    }
    const { value } = token
    if (flag.type === 'boolean') {
      if (value !== undefined) throw new UsageError(`${token.rawName} takes no value`)
    } else if (value === undefined || (!token.inlineValue && /^-./.test(value))) {
      throw new UsageError(`${token.rawName} requires a value`)
    }
  }
  return { ...values, words: positionals }
}
