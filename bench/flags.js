import { parseArgs } from 'node:util'
import { UsageError } from './usage-error.js'

/**
 * The flags of one program of the bench: numbers, others, `--json` and `--help`.
 * @template {Record<string, number>} T
 * @param {string[]} args
 * @param {T} defaults of the numbers, which are whole and at least 1
 * @param {Record<string, string>} [texts] defaults of other flags
 * @returns {T & Record<string, any> & {json: boolean} | null} null: help is wanted
 * @throws {UsageError}
 */
export function parseFlags(args, defaults, texts = {}) {
  const names = [...Object.keys(defaults), ...Object.keys(texts)]
  const { help, ...given } = parse(args, names)
  if (help) return null
  /** @type {Record<string, any>} */
  const flags = { ...texts, ...given, json: given.json ?? false }
  for (const [name, value] of Object.entries(defaults)) {
    const text = given[name] ?? String(value)
    if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`--${name} is a whole number from 1, not "${text}"`)
    flags[name] = Number(text)
  }
  return /** @type {any} */ (flags)
}

/**
 * @param {string[]} args
 * @param {string[]} names of flags with a value
 * @returns {Record<string, any>}
 */
function parse(args, names) {
  /** @type {Record<string, {type: 'boolean' | 'string', short?: string}>} */
  const options = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } }
  for (const name of names) options[name] = { type: 'string' }
  try {
    return { ...parseArgs({ args, options }).values }
  } catch (error) {
    throw new UsageError(error.message.split('. ')[0])
  }
}
