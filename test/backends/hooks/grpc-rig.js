// The handlers of gRPC proxies without a gateway, and a server that need not keep the rules of gRPC.

import { once } from 'node:events'
import http2 from 'node:http2'
import { createProxies } from '../../../src/backends/hooks/proxies.js'
import { loadConfig } from '../../../src/config/load.js'
import { HookStats } from '../../../src/metrics/hook-stats.js'

/** @param {import('tap').Test} t @param {object} proxy options of all proxies; `endpoint` at least */
export function startProxies(t, proxy) {
  const options = { timeout: '20s', ...proxy }
  const client = ['connect', 'refresh', 'disconnected', 'unsubscribed'].map(name => [
    name,
    { enabled: true, ...options },
  ])
  const { config } = loadConfig({
    base: {
      client: { proxy: Object.fromEntries(client) },
      channel: {
        proxy: { subscribe: options, publish: options, sub_refresh: options },
        without_namespace: {
          subscribe_proxy_enabled: true,
          publish_proxy_enabled: true,
          sub_refresh_proxy_enabled: true,
        },
      },
      rpc: { proxy: options, without_namespace: { proxy_enabled: true } },
    },
  })
  const stats = new HookStats()
  /** @type {[object, string][]} */
  const lines = []
  const write = (/** @type {any} */ fields, /** @type {string} */ message) =>
    void lines.push([fields, message])
  const log = { info: write, warn: write, error: write }
  const handlers = createProxies(config, { stats, log, clock: () => performance.now() })
  let open = true
  const close = async () => {
    if (open) await handlers.close()
    open = false
  }
  t.teardown(close)
  const { subscribe, publish, subRefresh } = handlers.channel('', /** @type {any} */ ({}))
  const { connect, refresh } = handlers
  const [disconnected] = handlers.disconnected
  const [unsubscribed] = handlers.unsubscribed
  const rpc = handlers.rpc?.('m')
  /** @type {any} */
  const all = {
    connect,
    refresh,
    subscribe,
    publish,
    sub_refresh: subRefresh,
    rpc,
    disconnected,
    unsubscribed,
  }
  return { all, close, stats, lines, rpc: all.rpc }
}

/**
 * A server that speaks HTTP/2, and answers calls as a test says.
 * @param {import('tap').Test} t @param {(stream: http2.ServerHttp2Stream, headers: any) => void} answer
 */
export async function startHttp2(t, answer) {
  const server = http2.createServer()
  /** @type {http2.ServerHttp2Session[]} */
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

/** @param {http2.ServerHttp2Stream} stream @param {Buffer} message @param {object} [headers] */
export function reply(stream, message, headers) {
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...headers },
    { waitForTrailers: true },
  )
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(message)
}
