// Flags of the programs in this folder: parsing, and errors of one line.

import { parseArgs } from 'node:util'

/** An invalid command line. */
export class UsageError extends Error {}

/**
 * Parses the flags of a bench program: numbers, texts, `--json` and `--help`. `driver` of `texts` is checked where
 * given.
 * @template {Record<string, number>} T
 * @param {string[]} args
 * @param {T} defaults of the numbers, integers of at least 1
 * @param {Record<string, string>} [texts] defaults of other flags
 * @returns {T & Record<string, any> & {json: boolean} | null} null: help was requested
 * @throws {UsageError}
 */
export function parseFlags(args, defaults, texts = {}) {
  /** @type {import('node:util').ParseArgsConfig['options']} */
  const options = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } }
  for (const name in { ...defaults, ...texts }) options[name] = { type: 'string' }
  /** @type {Record<string, any>} */
  const { help, ...given } = parseStrictly({ args, options }).values
  if (help) return null
  /** @type {Record<string, any>} */
  const flags = { ...texts, ...given, json: given.json ?? false }
  for (const [name, value] of Object.entries(defaults)) {
    flags[name] = given[name] === undefined ? value : wholeNumber(name, given[name], 1)
  }
  if (given.driver !== undefined && given.driver !== texts.driver) checkDriver(given.driver)
  return /** @type {any} */ (flags)
}

/** @param {string} driver as given @throws {UsageError} */
function checkDriver(driver) {
  if (!['auto', 'uws', 'node'].includes(driver))
    throw new UsageError(`--driver is auto, uws or node, not "${driver}"`)
}

/** @param {string} name of the flag @param {string} text @param {number} least minimum @throws {UsageError} */
export function wholeNumber(name, text, least) {
  if (!/^\d+$/.test(text) || Number(text) < least)
    throw new UsageError(`--${name} is a whole number from ${least}, not "${text}"`)
  return Number(text)
}

/**
 * @template {import('node:util').ParseArgsConfig} T @param {T} config
 * @returns {ReturnType<typeof parseArgs<T>>} @throws {UsageError}
 */
export function parseStrictly(config) {
  try {
    return parseArgs(config)
  } catch (error) {
    // Later sentences of Node.js are advice about positional arguments.
    throw new UsageError(error.message.split('. ')[0])
  }
}
