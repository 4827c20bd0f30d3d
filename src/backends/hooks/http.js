// Calls of HTTP proxies: one JSON POST per event.

import { isUtf8 } from 'node:buffer'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { packageVersion } from '../../base/version.js'
import { CallFailed } from '../../clients/hooks/contract.js'
import { rawElements, rawMembers, singleLine } from '../../clients/protocol/raw-json.js'
import { tlsOptions } from '../../config/pem.js'
import { answerOf } from './proxy-answers.js'
import { ANSWERS } from './proxy-messages.js'

/** @import { PollItem } from '../../channels/broker/contract.js' */
/** @import { CancelToken } from '../../clients/hooks/events.js' */
/** @import { ProxyOptions } from '../../config/options.js' */
/** @import { ProxyCall, ProxyTransport } from './proxies.js' */
/** @import { ProxyAnswer } from './proxy-answers.js' */
/** @import { Field } from './proxy-messages.js' */
/** @import { Dispatcher } from 'undici' */

// Payloads keep their text: JSON.parse loses numbers beyond 2^53, key order and duplicates.

/** @typedef {(raw: string) => any} Type parses the text of a value; undefined: absent; throws TypeError */

const INTEGER = /^-?\d+$/
/** Deeper nesting overflows the stack of many parsers. */
const MAX_DEPTH = 10_000

/** @param {boolean} right */
function check(right) {
  if (!right) throw new TypeError()
}

/** @param {Type} read @returns {Type} treats null as absent */
const nullable = read => raw => (raw === 'null' ? undefined : read(raw))

/** @param {bigint} min @param {bigint} max @returns {(raw: string) => bigint} */
const integer = (min, max) => raw => {
  check(INTEGER.test(raw) && raw.length <= 20)
  const value = BigInt(raw)
  check(value >= min && value <= max)
  return value
}

const int64 = integer(-(2n ** 63n), 2n ** 63n - 1n)
const uint32 = integer(0n, 2n ** 32n - 1n)

const text = nullable(raw => {
  check(raw.startsWith('"'))
  return JSON.parse(raw)
})

/** @type {Readonly<Record<string, Type>>} */
const SCALARS = Object.freeze({
  text,
  bool: nullable(raw => {
    check(raw === 'true' || raw === 'false')
    return raw === 'true'
  }),
  uint32: nullable(raw => Number(uint32(raw))),
  int64: nullable(raw => Number(int64(raw))),
  uint64: nullable(integer(0n, 2n ** 64n - 1n)),
  // Checked by its reader.
  filter: nullable(raw => JSON.parse(raw)),
  // Any JSON value or null.
  json: raw => singleLine(raw),
  texts: nullable(raw => {
    const list = JSON.parse(raw)
    check(Array.isArray(list) && list.every(value => value === null || typeof value === 'string'))
    return list.map((/** @type {string | null} */ value) => value ?? '')
  }),
})

/** @param {Field[]} fields @returns {{name: string, read: Type}[]} */
const membersOf = fields => fields.map(field => ({ name: field.name, read: typeOf(field) }))

/** @param {Field[]} fields @returns {Type} an object; ignores other members */
function message(fields) {
  const types = membersOf(fields)
  return nullable(raw => {
    check(raw.startsWith('{'))
    const members = rawMembers(raw)
    /** @type {Record<string, any>} */
    const values = {}
    for (const { name, read } of types) {
      const member = members.get(name)
      if (member === undefined) continue
      const value = read(member)
      if (value !== undefined) values[name] = value
    }
    return values
  })
}

/** @param {Field} field @returns {Type} */
function typeOf({ kind, inner }) {
  if (Object.hasOwn(SCALARS, kind)) return SCALARS[kind]
  const read = message(inner)
  if (kind === 'map') return mapOf(inner)
  if (kind !== 'messages') return read
  return nullable(raw => {
    check(raw.startsWith('['))
    return rawElements(raw).map(read)
  })
}

/** @param {Field[]} inner of the values @returns {Type} an object with any members */
function mapOf(inner) {
  const texts = inner.length === 0
  const read = texts ? text : message(inner)
  return nullable(raw => {
    check(raw.startsWith('{'))
    return Object.fromEntries(
      [...rawMembers(raw)].map(([name, value]) => [name, read(value) ?? (texts ? '' : {})]),
    )
  })
}

const MEMBERS = Object.freeze(
  Object.fromEntries(Object.entries(ANSWERS).map(([event, fields]) => [event, membersOf(fields)])),
)

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
const wrong = reason => new CallFailed(`the response ${reason}`, 'response')

/**
 * @param {string} event @param {Buffer} bytes body of a 200 response
 * @throws {CallFailed}
 */
export function decodeAnswer(event, bytes) {
  if (!isUtf8(bytes)) throw wrong('is not valid UTF-8')
  const body = bytes.toString().trim()
  if (body.length > MAX_DEPTH && isTooDeep(body)) throw wrong('is nested too deeply')
  try {
    // A byte order mark is white space for trim(), but not for JSON.
    JSON.parse(bytes.toString())
  } catch {
    throw wrong(body === '' ? 'is empty' : 'is not JSON')
  }
  if (body === 'null') return answerOf({})
  if (!body.startsWith('{')) throw wrong('is not a JSON object')
  const members = rawMembers(body)
  /** @type {Record<string, any>} */
  const answer = {}
  for (const { name, read } of MEMBERS[event]) {
    const raw = members.get(name)
    try {
      if (raw !== undefined) answer[name] = read(raw)
    } catch {
      throw wrong(`has a field of the wrong type in ${name}`)
    }
  }
  return answerOf(answer)
}

const JSON_FIELDS = new Set(['data', 'meta'])

/** @param {PollItem[]} items of a shared poll */
const itemsText = items =>
  `[${items.map(({ key, version }) => `{"key":${JSON.stringify(key)},"version":${version}}`).join(',')}]`

/** @param {Record<string, any>} fields in order; undefined is omitted; `data` and `meta` are JSON texts */
function encodeRequest(fields) {
  let body = ''
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined) continue
    const text = JSON_FIELDS.has(name) ? value : name === 'items' ? itemsText(value) : JSON.stringify(value)
    body += `${body === '' ? '{' : ','}"${name}":${text}`
  }
  return `${body}}`
}

const require = createRequire(import.meta.url)
const unpack = promisify(gunzip)

/** Idle timeout of connections, ms; a second less than the backend's timeout if it sends one. */
const KEEP_ALIVE_MS = 4000
const MAX_REDIRECTS = 3
/** Other redirects turn the POST into a GET: they fail. */
const REDIRECTS = new Set([307, 308])
const DOWN = new Set([502, 503, 504])

const USER_AGENT = `Halley/${packageVersion()}`

/** @param {ReadonlyMap<string, readonly string[]>} headers @returns {string[]} name, value, name, value ... */
function linesOf(headers) {
  const lines = ['content-type', 'application/json', 'accept-encoding', 'gzip']
  if (!headers.has('user-agent')) lines.push('user-agent', USER_AGENT)
  for (const [name, values] of headers) for (const value of values) lines.push(name, value)
  return lines
}

/** @param {ProxyOptions} options of the proxy @returns {ProxyTransport} @throws {Error} naming a key of its TLS block */
export function httpTransport({ endpoint, timeout, http, max_response_size: limit }) {
  // Loaded on first use: saves 10 MB per worker without proxies.
  const { Agent } = /** @type {typeof import('undici')} */ (require('undici'))
  const url = new URL(endpoint)
  const agent = new Agent({
    connections: http.max_connections,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The token cancels the call.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeout || 1000, ...(http.tls.enabled ? tlsOptions(http.tls) : {}) },
  })
  /** Cached header lines: proxies that forward no client headers always pass the same map. */
  let last = { headers: /** @type {ProxyCall['headers']} */ (new Map()), lines: /** @type {string[]} */ ([]) }

  /** @param {Response} response @returns {Buffer | Promise<Buffer>} */
  function bodyOf(response) {
    const bytes = response.body
    if (response.header('content-encoding').toLowerCase() !== 'gzip') return bytes
    return unpack(bytes, { maxOutputLength: limit }).catch(error => {
      throw error.code === 'ERR_BUFFER_TOO_LARGE'
        ? tooLarge()
        : new CallFailed('the response is not valid gzip', 'response')
    })
  }

  return {
    protocol: 'http',
    async call(event, fields, { headers, token }) {
      const body = encodeRequest(fields)
      if (last.headers !== headers) last = { headers, lines: linesOf(headers) }
      const { lines } = last
      let { origin } = url
      let path = url.pathname + url.search
      for (let redirects = 0; ; redirects++) {
        /** @type {Response} */
        const response = await new Promise((resolve, reject) => {
          const handler = new Response(limit, token, resolve, reject)
          agent.dispatch({ origin, path, method: 'POST', headers: lines, body }, handler)
        })
        const { status } = response
        if (status === 200) return decodeAnswer(event, await bodyOf(response))
        const transform = http.status_to_code_transforms.find(({ status_code }) => status_code === status)
        if (transform !== undefined) return transformed(transform)
        const target = REDIRECTS.has(status) ? redirectOf(response.header('location'), origin + path) : null
        if (target === null || redirects === MAX_REDIRECTS)
          throw new CallFailed(`status ${status}`, DOWN.has(status) ? 'unavailable' : 'status')
        origin = target.origin
        path = target.pathname + target.search
      }
    },
    close: () => agent.close(),
  }
}

const tooLarge = () => new CallFailed('the response is larger than max_response_size', 'size')

/** @param {any} error of undici @returns {CallFailed} */
function failureOf(error) {
  // Several addresses of the host failed.
  const { code, message } = error.errors?.[0] ?? error
  return new CallFailed(!code || message.includes(code) ? message : `${message} (${code})`, 'unreachable')
}

/** A handler of undici's dispatch(), which costs half of its request(). @implements {Dispatcher.DispatchHandlers} */
class Response {
  status = 0
  #limit
  #token
  #resolve
  #reject
  /** @type {Buffer[]} name, value, name, value ... */
  #headers = []
  /** @type {Buffer[]} */
  #chunks = []
  #size = 0
  #over = false
  /** @type {((error?: Error) => void) | null} of the request; null: waiting for a connection */
  #abort = null

  /**
   * @param {number} limit bytes @param {CancelToken} token @param {(response: Response) => void} resolve
   * @param {(error: Error) => void} reject
   */
  constructor(limit, token, resolve, reject) {
    this.#limit = limit
    this.#token = token
    this.#resolve = resolve
    this.#reject = reject
    token.onCancel = () => this.#fail(/** @type {Error} */ (token.reason))
    if (token.cancelled) token.onCancel()
  }

  get body() {
    return this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks)
  }

  /** @param {string} name in lower case @returns {string} '' = none */
  header(name) {
    for (let at = 0; at < this.#headers.length; at += 2)
      if (this.#headers[at].toString('latin1').toLowerCase() === name)
        return this.#headers[at + 1].toString('latin1')
    return ''
  }

  /** @param {(error?: Error) => void} abort costs the connection @throws {Error} the call was cancelled */
  onConnect(abort) {
    if (this.#over) throw new Error('aborted')
    this.#abort = abort
  }

  /** @param {number} status @param {Buffer[]} headers */
  onHeaders(status, headers) {
    this.status = status
    this.#headers = headers
    return true
  }

  /** @param {Buffer} chunk */
  onData(chunk) {
    this.#size += chunk.length
    if (this.#size <= this.#limit) {
      if (this.status === 200) this.#chunks.push(chunk)
    } else if (this.status === 200) this.#fail(tooLarge())
    else {
      this.onComplete()
      this.#abort?.()
    }
    return true
  }

  onComplete() {
    if (this.#over) return
    this.#end()
    this.#resolve(this)
  }

  /** @param {Error} error */
  onError(error) {
    this.#fail(failureOf(error))
  }

  /** @param {Error} error */
  #fail(error) {
    if (this.#over) return
    this.#end()
    this.#reject(error)
    this.#abort?.(error)
  }

  #end() {
    this.#over = true
    this.#token.onCancel = null
  }
}

/**
 * @param {string} location header @param {string} from URL
 * @returns {URL | null} null: other host, or https to http: the request may contain secrets
 */
function redirectOf(location, from) {
  if (location === '' || !URL.canParse(location, from)) return null
  const target = new URL(location, from)
  const source = new URL(from)
  if (target.origin === source.origin) return target
  return target.hostname === source.hostname && target.protocol === 'https:' ? target : null
}

/** @param {ProxyOptions['http']['status_to_code_transforms'][number]} transform @returns {ProxyAnswer} as if sent by the backend */
function transformed({ to_error: error, to_disconnect: disconnect }) {
  if (disconnect.code > 0) return { result: null, error: null, disconnect }
  return { result: null, error, disconnect: null }
}
