import { whole } from '../../base/format.js'
import { ANY_NUMBER } from './recipes.js'

/** @import { Setting, Wanted } from './recipes.js' */

/**
 * @typedef {'ok' | 'tight' | 'too low' | 'cannot tell'} Status tight: works, but without reserve; too low: prevents
 *   the wanted number
 *
 * @typedef {object} Finding
 * @property {string} id sysctl key, if it is one
 * @property {'files' | 'network' | 'memory' | 'processor' | 'sockets'} group
 * @property {string} is
 * @property {string} should
 * @property {string} why one line
 * @property {Status} status
 * @property {number | null} reach connections that it allows; null: no limit
 * @property {Setting | null} setting never below the current value
 * @property {boolean} changes whether it differs from the current value
 *
 * @typedef {Required<Omit<Wanted, 'workers'>> & {workers: number, fixed: boolean, addresses:
 *   number | null, deliveries: number}} Aim fixed: the number of workers was given; addresses: source addresses of
 *   a drone; deliveries: messages a second
 */

/** @param {number} value */
export const count = value => (Number.isFinite(value) ? whole(value) : 'no limit')

/** As text: JavaScript cannot represent the kernel's largest number. @param {number} value @returns {string} */
const settingText = value => (value > Number.MAX_SAFE_INTEGER ? ANY_NUMBER : String(value))

/**
 * A finding without a setting.
 * @param {Finding['group']} group @param {string} id @param {Partial<Finding> & {why: string}} rest
 * @returns {Finding}
 */
export const finding = (group, id, rest) => ({
  id,
  group,
  is: '?',
  should: '',
  status: 'ok',
  reach: null,
  setting: null,
  changes: false,
  ...rest,
})

/**
 * Checks a kernel setting of one number.
 * @param {Finding['group']} group @param {string} key of sysctl @param {import('./facts.js').Facts} facts
 * @param {{should: string, why: string, what: string, fits: (has: number) => boolean, value: number, is?: (has: number)
 *   => string}} check what: the comment in the file; value: to set if the current one does not fit
 * @returns {Finding}
 */
export function checkValue(group, key, { settings }, { should, why, what, fits, value, is = String }) {
  const has = settings[key]?.[0]
  if (has === undefined) return finding(group, key, { should, why, status: 'cannot tell' })
  const changes = !fits(has)
  return finding(group, key, {
    is: is(has),
    should,
    why,
    status: changes ? 'tight' : 'ok',
    setting: { key, value: String(changes ? value : has), why: what },
    changes,
  })
}

/**
 * Checks a kernel setting against a minimum.
 * @param {Finding['group']} group @param {string} key of sysctl
 * @param {import('./facts.js').Facts} facts @param {number[]} need
 * @param {{why: string, what: string, is?: string, should?: string, reach?: (has: number[]) => number | null}} rest
 *   what: the comment in the file
 * @returns {Finding} tight if below the minimum; the caller turns it into too low by its reach
 */
export function checkMinimum(group, key, facts, need, { why, what, is, should, reach }) {
  const wanted = should ?? need.map(count).join(' ')
  const has = facts.settings[key]
  if (!has || has.length < need.length)
    return finding(group, key, { should: wanted, why, status: 'cannot tell' })
  const value = need.map((number, i) => Math.max(number, has[i]))
  const changes = value.some((number, i) => number !== has[i])
  return finding(group, key, {
    is: is ?? has.map(count).join(' '),
    should: wanted,
    why,
    status: changes ? 'tight' : 'ok',
    reach: reach?.(has) ?? null,
    setting: { key, value: value.map(settingText).join(' '), why: what },
    changes,
  })
}
