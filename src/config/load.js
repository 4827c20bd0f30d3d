import { resolve } from 'node:path'
import { checkRules } from './check.js'
import { Draft } from './draft.js'
import { ConfigError } from './error.js'
import { readConfigFile } from './file.js'

export { ConfigError }

/** Options that have a flag of their own. */
export const FLAGS = Object.freeze({
  workers: '--workers',
  'http_server.port': '--port',
  'http_server.address': '--address',
  'log.level': '--log-level',
})

/**
 * @template T
 * @param {T} value
 * @returns {T}
 */
function deepFreeze(value) {
  if (value !== null && typeof value === 'object') {
    for (const below of Object.values(value)) deepFreeze(below)
    Object.freeze(value)
  }
  return value
}

/** @typedef {Readonly<Record<string, any>>} Config nested by sections; durations in ms; every key present */

/**
 * Reads the configuration: defaults, then `base`, the file, the environment, the flags; later ones win.
 *
 * @param {object} [sources]
 * @param {string} [sources.file] path of a .json, .yaml or .yml file
 * @param {Readonly<Record<string, string | undefined>>} [sources.env] HALLEY_... of it is used
 * @param {Readonly<Record<string, any>>} [sources.flags] key path -> text or value
 * @param {string} [sources.cwd] what a relative `file` is relative to
 * @param {Record<string, unknown>} [sources.base] a tree like that of a file, below all other sources
 * @returns {{config: Config, warnings: string[]}} the configuration is deeply frozen
 * @throws {ConfigError} with every fault found
 */
export function loadConfig({ file, env = {}, flags = {}, cwd = process.cwd(), base } = {}) {
  const draft = new Draft()
  if (base !== undefined) draft.applyTree(base)
  if (file !== undefined) draft.applyTree(readConfigFile(resolve(cwd, file), file))
  draft.applyEnv(env)
  draft.applyFlags(flags, FLAGS)
  checkRules(draft.config, draft.report)
  const { faults, warnings } = draft.report
  if (faults.length > 0) throw new ConfigError(faults, warnings)
  return { config: deepFreeze(draft.config), warnings }
}
