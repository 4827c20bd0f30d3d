// HTTP requests to every endpoint of clients and backends: valid, nearly valid, and broken bytes.

import { anything, channels, generateFrame, mutate, texts } from '../../session/fuzz/generator.js'
import { QUIET } from '../../session/fuzz/run.js'

/** @import { Random } from '../../session/fuzz/random.js' */
/**
 * @typedef {{method: string, path: string, query?: string, headers?: Record<string, string>, body?: Buffer}} Request
 */

export const API_KEY = 'key'
const names = channels.filter(name => name !== QUIET)

/** Sessions and cursors of responses, for later requests. */
export class Memory {
  /** @type {{session: string, node: string}[]} of streams */
  sessions = []
  /** @type {string[]} of long-poll */
  polls = []
  /** @type {string[]} of one-way long-poll */
  cursors = []

  /** @param {string} text of an answer, with its head */
  learn(text) {
    const session = /"session":"([^"]+)"/.exec(text)?.[1]
    const node = /"node":"([^"]+)"/.exec(text)?.[1]
    if (session !== undefined && node !== undefined) keep(this.sessions, { session, node })
    const poll = /^halley-session: *(\S+)/im.exec(text)?.[1]
    if (poll !== undefined) keep(this.polls, poll)
    const cursor = /"cursor":"([^"]+)"/.exec(text)?.[1]
    if (cursor !== undefined) keep(this.cursors, cursor)
  }
}

/** @template T @param {T[]} list @param {T} item */
function keep(list, item) {
  list.push(item)
  if (list.length > 20) list.shift()
}

/** @template T @param {Random} random @param {readonly T[]} list @param {T} none @returns {T} */
const one = (random, list, none) => (list.length === 0 ? none : random.pick(list))

/** @param {any} value */
const json = value => Buffer.from(JSON.stringify(value) ?? '')

/** @param {Record<string, any>} params */
const queryOf = params =>
  Object.entries(params)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(Buffer.from(String(value)).toString())}`)
    .join('&')

/** @param {Random} random */
const contentType = random =>
  random.pick(['application/json', 'text/plain', 'application/octet-stream', '', 'text/html; charset=utf-16'])

/** A connect request of a one-way client. @param {Random} random */
function connectRequest(random) {
  if (random.chance(0.05)) return anything(random)
  const subs = Array.from({ length: random.below(4) }, () => [
    random.pick(names),
    random.pick([
      {},
      { recover: true, offset: 1, epoch: 'x' },
      { recoverable: true },
      null,
      anything(random),
    ]),
  ])
  return {
    ...(random.chance(0.7) && { subs: Object.fromEntries(subs) }),
    ...(random.chance(0.1) && { token: random.pick(texts) }),
    ...(random.chance(0.1) && { [random.pick(texts)]: anything(random) }),
  }
}

const isBoolean = /^(delta|skip_history|reverse|expired)$/
const isText = /^(idempotency_key|version_epoch|reason|method)$/

/** @type {Record<string, (random: Random) => any>} likely values of other fields; without a row: any JSON value */
const fields = {
  channel: random => random.pick(names),
  channels: random => Array.from({ length: random.below(4) }, () => random.pick(names)),
  b64data: random => random.pick(['', 'eA==', '****', 'e30']),
  user: random => random.pick(['u1', 'u2', 'ä', '\u0000', '__proto__']),
  client: random => random.pick(['', 'x', 'a'.repeat(36)]),
  session: random => random.pick(['', 'x', 'a'.repeat(36)]),
  tags: random => random.pick([{}, { a: 'b' }, { a: 1 }, { '': '' }]),
  version: random => random.pick([0, 1, 5, 2 ** 53, 1.5]),
  limit: random => random.pick([0, 1, -1, 300, 2 ** 31]),
  since: random => random.pick([{}, { offset: 1 }, { offset: 2 ** 53, epoch: 'x' }, null]),
  pattern: random => random.pick(['', '*', '[', '{a,b', '**a**b**', '\\', '[!a-z]*', 'x'.repeat(300)]),
  expire_at: random => random.pick([0, 1, -1, 2 ** 40, 1.5]),
  b64info: random => random.pick(['', 'eA==', '*']),
  recover_since: random => random.pick([{}, { offset: 1, epoch: 'x' }, null]),
  override: random => random.pick([{}, { presence: { value: true } }, { presence: 1 }, null]),
  disconnect: random => random.pick([{ code: 4000, reason: 'x' }, { code: -1 }, { code: 3000 }, null]),
  code: random => random.pick([0, 4000, -1]),
  whitelist: random => [random.pick(texts)],
  label_filter: random => random.pick([{ key: 'a', cmp: 'nex' }, { op: 'not', nodes: [] }, {}, null]),
  where: random => random.pick([{ key: 'channel', cmp: 'ex' }, { key: 'meta.a', cmp: 'eq', val: 'x' }, {}]),
}

/** @type {Record<string, string>} fields of each method */
const methods = {
  publish: 'channel data b64data tags idempotency_key delta skip_history version',
  broadcast: 'channels data b64data tags idempotency_key skip_history version_epoch',
  subscribe: 'channel user client session label_filter info b64info data recover_since override',
  unsubscribe: 'channel user client session',
  disconnect: 'user client session label_filter whitelist disconnect code reason',
  refresh: 'user client session expired expire_at info',
  presence: 'channel',
  presence_stats: 'channel',
  history: 'channel limit since reverse',
  history_remove: 'channel',
  channels: 'pattern',
  connections: 'user label_filter where limit expression',
  info: '',
  rpc: 'method params',
  map_publish: 'channel data',
  shared_poll_publish: 'channel',
  request: 'client user session channel method data b64data',
  update_user_status: 'users state',
  get_user_status: 'users',
  delete_user_status: 'users',
  block_user: 'user expire_at',
  unblock_user: 'user',
  revoke_token: 'expire_at',
  invalidate_user_tokens: 'user expire_at channel',
}
const methodNames = Object.keys(methods)

/** @param {Random} random @param {string} field */
function likely(random, field) {
  if (isBoolean.test(field)) return random.chance(0.5)
  if (isText.test(field)) return random.pick(texts)
  return (fields[field] ?? anything)(random)
}

/** @param {Random} random @param {string} method */
function params(random, method) {
  if (random.chance(0.02)) return anything(random)
  /** @type {any} */
  const made = {}
  for (const field of methods[method].match(/\w+/g) ?? []) {
    const required = /^(channels?|data|user|pattern)$/.test(field)
    if (!random.chance(required ? 0.95 : 0.3)) continue
    made[field] = random.chance(0.03) ? anything(random) : likely(random, field)
  }
  if (random.chance(0.03)) made[random.pick(texts)] = anything(random)
  return made
}

/** @param {Random} random @returns {Request} */
function apiRequest(random) {
  const method = random.pick(methodNames)
  const headers = random.chance(0.95)
    ? random.pick([{ 'X-API-Key': API_KEY }, { Authorization: `apikey ${API_KEY}` }])
    : random.pick([{}, { 'X-API-Key': 'ke\u00e9' }, { Authorization: 'apikey ' }])
  const command = () => {
    const name = random.pick(methodNames)
    return random.chance(0.05) ? anything(random) : { [name]: params(random, name) }
  }
  switch (random.below(8)) {
    case 0: {
      const commands = Array.from({ length: random.below(6) }, command)
      const body = json({ commands, parallel: random.chance(0.5) })
      return { method: 'POST', path: '/api/batch', headers, body }
    }
    case 1: {
      const lines = Array.from({ length: 1 + random.below(4) }, (_, id) => {
        const name = random.pick(methodNames)
        return json({ id, method: name, params: params(random, name) })
      })
      return { method: 'POST', path: '/api', headers, body: Buffer.concat(lines) }
    }
    case 2:
      return {
        method: random.pick(['GET', 'OPTIONS', 'PUT', 'POST']),
        path: `/api/${random.pick([method, 'nothing', '', '..', '%2e%2e', '__proto__'])}`,
        query: random.pick(['', `api_key=${API_KEY}`, 'api_key=%', 'api_key=%ff']),
        headers,
        body: json(params(random, method)),
      }
    default:
      return { method: 'POST', path: `/api/${method}`, headers, body: json(params(random, method)) }
  }
}

/** @type {((random: Random, memory: Memory) => Request)[]} */
const kinds = [
  apiRequest,
  apiRequest,
  apiRequest,
  random => ({
    method: 'POST',
    path: '/connection/http_stream',
    headers: { 'Content-Type': contentType(random) },
    body: generateFrame(random, false),
  }),
  random => ({
    method: 'GET',
    path: '/connection/sse',
    query: queryOf({ cf_connect: generateFrame(random, false).toString() }),
  }),
  (random, memory) => {
    const { session, node } = one(random, memory.sessions, { session: 'x', node: 'y' })
    const data = generateFrame(random, true).toString()
    return {
      method: 'POST',
      path: '/emulation',
      headers: { 'Content-Type': contentType(random) },
      body: json(random.chance(0.05) ? anything(random) : { session, node, data }),
    }
  },
  random => ({
    method: 'POST',
    path: '/connection/poll',
    query: queryOf({ timeout: random.pick([0, 0.02, undefined]) }),
    headers: { 'Content-Type': contentType(random) },
    body: random.chance(0.1) ? Buffer.alloc(0) : generateFrame(random, false),
  }),
  (random, memory) => ({
    method: 'POST',
    path: '/connection/poll',
    query: queryOf({
      session: one(random, memory.polls, 'x'.repeat(40)),
      ack: random.pick([undefined, 0, 1, 2, 5, -1, 2 ** 53, 'x']),
      send: random.pick([undefined, 1, 2, 3, 0, 'x']),
      timeout: random.pick([0, 0.02, 'x']),
      close: random.chance(0.1) ? random.pick([0, 1, 2]) : undefined,
    }),
    body: random.chance(0.3) ? Buffer.alloc(0) : generateFrame(random, true),
  }),
  random => ({
    method: 'POST',
    path: '/connection/uni_http_stream',
    headers: { 'Content-Type': contentType(random) },
    body: json(connectRequest(random)),
  }),
  random => ({
    method: random.pick(['GET', 'POST']),
    path: '/connection/uni_sse',
    query: queryOf({ cf_connect: JSON.stringify(connectRequest(random)) }),
    headers: random.chance(0.3) ? { 'Last-Event-ID': random.pick(['1', 'x', 'eyJhIjoxfQ', '{"a":1}']) } : {},
    body: random.chance(0.5) ? json(connectRequest(random)) : undefined,
  }),
  (random, memory) => ({
    method: random.pick(['GET', 'GET', 'POST']),
    path: '/connection/uni_poll',
    query: queryOf({
      channel: random.pick(names),
      cursor: random.chance(0.6) ? one(random, memory.cursors, 'x') : undefined,
      timeout: random.pick([0, 0.02, 'x']),
      limit: random.chance(0.2) ? random.pick([0, 1, -1, 'x']) : undefined,
      token: random.chance(0.05) ? random.pick(texts) : undefined,
    }),
    body: random.chance(0.3) ? json(connectRequest(random)) : undefined,
  }),
  random => ({
    method: 'GET',
    path: random.pick(['/connection/websocket', '/connection/uni_websocket']),
    query: random.chance(0.5) ? queryOf({ cf_connect: JSON.stringify(connectRequest(random)) }) : '',
    headers: {
      Connection: 'Upgrade',
      Upgrade: random.pick(['websocket', 'websocket', 'h2c']),
      'Sec-WebSocket-Version': random.pick(['13', '13', '8', '']),
      'Sec-WebSocket-Key': random.pick(['dGhlIHNhbXBsZSBub25jZQ==', '', 'x']),
      ...(random.chance(0.3) && { 'Sec-WebSocket-Protocol': random.pick(['centrifuge-protobuf', 'x', ',']) }),
    },
  }),
  random => ({
    method: random.pick(['GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE', 'BREW']),
    path: random.pick('/ /health /metrics /admin /admin/api/login // /%00 /connection *'.split(' ')),
    body: json(anything(random)),
  }),
]

/** @type {[name: string, values: string[]][]} headers that any client may send */
const strangeHeaders = [
  ['Origin', ['https://evil.example', 'null', '', 'http://127.0.0.1']],
  ['Expect', ['100-continue']],
  ['X-Long', ['y'.repeat(100), 'y'.repeat(3000)]],
  ['Connection', ['close', 'keep-alive', 'upgrade']],
  ['Authorization', ['Bearer', 'Bearer x.y.z', 'Basic eDp5', 'apikey']],
  ['Cookie', [texts.slice(0, 4).join('; ').replaceAll('\u2028', '')]],
  ['X-Forwarded-For', ['1.2.3.4', '::', 'x, y']],
]

/** @param {Random} random @returns {Record<string, string>} */
function strange(random) {
  const [name, values] = random.pick(strangeHeaders)
  return { [name]: random.pick(values) }
}

/** @param {Random} random @param {Memory} memory @returns {Buffer} a whole request, or what is left of one */
export function generateRequest(random, memory) {
  const request = random.pick(kinds)(random, memory)
  const { method, path, query = '', headers = {} } = request
  let { body = Buffer.alloc(0) } = request
  if (random.chance(0.1)) body = mutate(random, body)
  /** @type {Record<string, string>} */
  const all = { Host: '127.0.0.1', ...headers, ...(random.chance(0.15) && strange(random)) }
  const chunked = body.length > 0 && random.chance(0.05)
  if (chunked) {
    all['Transfer-Encoding'] = 'chunked'
    body = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')])
  } else if (body.length > 0 || method === 'POST') {
    const length = random.chance(0.02)
      ? random.pick([0, body.length - 1, body.length + 5, 1e9, -1])
      : body.length
    all['Content-Length'] = `${length}`
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  const head = `${method} ${path}${query === '' ? '' : `?${query}`} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
  const whole = Buffer.concat([Buffer.from(head), body])
  return random.chance(0.08) ? mutate(random, whole) : whole
}
