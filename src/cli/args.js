import { parseArgs } from 'node:util'
import { didYouMean } from '../config/nearest.js'

/** An invalid command line; the message is one line. */
export class UsageError extends Error {}

/** @typedef {{type: 'string' | 'boolean', short?: string, multiple?: boolean}} Flag */

/** Flags of every command. @type {Record<string, Flag>} */
const COMMON = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'V' } }

/**
 * @param {string[]} args after the command @param {Record<string, Flag>} own flags of the command
 * @param {number} [most] words accepted beside flags
 * @returns {Record<string, any>} flag name -> text, list of texts, or true; `words`: arguments that are no flags
 * @throws {UsageError}
 */
export function parseFlags(args, own, most = 0) {
  const flags = { ...COMMON, ...own }
  const { tokens, values, positionals } = parseArgs({
    args,
    options: flags,
    strict: false,
    tokens: true,
    allowPositionals: true,
  })
  // `--help` works even if the rest is wrong.
  if (values.help || values.version) return { help: values.help, version: values.version }
  for (const token of tokens) {
    if (token.kind === 'positional' && token.value === positionals[most])
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
      throw new UsageError(`${token.rawName} needs a value`)
    }
  }
  return { ...values, words: positionals }
}
