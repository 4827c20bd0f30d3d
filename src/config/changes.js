// Differences between two configurations, and what a reload does with each: `change` of the option's row.

import { isDeepStrictEqual } from 'node:util'
import { options } from './options.js'
import { get, put } from './values.js'

/** @import { Config } from './options.js' */
/** @import { Change, Option } from './options/make.js' */

/** @param {Option} option @param {any} from @param {any} to values @returns {Change} */
const changeOf = ({ change, mounts }, from, to) => (mounts && (from === '') !== (to === '') ? mounts : change)

/** @param {Option} option @param {string} driver @param {Change} change @returns {Change} */
const changeWith = ({ loadedOnce }, driver, change) => (loadedOnce && driver === 'uws' ? 'workers' : change)

/**
 * @param {Config} from @param {Config} to
 * @param {string} [driver] of the workers: uws or node
 * @returns {Record<Change, string[]>} paths of the options that differ; a difference in any namespace is one in
 *   `channel.namespaces`
 */
export function changesBetween(from, to, driver = '') {
  /** @type {Record<Change, string[]>} */
  const changes = { live: [], workers: [], start: [] }
  for (const option of options) {
    const [before, after] = [get(from, option.path), get(to, option.path)]
    if (isDeepStrictEqual(before, after)) continue
    changes[changeWith(option, driver, changeOf(option, before, after))].push(option.path)
  }
  return changes
}

/**
 * @param {Config} from @param {Config} to @param {readonly Change[]} kinds
 * @returns {Config} `from`, with the options of `to` that are changed in one of these ways
 */
export function withChanges(from, to, kinds) {
  /** @type {Record<string, any>} */
  const config = {}
  for (const option of options) {
    const [before, after] = [get(from, option.path), get(to, option.path)]
    put(config, option.path, kinds.includes(changeOf(option, before, after)) ? after : before)
  }
  return /** @type {Config} */ (config)
}
