// Connects of many clients at once, each admitted by an HTTP proxy, against the same requests sent to the backend by a
// bare HTTP client with as many connections; and what other clients notice: the latency of their publications.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Agent } from 'undici'
import WebSocket from 'ws'
import { checkDriver, parseFlags } from './flags.js'
import { medians, printResult, rounded, roundedMs } from './report.js'
import { checkCapacity, post, ServerRun } from './servers.js'

/** @typedef {import('./servers.js').Server} Server */

const DEFAULTS = { conns: 2000, workers: 1, delay: 5, connections: 128, rounds: 5 }
/** Publications of the witness, ms between two. */
const PUBLISH_MS = 10
const CONNECT = '{"id":1,"connect":{}}'

export const HELP = `Usage: npm run bench -- proxy [flags]

Opens WebSockets, then all clients connect at once, and a backend admits them. In turn: the backend alone (the same
number of requests from a bare HTTP client), a gateway that asks it, and a gateway that asks nobody.

  --conns N          clients (default ${DEFAULTS.conns})
  --workers N        of the gateway (default ${DEFAULTS.workers})
  --delay MS         of the backend for each answer (default ${DEFAULTS.delay})
  --connections N    of a worker to the backend (default ${DEFAULTS.connections})
  --rounds N         figures are medians (default ${DEFAULTS.rounds})
  --driver DRIVER    auto, uws or node (default auto)
  --json             a line of JSON instead of a table
  -h, --help         this text
`

/** @typedef {typeof DEFAULTS & {driver: string, json: boolean}} ProxyOptions */

/** @param {string[]} args @returns {ProxyOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { driver: 'auto' })
  if (options === null) return null
  checkDriver(options.driver)
  checkCapacity(options.conns, options.workers)
  return /** @type {ProxyOptions} */ (options)
}

/** @extends {ServerRun<ProxyOptions>} */
export class Run extends ServerRun {
  async run() {
    const { conns, workers, delay, connections, rounds, driver, json } = this.options
    const backend = fork(fileURLToPath(new URL('proxy-backend.js', import.meta.url)), [String(delay)])
    this.ends.push(() => backend.kill())
    const [port] = await once(backend, 'message')
    const endpoint = `http://127.0.0.1:${port}/connect`
    const connect = { enabled: true, endpoint, timeout: '30s', http: { max_connections: connections } }
    const proxied = await this.spawn({ workers, driver, config: { client: { proxy: { connect } } } })
    const plain = await this.spawn({ workers, driver })
    const results = []
    for (let round = 1; round <= rounds; round++) {
      this.io.progress(`proxy: round ${round} of ${rounds}`)
      const bare = await direct(endpoint, conns, workers * connections)
      const asked = await wave(proxied, conns)
      const unasked = await wave(plain, conns)
      results.push({
        backend_per_s: Math.round(bare),
        connects_per_s: Math.round(asked.rate),
        connects_without_proxy_per_s: Math.round(unasked.rate),
        failed: asked.failed + unasked.failed,
        delivery_p99_ms: roundedMs(asked.p99),
        delivery_without_proxy_p99_ms: roundedMs(unasked.p99),
      })
    }
    this.io.progress('')
    const result = medians(results)
    const share = rounded(result.connects_per_s / result.backend_per_s, 2)
    printResult(this.io, json, { scenario: 'proxy' }, 'halley', { ...result, share_of_backend: share })
  }
}

/** @param {string} endpoint @param {number} count @param {number} connections @returns {Promise<number>} answers a second */
async function direct(endpoint, count, connections) {
  const { origin, pathname } = new URL(endpoint)
  const agent = new Agent({ connections, pipelining: 1 })
  const body = '{"client":"bench","transport":"websocket","protocol":"json","encoding":"json"}'
  const headers = { 'content-type': 'application/json' }
  const ask = async () => {
    const response = await agent.request({ origin, path: pathname, method: 'POST', headers, body })
    return response.body.text()
  }
  // The gateway's connections are open from the round before.
  await Promise.all(Array.from({ length: connections }, ask))
  const began = performance.now()
  await Promise.all(Array.from({ length: count }, ask))
  const rate = (count * 1000) / (performance.now() - began)
  await agent.close()
  return rate
}

/** @param {string} url @returns {Promise<WebSocket>} */
async function open(url) {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  return socket
}

/** @param {WebSocket} socket @returns {Promise<boolean>} whether it was admitted */
async function connect(socket) {
  socket.send(CONNECT)
  const [data] = await once(socket, 'message')
  return String(data).includes('"client"')
}

/**
 * @param {Server} server @param {number} conns
 * @returns {Promise<{rate: number, failed: number, p99: number}>} connects a second; delivery to another client, ms
 */
async function wave(server, conns) {
  const url = `ws://127.0.0.1:${server.port}/connection/websocket`
  const witness = await open(url)
  await connect(witness)
  witness.send('{"id":2,"subscribe":{"channel":"witness"}}')
  await once(witness, 'message')
  /** @type {number[]} */
  const latencies = []
  witness.on('message', data => {
    for (const line of String(data).split('\n')) {
      const sent = JSON.parse(line).push?.pub?.data
      if (sent !== undefined) latencies.push(performance.now() - sent)
    }
  })
  /** @type {WebSocket[]} */
  const sockets = []
  while (sockets.length < conns)
    sockets.push(
      ...(await Promise.all(Array.from({ length: Math.min(100, conns - sockets.length) }, () => open(url)))),
    )
  /** @type {Promise<boolean>[]} */
  const published = []
  const publisher = setInterval(() => {
    const body = JSON.stringify({ channel: 'witness', data: performance.now() })
    published.push(post(server.api, 'publish', body).catch(() => false))
  }, PUBLISH_MS)
  const began = performance.now()
  const admitted = await Promise.all(sockets.map(connect))
  const rate = (conns * 1000) / (performance.now() - began)
  clearInterval(publisher)
  await Promise.all(published)
  for (const socket of [...sockets, witness]) socket.terminate()
  const sorted = latencies.toSorted((a, b) => a - b)
  const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0
  return { rate, failed: admitted.filter(ok => !ok).length, p99 }
}
