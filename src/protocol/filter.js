import { errors } from '../errors.js'

/** @import { ReplyError } from '../errors.js' */

/**
 * @typedef {{op?: string, key?: string, cmp?: string, val?: string, vals?: string[], nodes?: FilterNode[]}} FilterNode
 * @typedef {Record<string, string>} Tags
 * @typedef {(tags: Tags) => boolean} Predicate
 */

/** Nesting limit: beyond any sensible use, far below the stack's limit. */
export const MAX_FILTER_DEPTH = 32

/** @type {Tags} */
const NO_TAGS = Object.freeze({})

/** @type {Record<string, (tag: string | undefined, val: string) => boolean>} comparisons with one value */
const withValue = Object.freeze(
  Object.assign(Object.create(null), {
    eq: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => tag === val,
    neq: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => tag !== val,
    sw: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => tag?.startsWith(val) ?? false,
    ew: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => tag?.endsWith(val) ?? false,
    ct: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => tag?.includes(val) ?? false,
    gt: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => compareDecimals(tag, val) === 1,
    gte: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => compareDecimals(tag, val) >= 0,
    lt: (/** @type {string | undefined} */ tag, /** @type {string} */ val) =>
      compareDecimals(tag, val) === -1,
    lte: (/** @type {string | undefined} */ tag, /** @type {string} */ val) => compareDecimals(tag, val) <= 0,
  }),
)

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?$/

/** @param {string | undefined} text @returns {{digits: bigint, scale: number} | null} digits / 10^scale */
function parseDecimal(text) {
  const match = text === undefined ? null : DECIMAL.exec(text)
  if (!match) return null
  const [, sign, whole = '', fraction = ''] = match
  if (whole === '' && fraction === '') return null
  const digits = BigInt(whole + fraction)
  return { digits: sign === '-' ? -digits : digits, scale: fraction.length }
}

/**
 * Compares decimal numbers of any length.
 * @param {string | undefined} left @param {string} right @returns {number} -1, 0, 1; NaN if one is not a number
 */
function compareDecimals(left, right) {
  const a = parseDecimal(left)
  const b = parseDecimal(right)
  if (!a || !b) return Number.NaN
  const scale = Math.max(a.scale, b.scale)
  const x = a.digits * 10n ** BigInt(scale - a.scale)
  const y = b.digits * 10n ** BigInt(scale - b.scale)
  return x < y ? -1 : x > y ? 1 : 0
}

/** @param {FilterNode} node @returns {Predicate} */
function compile(node) {
  const { op = '', nodes = [] } = node
  if (op === '') return compileLeaf(node)
  const parts = nodes.map(compile)
  if (op === 'and' && parts.length > 0) return tags => parts.every(part => part(tags))
  if (op === 'or' && parts.length > 0) return tags => parts.some(part => part(tags))
  if (op === 'not' && parts.length === 1) return tags => !parts[0](tags)
  throw errors.badRequest
}

/** @param {FilterNode} node @returns {Predicate} */
function compileLeaf({ key = '', cmp = '', val = '', vals = [] }) {
  if (cmp === 'ex') return tags => Object.hasOwn(tags, key)
  if (cmp === 'nex') return tags => !Object.hasOwn(tags, key)
  if (key === '') throw errors.badRequest
  const tag = (/** @type {Tags} */ tags) => (Object.hasOwn(tags, key) ? tags[key] : undefined)
  if (cmp === 'in' || cmp === 'nin') {
    if (val !== '' || vals.length === 0) throw errors.badRequest
    const list = new Set(vals)
    const wanted = cmp === 'in'
    return tags => list.has(tag(tags) ?? '') === wanted
  }
  const compare = withValue[cmp]
  if (!compare || val === '' || vals.length > 0) throw errors.badRequest
  return tags => compare(tag(tags), val)
}

/** A subscriber's filter on the tags of publications (client protocol). */
export class Filter {
  #predicate

  /** @param {FilterNode} node type-checked @throws {ReplyError} errors.badRequest */
  constructor(node) {
    this.#predicate = compile(node)
    /** Subscribers with equal keys receive the same publications. */
    this.key = JSON.stringify(node)
  }

  /** @param {Tags | null} tags */
  matches(tags) {
    return this.#predicate(tags ?? NO_TAGS)
  }
}
