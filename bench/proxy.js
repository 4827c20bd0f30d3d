// Connects of many clients at once, each admitted by an HTTP proxy, against the same requests sent to the backend by a
// bare HTTP client with as many connections; and what other clients notice: the latency of their publications.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Agent } from 'undici'
import WebSocket from 'ws'
import { cpuOf } from '../fleet/runner/proc.js'
import { medians, rounded, roundedMs } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { checkCapacity, printResult, ServerRun } from './servers.js'

/** @typedef {import('./servers.js').Gateway} Server */

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
        cpu_us_per_connect: Math.round(asked.cpu),
        cpu_without_proxy_us_per_connect: Math.round(unasked.cpu),
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

/**
 * @param {string} endpoint @param {number} count @param {number} connections
 * @returns {Promise<number>} answers a second
 */
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
 * @returns {Promise<{rate: number, failed: number, p99: number, cpu: number}>} connects a second; what failed, also of
 *   the witness; its p99 of delivery, ms; processor time of the gateway, us a connect
 */
async function wave(server, conns) {
  const url = `ws://127.0.0.1:${server.port}/connection/websocket`
  /** @type {WebSocket[]} */
  const sockets = []
  while (sockets.length < conns)
    sockets.push(
      ...(await Promise.all(Array.from({ length: Math.min(100, conns - sockets.length) }, () => open(url)))),
    )
  const file = fileURLToPath(new URL('proxy-witness.js', import.meta.url))
  const witness = fork(file, [String(server.port), server.api.key, String(PUBLISH_MS)])
  try {
    await once(witness, 'message')
    const before = cpuOf(server.pid)
    const began = performance.now()
    const admitted = await Promise.all(sockets.map(connect))
    const rate = (conns * 1000) / (performance.now() - began)
    const cpu = ((cpuOf(server.pid) - before) / conns) * 1e6
    witness.send('stop')
    const [{ latencies, failed }] = await once(witness, 'message')
    const sorted = latencies.sort((/** @type {number} */ a, /** @type {number} */ b) => a - b)
    const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0
    return { rate, failed: failed + admitted.filter(ok => !ok).length, p99, cpu }
  } finally {
    witness.kill()
    for (const socket of sockets) socket.terminate()
  }
}
