import { errors } from '../../base/errors.js'

/** @import { ReplyError } from '../../base/errors.js' */

/**
 * @typedef {{op?: string, key?: string, cmp?: string, val?: string, vals?: string[], nodes?: FilterNode[]}} FilterNode
 * @typedef {Record<string, string>} Tags
 * @typedef {(tags: Tags) => boolean} Predicate
 */

/** Nesting limit: beyond any sensible use, far below the stack's limit. */
export const MAX_FILTER_DEPTH = 32
/** Longest filter as JSON, characters. Its work for a publication is at most this times the longest tag. */
export const MAX_FILTER_LENGTH = 16 * 1024
/** Longest number that is compared, and longest text that is searched in a tag, characters. */
export const MAX_OPERAND_LENGTH = 256

/** @type {Tags} */
const NO_TAGS = Object.freeze({})

/** @typedef {(tag: string) => boolean} TagTest of a tag that is present */

/** @type {Record<string, (val: string) => TagTest>} comparisons with a text; without a tag, only `neq` holds */
const withText = Object.freeze(
  Object.assign(Object.create(null), {
    eq: (/** @type {string} */ val) => (/** @type {string} */ tag) => tag === val,
    neq: (/** @type {string} */ val) => (/** @type {string} */ tag) => tag !== val,
    sw: (/** @type {string} */ val) => (/** @type {string} */ tag) => tag.startsWith(val),
    ew: (/** @type {string} */ val) => (/** @type {string} */ tag) => tag.endsWith(val),
    ct: (/** @type {string} */ val) => (/** @type {string} */ tag) => tag.includes(val),
  }),
)

/** @type {Record<string, (order: number) => boolean>} comparisons with a number; `order` is -1, 0 or 1 */
const withNumber = Object.freeze(
  Object.assign(Object.create(null), {
    gt: (/** @type {number} */ order) => order > 0,
    gte: (/** @type {number} */ order) => order >= 0,
    lt: (/** @type {number} */ order) => order < 0,
    lte: (/** @type {number} */ order) => order <= 0,
  }),
)

/** With digits on both sides of a point. */
const DECIMAL = /^([+-]?)(?=\d)0*([1-9]\d*)?(?:\.(\d+))?$/

/** @typedef {{sign: number, whole: string, fraction: string}} Decimal without zeros at its ends; sign 0: it is zero */

/** @param {string} text @returns {Decimal | null} null: not a plain decimal number, or too long */
function parseDecimal(text) {
  if (text.length > MAX_OPERAND_LENGTH) return null
  const match = DECIMAL.exec(text)
  if (match === null) return null
  const [, sign, whole = '', digits = ''] = match
  let length = digits.length
  while (length > 0 && digits[length - 1] === '0') length--
  const fraction = digits.slice(0, length)
  return { sign: whole === '' && fraction === '' ? 0 : sign === '-' ? -1 : 1, whole, fraction }
}

/**
 * Compares numbers of any precision digit by digit: a double would lose digits, and a BigInt of many digits takes
 * quadratic time.
 * @param {Decimal} a @param {Decimal} b @returns {number} -1, 0 or 1
 */
function compareDecimals(a, b) {
  if (a.sign !== b.sign) return a.sign < b.sign ? -1 : 1
  if (a.whole.length !== b.whole.length) return a.whole.length < b.whole.length ? -a.sign : a.sign
  // Digits of the same place: their order is that of the texts.
  const [left, right] = a.whole === b.whole ? [a.fraction, b.fraction] : [a.whole, b.whole]
  return left === right ? 0 : left < right ? -a.sign : a.sign
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
  if (val === '' || vals.length > 0) throw errors.badRequest
  if (cmp in withNumber) return compileNumber(tag, withNumber[cmp], val)
  const test = withText[cmp]?.(val)
  if (!test || (cmp === 'ct' && val.length > MAX_OPERAND_LENGTH)) throw errors.badRequest
  const absent = cmp === 'neq'
  return tags => {
    const text = tag(tags)
    return text === undefined ? absent : test(text)
  }
}

/**
 * @param {(tags: Tags) => string | undefined} tag @param {(order: number) => boolean} test @param {string} val
 * @returns {Predicate}
 */
function compileNumber(tag, test, val) {
  if (val.length > MAX_OPERAND_LENGTH) throw errors.badRequest
  const operand = parseDecimal(val)
  // No comparison with what is no number holds.
  if (operand === null) return () => false
  return tags => {
    const text = tag(tags)
    const number = text === undefined ? null : parseDecimal(text)
    return number !== null && test(compareDecimals(number, operand))
  }
}

/** A subscriber's filter on the tags of publications (client protocol). */
export class Filter {
  #predicate

  /** @param {FilterNode} node type-checked @throws {ReplyError} errors.badRequest */
  constructor(node) {
    /** Subscribers with equal keys receive the same publications. */
    this.key = JSON.stringify(node)
    if (this.key.length > MAX_FILTER_LENGTH) throw errors.badRequest
    this.#predicate = compile(node)
  }

  /** @param {Tags | null} tags */
  matches(tags) {
    return this.#predicate(tags ?? NO_TAGS)
  }
}
