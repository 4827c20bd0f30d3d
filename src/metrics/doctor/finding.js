import { whole } from '../../base/format.js'
import { ANY_NUMBER } from './recipes.js'

/** @import { Facts } from './facts.js' */
/** @import { Setting, Wanted } from './recipes.js' */

/**
 * @typedef {'ok' | 'tight' | 'too low' | 'cannot tell'} Status tight: without reserve; too low: prevents the goal
 * @typedef {'files' | 'network' | 'memory' | 'processor' | 'sockets'} Group
 *
 * @typedef {object} Check
 * @property {string} id sysctl key, if it is one
 * @property {string} is
 * @property {string} should
 * @property {string} why one line
 * @property {Status} status
 * @property {number | null} reach maximum connections; null: no limit
 * @property {Setting | null} setting never below the current value
 * @property {boolean} changes the current value
 *
 * @typedef {Check & {group: Group}} Finding
 *
 * @typedef {Required<Omit<Wanted, 'workers'>> & {workers: number, fixed: boolean, addresses:
 *   number | null, deliveries: number}} Aim fixed: given workers; addresses: of a drone; deliveries: messages a second
 */

/** @param {number} value */
export const count = value => (Number.isFinite(value) ? whole(value) : 'no limit')

/** @param {number} value @param {string} noun */
export const countOf = (value, noun) => `${count(value)} ${noun}${value === 1 ? '' : 's'}`

/** JavaScript cannot represent the kernel's largest number. @param {number} value */
const settingText = value => (value > Number.MAX_SAFE_INTEGER ? ANY_NUMBER : String(value))

/** @param {string} id @param {Partial<Check> & {why: string}} rest @returns {Check} */
export const finding = (id, rest) => ({
  id,
  is: '?',
  should: '',
  status: 'ok',
  reach: null,
  setting: null,
  changes: false,
  ...rest,
})

/** @param {string} id @param {string} should @param {string} why @returns {Check} */
export const unknown = (id, should, why) => finding(id, { should, why, status: 'cannot tell' })

/**
 * @param {string} key
 * @param {Facts} facts
 * @param {{should: string, why: string, what: string, fits: (has: number) => boolean, value: number, is?: (has: number)
 *   => string}} check what: comment in the file; value: if the current one does not fit
 */
export function checkValue(key, { settings }, { should, why, what, fits, value, is = String }) {
  const has = settings[key]?.[0]
  if (has === undefined) return unknown(key, should, why)
  const changes = !fits(has)
  const setting = { key, value: String(changes ? value : has), why: what }
  return finding(key, { is: is(has), should, why, status: changes ? 'tight' : 'ok', setting, changes })
}

/**
 * @param {string} key
 * @param {Facts} facts
 * @param {number[]} need minimum
 * @param {{why: string, what: string, is?: string, should?: string, reach?: (has: number[]) => number | null}} rest
 *   what: comment in the file
 */
export function checkMinimum(key, { settings }, need, { why, what, is, should: wanted, reach }) {
  const should = wanted ?? need.map(count).join(' ')
  const has = settings[key]
  if (!has || has.length < need.length) return unknown(key, should, why)
  const value = need.map((number, i) => Math.max(number, has[i]))
  const changes = value.some((number, i) => number !== has[i])
  return finding(key, {
    is: is ?? has.map(count).join(' '),
    should,
    why,
    status: changes ? 'tight' : 'ok',
    reach: reach?.(has) ?? null,
    setting: { key, value: value.map(settingText).join(' '), why: what },
    changes,
  })
}
