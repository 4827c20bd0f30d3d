// What the conformance suite of hooks needs: a gateway whose proxies, or whose module, all ask one backend. What the
// backend answers is said by the client: `answer` in the data of a command, or in the `meta` that the connect answer
// has given, by event. So every protocol plays the same table.

import { RawClient } from '../../kit/raw-client.js'

export const SECRET = 'secret of the tests'
export const EVENTS = /** @type {const} */ ([
  'connect',
  'refresh',
  'subscribe',
  'publish',
  'sub_refresh',
  'rpc',
])
export const INTERNAL = { code: 100, message: 'internal server error', temporary: true }
/** Of calls that nobody answers; others may take as long as a machine stands still. */
const SHORT = '100ms'
const LONG = '20s'

/**
 * @typedef {object} ConformanceBackend
 * @property {string} protocol http, grpc, module
 * @property {(event: string) => object} [proxy] options of its proxy for an event; `endpoint` at least
 * @property {string} [module] path of a hooks module, instead of proxies
 * @property {Readonly<Record<string, string>>} without rows of the table that it leaves out -> why
 * @property {{event: string, fields: any}[]} calls that it has got, in order
 * @property {(matches: (call: {event: string, fields: any}) => boolean) => Promise<any>} call the first one that does,
 *   past or future
 */

/**
 * Rows of a table. Those that an implementation leaves out are named, with the reason.
 * @param {Readonly<Record<string, string>>} without
 */
export function rowsOf(without) {
  /** @type {Set<string>} */
  const left = new Set()
  return {
    /** @param {any} t @param {string} name @param {(t: any) => Promise<void>} work */
    row: async (t, name, work) => {
      if (without[name] === undefined) return t.test(name, work)
      left.add(name)
      t.comment(`left out: ${name}: ${without[name]}`)
    },
    /** Whether there is a row. @param {string} name */
    has: name => without[name] === undefined,
    /** @param {any} t */
    end: t => t.strictSame(Object.keys(without).sort(), [...left].sort(), 'rows that are left out are rows'),
  }
}

/** @param {string} event @returns {any} */
const defaultOf = event => (event === 'connect' ? { result: { user: 'u' } } : {})

/** @type {Map<string, {promise: Promise<void>, release: () => void}>} */
const holds = new Map()

/** Answers with `hold` wait until they are released. @param {string} name */
export function holdOf(name) {
  let hold = holds.get(name)
  if (hold === undefined) {
    let release = () => {}
    /** @type {Promise<void>} */
    const promise = new Promise(resolve => {
      release = resolve
    })
    holds.set(name, (hold = { promise, release }))
  }
  return hold
}

/**
 * What the backend of an adapter answers.
 * @param {string} event @param {any} fields of the request, data and meta parsed
 * @returns {{result?: any, error?: any, disconnect?: any, status?: number, body?: string, never?: boolean, hold?: Promise<void>}}
 *   `never`: it does not answer; `hold`: it answers after that
 */
export function decide(event, fields) {
  if (event === 'refresh' || event === 'sub_refresh') return fields.meta?.[event] ?? {}
  const { hold, ...answer } = fields.data?.answer ?? defaultOf(event)
  return hold === undefined ? answer : { ...answer, hold: holdOf(hold).promise }
}

/** @param {number} seconds from now */
export const soon = seconds => Math.floor(Date.now() / 1000) + seconds

const NAMESPACES = [
  { name: 'free', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
  { name: 'listed', presence: true },
  { name: 'limited', allow_user_limited_channels: true },
]

const HISTORY = { history_size: 10, history_ttl: '60s', allow_recovery: true }

/** @param {string} module path @returns {any} configuration of the gateway */
const moduleConfig = module => ({
  hooks: { module, timeout: LONG },
  client: CLIENT,
  channel: { namespaces: [{ name: 'hh', ...HISTORY }, { name: 'sr', presence: true }, ...NAMESPACES] },
  rpc: { ping: { enabled: true } },
  workers: 1,
  uni_sse: { enabled: true },
})

const CLIENT = {
  token: { hmac_secret_key: SECRET },
  expired_close_delay: '0s',
  expired_sub_close_delay: '0s',
}

/** @param {ConformanceBackend} backend @returns {any} configuration of the gateway */
export const configOf = backend =>
  backend.module === undefined ? proxyConfig(backend) : moduleConfig(backend.module)

/** @param {any} backend @returns {any} */
function proxyConfig(backend) {
  const proxy = (/** @type {string} */ event) => ({
    timeout: LONG,
    include_connection_meta: true,
    http_headers: ['X-Name'],
    // Of every event: failures of the table are no reason to stop the calls.
    breaker: { failures: 0 },
    http: {
      status_to_code_transforms: [
        { status_code: 403, to_disconnect: { code: 4403, reason: 'forbidden' } },
        { status_code: 404, to_error: { code: 1404, message: 'unknown' } },
      ],
    },
    ...backend.proxy(event),
  })
  const proxied = { subscribe_proxy_enabled: true, publish_proxy_enabled: true }
  const events = ['connect', 'refresh', 'disconnected', 'unsubscribed']
  return {
    workers: 1,
    client: {
      ...CLIENT,
      proxy: Object.fromEntries(events.map(event => [event, { enabled: true, ...proxy(event) }])),
    },
    channel: {
      proxy: Object.fromEntries(['subscribe', 'publish', 'sub_refresh'].map(event => [event, proxy(event)])),
      without_namespace: proxied,
      namespaces: [
        {
          name: 'late',
          ...proxied,
          subscribe_proxy_name: 'short.subscribe',
          publish_proxy_name: 'short.publish',
        },
        { name: 'hh', ...proxied, ...HISTORY },
        { name: 'sr', ...proxied, sub_refresh_proxy_enabled: true, presence: true },
        ...NAMESPACES.map(options => (options.name === 'limited' ? { ...options, ...proxied } : options)),
      ],
    },
    rpc: {
      ping: { enabled: true },
      proxy: proxy('rpc'),
      without_namespace: { proxy_enabled: true },
      namespaces: [
        { name: 'off' },
        { name: 'on', proxy_enabled: true, proxy_name: 'named' },
        { name: 'late', proxy_enabled: true, proxy_name: 'short.rpc' },
      ],
    },
    proxies: [
      { name: 'named', ...proxy('rpc') },
      ...['subscribe', 'publish', 'rpc'].map(event => ({
        name: `short.${event}`,
        ...proxy(event),
        timeout: SHORT,
      })),
    ],
    uni_sse: { enabled: true },
    prometheus: { enabled: true },
  }
}

/**
 * Clients of a gateway.
 * @param {import('../../kit/gateway.js').TestGateway} gateway @param {ConformanceBackend} backend
 */
export function rig(gateway, backend) {
  /** @param {any} t @param {any} [answer] @param {object} [request] of connect */
  const open = async (t, answer, request = {}) => {
    const client = await RawClient.open(gateway.ws)
    t.teardown(() => client.socket.terminate())
    const data = answer && { data: { answer } }
    return { client, reply: await client.call('connect', { ...data, ...request }).catch(() => null) }
  }
  /** A connected client. @param {any} t @param {object} [result] of connect */
  const enter = async (t, result = {}) => {
    const { client, reply } = await open(t, { result: { user: 'u', ...result } })
    if (!reply?.connect) throw new Error(JSON.stringify(reply))
    client.connect = reply.connect
    return client
  }
  const count = (/** @type {string} */ event) => backend.calls.filter(call => call.event === event).length
  return { open, enter, count }
}
