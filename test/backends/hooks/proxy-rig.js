// Helpers for event proxies without a gateway: handlers, events and failed calls.

import { once } from 'node:events'
import http2 from 'node:http2'
import { createProxies } from '../../../src/backends/hooks/proxies.js'
import { CapabilitySets } from '../../../src/clients/hooks/capabilities.js'
import { CallFailed } from '../../../src/clients/hooks/contract.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { textPayload } from '../../../src/clients/protocol/payload.js'
import { loadConfig } from '../../../src/config/load.js'
import { HookStats } from '../../../src/metrics/hook-stats.js'

/** @param {import('tap').Test} t @param {object} base configuration with proxies */
export function startHandlers(t, base) {
  const { config } = loadConfig({ base })
  const stats = new HookStats()
  const capabilities = new CapabilitySets()
  /** Fields and message of each log line. */
  const lines = []
  const write = (fields, message) => void lines.push([fields, message])
  const log = { info: write, warn: write, error: write }
  const create = (other = config) =>
    createProxies(other, { stats, log, clock: () => performance.now(), capabilities })
  const handlers = create()
  t.teardown(() => handlers.close())
  return { handlers, stats, lines, config, create, rpc: /** @type {any} */ (handlers.rpc?.('m')) }
}

/** @param {object} [more] @returns {any} an event, as a session makes it */
export function event(more) {
  const made = new HookEvent(/** @type {any} */ ({}))
  const fields = {
    client: 'c1',
    transport: 'websocket',
    protocol: 'json',
    user: 'u1',
    method: 'm',
    channel: 'room',
    name: 'js',
    version: '1.2',
    metaText: '{"m":1.50}',
    headerLines: [],
    emulatedHeaders: {},
    payload: textPayload('{ "n" : 1.50, "n": 12345678901234567890}'),
    code: 3000,
    reason: 'gone',
    channels: ['a', 'b'],
    duration: 1.5,
    ...more,
  }
  // Shadows the getters that read from a session.
  return Object.defineProperties(made, Object.getOwnPropertyDescriptors(fields))
}

export async function fails(t, promise, kind) {
  const error = await promise.then(
    () => null,
    error => error,
  )
  t.ok(error instanceof CallFailed, String(error))
  t.equal(error?.kind, kind, error?.message)
}

/** @param {import('tap').Test} t @param {object} proxy options of all proxies; `endpoint` at least */
export function startProxies(t, proxy) {
  const options = { timeout: '20s', ...proxy }
  const enabled = { enabled: true, ...options }
  const started = startHandlers(t, {
    client: { proxy: { connect: enabled, refresh: enabled, disconnected: enabled, unsubscribed: enabled } },
    channel: {
      proxy: { subscribe: options, publish: options, sub_refresh: options },
      without_namespace: {
        subscribe_proxy_enabled: true,
        publish_proxy_enabled: true,
        sub_refresh_proxy_enabled: true,
      },
    },
    rpc: { proxy: options, without_namespace: { proxy_enabled: true } },
  })
  const { handlers, rpc } = started
  const { subscribe, publish, subRefresh: sub_refresh } = handlers.channel('', /** @type {any} */ ({}))
  const { connect, refresh } = handlers
  const [[disconnected], [unsubscribed]] = [handlers.disconnected, handlers.unsubscribed]
  /** @type {any} */
  const all = { connect, refresh, subscribe, publish, sub_refresh, rpc, disconnected, unsubscribed }
  return { ...started, all, close: () => handlers.close() }
}

/**
 * Starts an HTTP/2 server whose responses a test defines.
 * @param {import('tap').Test} t @param {(stream: http2.ServerHttp2Stream, headers: any) => void} answer
 */
export async function startHttp2(t, answer) {
  const server = http2.createServer()
  const sessions = []
  server.on('session', session => sessions.push(session))
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    stream.resume()
    answer(stream, headers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { sessions, endpoint: `127.0.0.1:${port}` }
}

/** @param {Buffer} bytes @param {number} flag 1: compressed @returns {Buffer} a message on the wire */
export function framed(bytes, flag = 0) {
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

export function reply(stream, message, headers) {
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...headers },
    { waitForTrailers: true },
  )
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(message)
}
