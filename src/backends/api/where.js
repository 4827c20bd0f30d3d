// Filters of connections: `where` of `connections`, over fields of a connection, and `label_filter`, over its labels.

import { errors, ReplyError } from '../../base/errors.js'
import { readServerFilter } from '../../clients/protocol/filter.js'
import { isObject } from '../../clients/protocol/raw-json.js'

/** @import { FilterNode } from '../../clients/protocol/filter.js' */
/** @import { Session } from '../../clients/session/session.js' */

/** @typedef {(session: Session) => boolean} Condition */

/** Fields with one text, '' = absent. @type {Readonly<Record<string, (session: Session) => string>>} */
const TEXTS = Object.freeze({
  user: ({ user }) => user,
  client: ({ id }) => id,
  transport: ({ transport }) => transport.name,
  protocol: ({ codec }) => (codec.binary ? 'protobuf' : 'json'),
  app_name: ({ details }) => details?.name ?? '',
  app_version: ({ details }) => details?.version ?? '',
})

const META = 'meta.'
const NONE = Object.freeze({})

/** @param {string} text JSON, '' = none @param {string[]} path @returns {string} a scalar as text, '' = none */
function scalarIn(text, path) {
  if (text === '') return ''
  let value = JSON.parse(text)
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return ''
    value = value[name]
  }
  return value === null || typeof value === 'object' ? '' : String(value)
}

/** @param {FilterNode} leaf @returns {Condition} @throws {ReplyError} errors.badRequest: unknown field */
function compileLeaf({ key = '', cmp = '', val, vals }) {
  if (key === 'channel') return compileChannel(cmp, val, vals)
  const path = key.startsWith(META) ? key.slice(META.length).split('.') : null
  if (path === null && !Object.hasOwn(TEXTS, key)) throw errors.badRequest
  const filter = readServerFilter({ key, cmp, val, vals })
  const read =
    path === null
      ? TEXTS[key]
      : (/** @type {Session} */ session) => scalarIn(session.details?.meta ?? '', path)
  return session => {
    const text = read(session)
    return filter.matches(text === '' ? NONE : { [key]: text })
  }
}

/** Negations that hold if no channel matches. @type {Readonly<Record<string, string>>} */
const NEGATED = Object.freeze({ neq: 'eq', nin: 'in', nex: 'ex' })

/** Whether any channel matches. @param {string} cmp @param {string} [val] @param {string[]} [vals] @returns {Condition} */
function compileChannel(cmp, val, vals) {
  const negated = Object.hasOwn(NEGATED, cmp)
  const filter = readServerFilter({ key: 'channel', cmp: negated ? NEGATED[cmp] : cmp, val, vals })
  return session => {
    for (const channel of session.channelNames()) if (filter.matches({ channel })) return !negated
    return negated
  }
}

/** @param {FilterNode} node checked @returns {Condition} @throws {ReplyError} errors.badRequest: unknown field */
function compile(node) {
  const { op = '', nodes = [] } = node
  if (op === '') return compileLeaf(node)
  const parts = nodes.map(compile)
  if (op === 'not') return session => !parts[0](session)
  if (op === 'and') return session => parts.every(part => part(session))
  return session => parts.some(part => part(session))
}

/**
 * Compiles `where`. Fields: `user`, `client`, `transport`, `protocol`, `app_name`, `app_version`, `channel` (any of the
 * subscriptions; `neq`, `nin` and `nex`: none of them) and `meta.<path>` (scalars as text).
 * @param {any} value unchecked
 * @returns {Condition}
 * @throws {ReplyError} errors.badRequest
 */
export const compileWhere = value => compile(/** @type {FilterNode} */ (readServerFilter(value).node))

/**
 * Compiles `label_filter`.
 * @param {any} value unchecked
 * @returns {Condition}
 * @throws {ReplyError} errors.badRequest
 */
export function compileLabelFilter(value) {
  const filter = readServerFilter(value)
  return ({ details }) => filter.matches(details === null ? null : details.labels)
}

/** @param {FilterNode | undefined} node @returns {boolean} whether it reads what `client.keep_connection_details` keeps */
export function readsDetails({ key = '', nodes = [] } = {}) {
  return key === 'app_name' || key === 'app_version' || key.startsWith(META) || nodes.some(readsDetails)
}

/**
 * Checks a filter of a request.
 * @param {string} name of the field @param {any} value undefined: absent @param {(value: any) => unknown} compileIt
 * @throws {ReplyError} 107, with the name
 */
export function checkFilter(name, value, compileIt) {
  if (value === undefined) return
  try {
    compileIt(value)
  } catch {
    const { code, message, temporary, status } = errors.badRequest
    throw new ReplyError(code, `${message}: ${name} is not a valid filter`, temporary, status)
  }
}
