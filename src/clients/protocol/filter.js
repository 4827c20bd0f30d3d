import { errors } from '../../base/errors.js'
import { isObject } from './raw-json.js'

/** @import { ReplyError } from '../../base/errors.js' */

/**
 * @typedef {{op?: string, key?: string, cmp?: string, val?: string, vals?: string[], nodes?: FilterNode[]}} FilterNode
 * @typedef {Record<string, string>} Tags
 * @typedef {(tags: Tags) => boolean} Predicate
 */

/** Maximum characters of JSON. The work per publication is at most this times the longest tag. */
export const MAX_FILTER_LENGTH = 16 * 1024
/** Maximum characters of compared numbers and searched text. */
export const MAX_OPERAND_LENGTH = 256

/** Maximum depth of a backend's filter. */
const MAX_DEPTH = 32

/** @type {Tags} */
const NO_TAGS = Object.freeze({})

/** @type {Record<string, (tag: string, val: string) => boolean>} */
const withText = {
  eq: (tag, val) => tag === val,
  neq: (tag, val) => tag !== val,
  sw: (tag, val) => tag.startsWith(val),
  ew: (tag, val) => tag.endsWith(val),
  ct: (tag, val) => tag.includes(val),
}

/** `order` is -1, 0 or 1. @type {Record<string, (order: number) => boolean>} */
const withNumber = {
  gt: order => order > 0,
  gte: order => order >= 0,
  lt: order => order < 0,
  lte: order => order <= 0,
}

const DECIMAL = /^([+-]?)(?=\d)0*([1-9]\d*)?(?:\.(\d+))?$/

/** @typedef {{sign: number, whole: string, fraction: string}} Decimal without outer zeros; sign 0 is zero */

/** @param {string} text @returns {Decimal | null} null: not a number, or too long */
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

/** By digit: doubles lose digits, BigInts take quadratic time. @param {Decimal} a @param {Decimal} b */
function compareDecimals(a, b) {
  if (a.sign !== b.sign) return a.sign < b.sign ? -1 : 1
  if (a.whole.length !== b.whole.length) return a.whole.length < b.whole.length ? -a.sign : a.sign
  // Digits with equal place values sort like text.
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
  if (cmp === 'ex' || cmp === 'nex') {
    if (val !== '' || vals.length > 0) throw errors.badRequest
    const wanted = cmp === 'ex'
    return tags => Object.hasOwn(tags, key) === wanted
  }
  if (key === '') throw errors.badRequest
  const tag = (/** @type {Tags} */ tags) => (Object.hasOwn(tags, key) ? tags[key] : undefined)
  if (cmp === 'in' || cmp === 'nin') {
    if (val !== '' || vals.length === 0) throw errors.badRequest
    const list = new Set(vals)
    const wanted = cmp === 'in'
    return tags => list.has(tag(tags) ?? '') === wanted
  }
  if (val === '' || vals.length > 0) throw errors.badRequest
  const isNumber = Object.hasOwn(withNumber, cmp)
  if ((isNumber || cmp === 'ct') && val.length > MAX_OPERAND_LENGTH) throw errors.badRequest
  if (isNumber) return compileNumber(tag, withNumber[cmp], val)
  if (!Object.hasOwn(withText, cmp)) throw errors.badRequest
  const test = withText[cmp]
  const absent = cmp === 'neq'
  return tags => {
    const text = tag(tags)
    return text === undefined ? absent : test(text, val)
  }
}

/**
 * @param {(tags: Tags) => string | undefined} tag @param {(order: number) => boolean} test @param {string} val
 * @returns {Predicate}
 */
function compileNumber(tag, test, val) {
  const operand = parseDecimal(val)
  if (operand === null) return () => false
  return tags => {
    const text = tag(tags)
    const number = text === undefined ? null : parseDecimal(text)
    return number !== null && test(compareDecimals(number, operand))
  }
}

/** A client's filter, a backend's, or a client's within a backend's: both must match. */
export class Filter {
  #predicate

  /**
   * @param {FilterNode | null} node type-checked; null: none of the client @param {Filter | null} [server] the backend's
   * @throws {ReplyError} errors.badRequest
   */
  constructor(node, server = null) {
    const own = node === null ? '' : JSON.stringify(node)
    if (own.length > MAX_FILTER_LENGTH) throw errors.badRequest
    this.node = node
    this.server = server
    /** Equal keys match the same publications. */
    this.key = server === null ? own : `${server.key} ${own}`
    this.#predicate = node === null ? null : compile(node)
  }

  /** @param {Tags | null} tags @returns {boolean} */
  matches(tags) {
    if (this.server !== null && !this.server.matches(tags)) return false
    return this.#predicate === null || this.#predicate(tags ?? NO_TAGS)
  }
}

/** @param {any} value @returns {string | undefined} */
function textOf(value) {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw errors.badRequest
  return value
}

/**
 * @template T
 * @param {any} value @param {(value: any) => T} read
 * @returns {T[] | undefined}
 */
function listOf(value, read) {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) throw errors.badRequest
  return value.map(read)
}

const FIELDS = new Set(['op', 'key', 'cmp', 'val', 'vals', 'nodes'])

/**
 * Refuses all that `compile` would ignore: the filter would let more pass than intended.
 * @param {any} value @param {number} depth
 * @returns {FilterNode}
 */
function checkedNode(value, depth) {
  if (!isObject(value) || depth > MAX_DEPTH) throw errors.badRequest
  if (!Object.keys(value).every(name => FIELDS.has(name))) throw errors.badRequest
  const node = {
    op: textOf(value.op),
    key: textOf(value.key),
    cmp: textOf(value.cmp),
    val: textOf(value.val),
    vals: listOf(value.vals, text => textOf(text) ?? ''),
    nodes: listOf(value.nodes, node => checkedNode(node, depth + 1)),
  }
  const fits = node.op
    ? !(node.key || node.cmp || node.val || node.vals?.length)
    : node.key && !node.nodes?.length
  if (!fits) throw errors.badRequest
  return node
}

/**
 * A backend's filter, from a token, a proxy, a hook or the server API.
 * @param {any} value unchecked; null is invalid
 * @returns {Filter}
 * @throws {ReplyError} errors.badRequest: wrong types, unknown operations or fields, unused operands, empty, too deep or
 *   long
 */
export const readServerFilter = value => new Filter(checkedNode(value, 1))
