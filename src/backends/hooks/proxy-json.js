// Requests and answers of HTTP proxies. Payloads keep their text: numbers beyond 2^53, the order of keys and duplicates
// would not survive JSON.parse and JSON.stringify.

import { isUtf8 } from 'node:buffer'
import { CallFailed } from '../../clients/hooks/contract.js'
import { isObject, rawMembers, singleLine } from '../../clients/protocol/raw-json.js'

/** @import { ProxyAnswer } from './proxy-answers.js' */

/** @typedef {(raw: string) => any} Type reads the text of a value; undefined: absent; throws TypeError */

const INTEGER = /^-?\d+$/
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT64 = 2n ** 64n - 1n
const MAX_UINT32 = 4294967295
/** A deeper text would overflow the stack of many parsers. */
const MAX_DEPTH = 10_000

/** @param {boolean} right */
function check(right) {
  if (!right) throw new TypeError()
}

/** @param {Type} read @returns {Type} that takes null for absence */
const nullable = read => raw => (raw === 'null' ? undefined : read(raw))

const text = nullable(raw => {
  check(raw.startsWith('"'))
  return JSON.parse(raw)
})

const bool = nullable(raw => {
  check(raw === 'true' || raw === 'false')
  return raw === 'true'
})

const uint32 = nullable(raw => {
  check(INTEGER.test(raw) && Number(raw) >= 0 && Number(raw) <= MAX_UINT32)
  return Number(raw)
})

const int64 = nullable(raw => {
  check(INTEGER.test(raw) && raw.length <= 20)
  const value = BigInt(raw)
  check(value <= MAX_INT64 && value >= -MAX_INT64 - 1n)
  return Number(value)
})

const uint64 = nullable(raw => {
  check(INTEGER.test(raw) && raw.length <= 20)
  const value = BigInt(raw)
  check(value >= 0n && value <= MAX_UINT64)
  return value
})

/** Any JSON value, null too. @type {Type} */
const json = raw => singleLine(raw)

const texts = nullable(raw => {
  const list = JSON.parse(raw)
  check(Array.isArray(list) && list.every(value => value === null || typeof value === 'string'))
  return list.map((/** @type {string | null} */ value) => value ?? '')
})

const textMap = nullable(raw => {
  const object = JSON.parse(raw)
  check(isObject(object) && Object.values(object).every(value => value === null || typeof value === 'string'))
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, value ?? '']))
})

/** @param {Record<string, Type>} types @returns {Type} an object with these fields; others are ignored */
function message(types) {
  const fields = Object.entries(types)
  return nullable(raw => {
    check(raw.startsWith('{'))
    const members = rawMembers(raw)
    /** @type {Record<string, any>} */
    const values = {}
    for (const [name, read] of fields) {
      const member = members.get(name)
      if (member === undefined) continue
      const value = read(member)
      if (value !== undefined) values[name] = value
    }
    return values
  })
}

/** @param {Type} read of values @returns {Type} null among them is an empty message */
const mapOf = read =>
  nullable(raw => {
    check(raw.startsWith('{'))
    return Object.fromEntries([...rawMembers(raw)].map(([name, value]) => [name, read(value) ?? {}]))
  })

/** @param {Record<string, Type>} types @returns {Type} a list of objects */
const listOf = types => {
  const read = message(types)
  return nullable(raw => {
    const list = JSON.parse(raw)
    check(Array.isArray(list))
    return list.map((/** @type {any} */ value) => read(JSON.stringify(value)))
  })
}

const boolValue = message({ value: bool })
const override = message({
  presence: boolValue,
  join_leave: boolValue,
  force_recovery: boolValue,
  force_positioning: boolValue,
  force_push_join_leave: boolValue,
})
const caps = listOf({ channels: texts, allow: texts, match: text })
const info = { info: json, b64info: text }
const data = { data: json, b64data: text }
/** Not supported, but of the right type. */
const filter = message({})

/** Results by event. @type {Readonly<Record<string, Type>>} */
const RESULTS = Object.freeze({
  connect: message({
    user: text,
    expire_at: int64,
    ...info,
    ...data,
    channels: texts,
    subs: mapOf(
      message({
        expire_at: int64,
        ...info,
        ...data,
        override,
        server_tags_filter: filter,
        cache_recover: bool,
      }),
    ),
    meta: json,
    caps,
    labels: textMap,
  }),
  refresh: message({ expired: bool, expire_at: int64, ...info, meta: json, caps }),
  subscribe: message({
    expire_at: int64,
    ...info,
    ...data,
    override,
    allow: texts,
    server_tags_filter: filter,
  }),
  sub_refresh: message({ expired: bool, expire_at: int64, ...info, server_tags_filter: filter }),
  publish: message({
    ...data,
    skip_history: bool,
    tags: textMap,
    idempotency_key: text,
    delta: bool,
    version: uint64,
    version_epoch: text,
    exclude_sender: bool,
  }),
  rpc: message(data),
  disconnected: message({}),
  unsubscribed: message({}),
})

const ERROR = message({ code: uint32, message: text, temporary: bool })
const DISCONNECT = message({ code: uint32, reason: text })

/** @param {string} text @returns {boolean} */
function isTooDeep(text) {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 34) inString = !inString
    else if (inString) {
      if (code === 92) at++
    } else if ((code | 32) === 0x7b) {
      if (++depth > MAX_DEPTH) return true
    } else if ((code | 32) === 0x7d) depth--
  }
  return false
}

/** @param {string} reason @returns {CallFailed} */
const wrong = reason => new CallFailed(`the answer ${reason}`, 'answer')

/**
 * @param {string} event @param {Buffer} bytes body of an answer with status 200
 * @returns {ProxyAnswer}
 * @throws {CallFailed}
 */
export function decodeAnswer(event, bytes) {
  if (!isUtf8(bytes)) throw wrong('is not UTF-8')
  const body = bytes.toString().trim()
  // Most answers are too short to be deep.
  if (body.length > MAX_DEPTH && isTooDeep(body)) throw wrong('is nested too deep')
  try {
    // A byte order mark is white space for trim(), but not for JSON.
    JSON.parse(bytes.toString())
  } catch {
    throw wrong(body === '' ? 'is empty' : 'is not JSON')
  }
  if (body === 'null') return { result: null, error: null, disconnect: null }
  if (!body.startsWith('{')) throw wrong('is not a JSON object')
  const members = rawMembers(body)
  /** @param {string} name @param {Type} read */
  const member = (name, read) => {
    const raw = members.get(name)
    try {
      return raw === undefined ? null : (read(raw) ?? null)
    } catch {
      throw wrong(`has a field of a wrong type in ${name}`)
    }
  }
  const result = member('result', RESULTS[event])
  const error = member('error', ERROR)
  const disconnect = member('disconnect', DISCONNECT)
  return {
    result,
    error: error && { code: 0, message: '', temporary: false, ...error },
    disconnect: disconnect && { code: 0, reason: '', ...disconnect },
  }
}

/** Fields that hold JSON text. */
const JSON_FIELDS = new Set(['data', 'meta'])

/**
 * @param {Record<string, any>} fields in order; undefined is omitted @returns {string} JSON on one line, with the texts
 *   of `data` and `meta` as they are
 */
export function encodeRequest(fields) {
  let body = ''
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined) continue
    body += `${body === '' ? '{' : ','}"${name}":${JSON_FIELDS.has(name) ? value : JSON.stringify(value)}`
  }
  return `${body}}`
}
