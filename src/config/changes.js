// Differences of configurations, and the effect of a reload on each: `change` of its option.

import { isDeepStrictEqual } from 'node:util'
import { options } from './options.js'
import { get, put } from './values.js'

/** @import { Config } from './options.js' */
/** @import { Change, Option } from './options/make.js' */
/** @import { Values } from './values.js' */

/** @param {Option} option @param {unknown} from @param {unknown} to */
const changeOf = ({ change, mounts }, from, to) => (mounts && (from === '') !== (to === '') ? mounts : change)

/** @param {Option} option @param {string} driver @param {Change} change */
const changeWith = ({ loadedOnce }, driver, change) => (loadedOnce && driver === 'uws' ? 'workers' : change)

/**
 * @param {Config} from @param {Config} to @param {string} [driver] uws or node
 * @returns {Record<Change, string[]>} paths; a difference in a namespace is one in `channel.namespaces`
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

/** Applies these changes. @param {Config} from @param {Config} to @param {readonly Change[]} kinds */
export function withChanges(from, to, kinds) {
  /** @type {Values} */
  const config = {}
  for (const option of options) {
    const [before, after] = [get(from, option.path), get(to, option.path)]
    put(config, option.path, kinds.includes(changeOf(option, before, after)) ? after : before)
  }
  return /** @type {Config} */ (config)
}
