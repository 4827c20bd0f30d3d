import { disconnects } from '../../base/errors.js'
import { MAX_FILTER_DEPTH } from './filter.js'
import { isObject, rawMember, rawMembers, singleLine } from './raw-json.js'

/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Command } from './contract.js' */

/**
 * @typedef {'string' | 'bool' | 'int' | 'uint' | 'raw' | 'strings' | 'texts' | 'subs' | 'position' | 'filter' |
 *   'filters'} Kind
 * @typedef {Record<string, Kind>} Shape
 */

/**
 * @param {Record<string, Kind>} fields
 * @returns {Shape} without a prototype, where a client's key could find a member
 */
const shape = fields => withoutPrototype(fields)

/**
 * @template T
 * @param {Record<string, T>} members @returns {Readonly<Record<string, T>>}
 */
function withoutPrototype(members) {
  return Object.freeze(Object.assign(Object.create(null), members))
}

const channelOnly = shape({ channel: 'string' })
const position = shape({ offset: 'uint', epoch: 'string' })
const filter = shape({
  op: 'string',
  key: 'string',
  cmp: 'string',
  val: 'string',
  vals: 'strings',
  nodes: 'filters',
})
const subscribe = shape({
  channel: 'string',
  token: 'string',
  recover: 'bool',
  epoch: 'string',
  offset: 'uint',
  data: 'raw',
  positioned: 'bool',
  recoverable: 'bool',
  join_leave: 'bool',
  delta: 'string',
  tf: 'filter',
  flag: 'int',
  type: 'int',
  phase: 'int',
  cursor: 'string',
  limit: 'int',
  asc: 'bool',
})

/**
 * Requests in the order of preference for a command with several (client protocol).
 * @type {Record<string, Shape>}
 */
const requests = withoutPrototype({
  connect: shape({
    token: 'string',
    data: 'raw',
    subs: 'subs',
    name: 'string',
    version: 'string',
    headers: 'texts',
    flag: 'int',
  }),
  subscribe,
  unsubscribe: channelOnly,
  publish: shape({ channel: 'string', data: 'raw', type: 'int', key: 'string', removed: 'bool' }),
  presence: channelOnly,
  presence_stats: channelOnly,
  history: shape({ channel: 'string', limit: 'int', since: 'position', reverse: 'bool' }),
  rpc: shape({ data: 'raw', method: 'string' }),
  send: shape({ data: 'raw' }),
  refresh: shape({ token: 'string' }),
  sub_refresh: shape({ channel: 'string', token: 'string', type: 'int' }),
})

const order = Object.keys(requests)

/** @param {any} value */
const isTexts = value => isObject(value) && Object.values(value).every(text => typeof text === 'string')

/**
 * Checks the known fields of a request in place: null becomes undefined, payloads become their raw text.
 * @param {any} value @param {Shape} shape @param {() => string | undefined} text raw text of `value`
 * @param {number} depth
 */
function check(value, shape, text, depth) {
  if (!isObject(value)) throw disconnects.badRequest
  for (const key of Object.keys(value)) {
    const kind = shape[key]
    if (kind === undefined) {
      // The gateway adds fields of its own: a client must not pass them.
      value[key] = undefined
      continue
    }
    const field = value[key]
    if (kind === 'raw') {
      value[key] = singleLine(rawMember(text() ?? '{}', key) ?? 'null')
    } else if (field === null) {
      value[key] = undefined
    } else if (!checkField(value, key, field, kind, text, depth)) {
      throw disconnects.badRequest
    }
  }
  return value
}

/**
 * @param {any} owner @param {string} key @param {any} field @param {Kind} kind
 * @param {() => string | undefined} text raw text of `owner` @param {number} depth @returns {boolean}
 */
function checkField(owner, key, field, kind, text, depth) {
  switch (kind) {
    case 'string':
      return typeof field === 'string'
    case 'bool':
      return typeof field === 'boolean'
    case 'int':
      return Number.isInteger(field)
    case 'uint':
      return Number.isInteger(field) && field >= 0
    case 'strings':
      return Array.isArray(field) && field.every(item => typeof item === 'string')
    case 'texts':
      return isTexts(field)
    case 'position':
      check(field, position, text, depth)
      return true
    case 'subs': {
      if (!isObject(field)) return false
      /** @type {Map<string, string> | null} only payloads need the texts */
      let texts = null
      const textOf = (/** @type {string} */ channel) => {
        texts ??= rawMembers(rawMember(text() ?? '{}', key) ?? '{}')
        return texts.get(channel)
      }
      const subs = new Map()
      for (const channel of Object.keys(field)) {
        const request = field[channel]
        if (request !== null)
          subs.set(
            channel,
            check(request, subscribe, () => textOf(channel), depth),
          )
      }
      owner[key] = subs
      return true
    }
    case 'filter':
      if (depth > MAX_FILTER_DEPTH) return false
      check(field, filter, text, depth + 1)
      return true
    case 'filters':
      if (!Array.isArray(field) || depth > MAX_FILTER_DEPTH) return false
      for (const node of field) check(node, filter, text, depth + 1)
      return true
    default:
      return false
  }
}

/** Reads the first JSON value of a line and drops the rest, like the reference server. @param {string} line */
function parseFirst(line) {
  try {
    return { value: JSON.parse(line), text: line }
  } catch {
    const end = valueEnd(line)
    if (end < 0) throw disconnects.badRequest
    const text = line.slice(0, end)
    try {
      return { value: JSON.parse(text), text }
    } catch {
      throw disconnects.badRequest
    }
  }
}

/** @param {string} line @returns {number} end of the object at its start, -1 if there is none */
function valueEnd(line) {
  let depth = 0
  for (let i = 0; i < line.length; i++) {
    const char = line[i]
    if (char === '"') {
      for (i++; i < line.length && line[i] !== '"'; i++) if (line[i] === '\\') i++
    } else if (char === '{' || char === '[') depth++
    else if ((char === '}' || char === ']') && --depth === 0) return i + 1
  }
  return -1
}

/** @type {Command} */
const PONG = Object.freeze({ id: 0, method: '', request: null, ping: false })

/** @param {string} line one command @returns {Command} */
export function parseCommand(line) {
  if (line === '{}') return PONG
  const { value, text } = parseFirst(line)
  if (!isObject(value)) throw disconnects.badRequest
  const id = value.id ?? 0
  if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) throw disconnects.badRequest
  const ping = Object.hasOwn(value, 'ping') && value.ping !== null
  let method = ''
  let request = null
  for (const name of Object.keys(value)) {
    const shape = requests[name]
    if (shape === undefined || value[name] === null) continue
    const checked = check(value[name], shape, () => rawMember(text, name), 0)
    if (method !== '' && order.indexOf(name) > order.indexOf(method)) continue
    method = name
    request = checked
  }
  if (method === '' && (id > 0 || ping)) throw disconnects.badRequest
  return method === '' ? PONG : { id, method, request, ping }
}

/**
 * @param {string} text bare ConnectRequest of a unidirectional client: the whole body, not one line of several
 * @returns {any} fields, as in a command
 * @throws {Disconnect} disconnects.badRequest
 */
export function parseConnectRequest(text) {
  let value
  try {
    value = JSON.parse(text)
  } catch {
    throw disconnects.badRequest
  }
  return check(value, requests.connect, () => text, 0)
}

/** @param {Buffer} frame @returns {string[]} */
export function splitFrame(frame) {
  const text = frame.toString()
  if (!text.includes('\n')) {
    if (text === '') throw disconnects.badRequest
    return [text]
  }
  const lines = text.split('\n')
  if (lines[lines.length - 1] === '') lines.pop()
  return lines
}
