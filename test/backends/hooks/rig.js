// Helpers of the conformance suite of hooks: a gateway whose proxies, or whose module, all call one backend. The client
// chooses the response: `answer` in the data of a command, or the entry of the event in the `meta` of the connect
// response. So every protocol runs the same rows.

import { RawClient } from '../../kit/raw-client.js'

export const SECRET = 'secret of the tests'
export const EVENTS = /** @type {const} */ ([
  'connect',
  'refresh',
  'subscribe',
  'publish',
  'map_publish',
  'map_remove',
  'sub_refresh',
  'shared_poll_refresh',
  'cache_empty',
  'rpc',
])
const CHANNEL_EVENTS = EVENTS.filter(event => !['connect', 'refresh', 'rpc'].includes(event))
export const INTERNAL = { code: 100, message: 'internal server error', temporary: true }
/** Timeouts of calls that get no response, and of others, which must outlast a stalled machine. */
const SHORT = '100ms'
const LONG = '20s'

/**
 * @typedef {object} ConformanceBackend
 * @property {string} protocol http, grpc, module
 * @property {(event: string) => object} [proxy] options of the proxy for an event; at least `endpoint`
 * @property {string} [module] path of a hooks module, instead of proxies
 * @property {Readonly<Record<string, string>>} without skipped rows of the suite -> reason
 * @property {{event: string, fields: any}[]} calls received, in order
 * @property {(matches: (call: {event: string, fields: any}) => boolean) => Promise<any>} call the first match, past
 *   or future
 */

/**
 * Rows of a suite. A comment in the output names each skipped row, with the reason.
 * @param {Readonly<Record<string, string>>} without
 */
export function rowsOf(without) {
  const left = new Set()
  return {
    /** @param {any} t @param {string} name @param {(t: any) => Promise<void>} work */
    row: async (t, name, work) => {
      if (without[name] === undefined) return t.test(name, work)
      left.add(name)
      t.comment(`left out: ${name}: ${without[name]}`)
    },
    /** Whether a row runs. @param {string} name */
    has: name => without[name] === undefined,
    /** @param {any} t */
    end: t => t.strictSame(Object.keys(without).sort(), [...left].sort(), 'rows that are left out are rows'),
  }
}

const defaultOf = event => (event === 'connect' ? { result: { user: 'u' } } : {})

const holds = new Map()

/** Responses with `hold` wait until it is released. @param {string} name */
export function holdOf(name) {
  let hold = holds.get(name)
  if (hold === undefined) {
    let release = () => {}
    const promise = new Promise(resolve => (release = () => resolve(undefined)))
    holds.set(name, (hold = { promise, release }))
  }
  return hold
}

/**
 * Response of the backend of an adapter. Keys of shared polls are JSON with the answer: the fields of the `item`, or
 * an error; names of empty channels end with it.
 * @param {string} event @param {any} fields of the request, data and meta parsed
 * @returns {{result?: any, error?: any, disconnect?: any, never?: boolean, hold?: Promise<void>}}
 *   `never`: it does not answer; `hold`: it answers after that
 */
export function decide(event, fields) {
  if (['refresh', 'sub_refresh', 'map_remove'].includes(event)) return fields.meta?.[event] ?? {}
  if (event === 'shared_poll_refresh') {
    const { item, epoch, ...answer } = JSON.parse(fields.items[0].key)
    return item ? { result: { items: [{ key: fields.items[0].key, ...item }], epoch } } : answer
  }
  if (event === 'cache_empty') return JSON.parse(fields.channel.slice(fields.channel.indexOf(':') + 1))
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

const CACHE = {
  name: 'ce',
  allow_subscribe_for_client: true,
  history_size: 1,
  history_ttl: '60s',
  force_recovery: true,
  force_recovery_mode: 'cache',
  auto_cache_recover: true,
}

const POLL = {
  name: 'poll',
  subscription_type: 'shared_poll',
  allow_subscribe_for_client: true,
  shared_poll: { mode: 'versioned', refresh_interval: '1h' },
}

const MAP = { name: 'map', subscription_type: 'map', allow_subscribe_for_client: true }

/** @param {string} module path @returns {any} configuration of the gateway */
const moduleConfig = module => ({
  hooks: { module, timeout: LONG },
  shared_poll: { hmac_secret_key: SECRET },
  client: CLIENT,
  channel: {
    targeted_publications: true,
    namespaces: [
      { name: 'hh', ...HISTORY },
      { name: 'sr', presence: true },
      { ...MAP, map: { mode: 'persistent' } },
      POLL,
      CACHE,
      ...NAMESPACES,
    ],
  },
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

function proxyConfig(backend) {
  const proxy = event => ({
    timeout: LONG,
    include_connection_meta: true,
    http_headers: ['X-Name'],
    // For every event: failures in the suite must not open the breaker.
    breaker: { failures: 0 },
    ...backend.proxy(event),
  })
  const proxied = { subscribe_proxy_enabled: true, publish_proxy_enabled: true }
  const events = ['connect', 'refresh', 'disconnected', 'unsubscribed']
  return {
    workers: 1,
    shared_poll: { hmac_secret_key: SECRET },
    client: {
      ...CLIENT,
      proxy: Object.fromEntries(events.map(event => [event, { enabled: true, ...proxy(event) }])),
    },
    channel: {
      targeted_publications: true,
      proxy: Object.fromEntries(CHANNEL_EVENTS.map(event => [event, proxy(event)])),
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
        {
          ...MAP,
          map: { mode: 'persistent', publish_proxy_enabled: true, remove_proxy_enabled: true },
        },
        POLL,
        { ...CACHE, cache_empty_proxy_enabled: true },
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
  const count = event => backend.calls.filter(call => call.event === event).length
  return { open, enter, count }
}
