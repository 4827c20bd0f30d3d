// The status port of a drone (--status-port): plain HTTP, read-only.
//
//   GET /        one line of text
//   GET /json    the whole state

import { createServer } from 'node:http'
import { escapeControls } from '../../src/base/terminal-text.js'
import { REASONS } from '../link/reasons.js'
import { RATES, rate } from '../statistics/counters.js'
import { DISTRIBUTIONS, Distribution } from '../statistics/distribution.js'

/** @import { AddressInfo } from 'node:net' */
/** @import { DistributionSummary, DistributionWire, DroneSample, DroneStatus, Rates } from '../schema.js' */

/** Connections at the same time; further ones are closed. */
const MAX_CONNECTIONS = 32
/** Maximum time of a request, and of a client that does not read its response, ms. */
const TIMEOUT = 3000
const MAX_HEADERS = 8192

/** @param {number} value @param {number} digits */
const rounded = (value, digits) => Math.round(value * 10 ** digits) / 10 ** digits

/** @param {DistributionWire} wire @returns {DistributionSummary} */
function summary(wire) {
  const distribution = Distribution.from(wire)
  const ms = (/** @type {number} */ value) => rounded(value, 3)
  return {
    count: wire.count,
    mean: ms(wire.mean),
    deviation: ms(distribution.deviation),
    min: ms(wire.min),
    p50: ms(distribution.percentile(50)),
    p90: ms(distribution.percentile(90)),
    p99: ms(distribution.percentile(99)),
    max: ms(wire.max),
  }
}

/**
 * The state of a drone for its status port.
 * @param {Pick<DroneStatus, 'id' | 'run' | 'version' | 'state' | 'controller'>} drone
 * @param {DroneSample | null} sample the last one; null: none yet
 * @param {Pick<DroneSample, 'at' | 'counters'> | null} before the sample before it
 * @returns {DroneStatus}
 */
export function statusOf(drone, sample, before) {
  if (sample === null) return drone
  const span = before === null ? sample.up : sample.at - before.at
  const rates = RATES.map(name => [
    name,
    rounded(rate(sample.counters[name], before?.counters[name] ?? 0, span), 1),
  ])
  const distributions = DISTRIBUTIONS.map(name => [name, summary(sample[name])])
  return {
    ...drone,
    ...sample,
    rates: /** @type {Rates} */ (Object.fromEntries(rates)),
    .../** @type {any} */ (Object.fromEntries(distributions)),
  }
}

/** @param {DroneStatus} status @returns {string} one line */
export function statusLine({ id, run, state, controller, gauges, rates, counters, latency, ...rest }) {
  const head = `${id} ${run} ${state}, controller ${controller}`
  if (!gauges || !counters || !rates || !latency) return `${head}; no sample yet`
  const { failed, ended, lost, duplicates, disordered, damaged } = counters
  return [
    `${head}, up ${Math.round((rest.up ?? 0) / 1000)} s`,
    `open ${gauges.open} of ${gauges.wanted}, opening ${gauges.opening}, failed ${failed}, ended ${ended}`,
    `received ${Math.round(rates.received)}/s, published ${Math.round(rates.published)}/s`,
    `lost ${lost}, duplicates ${duplicates}, disordered ${disordered}, damaged ${damaged}`,
    `p99 ${latency.count > 0 ? `${latency.p99} ms` : '-'}`,
  ].join('; ')
}

/** @type {Record<string, {type: string, body: (status: DroneStatus) => string}>} */
const PAGES = Object.assign(Object.create(null), {
  '/': { type: 'text/plain; charset=utf-8', body: statusLine },
  '/json': {
    type: 'application/json',
    // Texts of the target must not control a terminal.
    body: (/** @type {DroneStatus} */ status) => escapeControls(JSON.stringify(status)),
  },
})

/**
 * Opens the status port.
 * @param {{host: string, port: number}} address `port` 0: a free one
 * @param {() => DroneStatus} getStatus called once per request
 * @returns {Promise<AddressInfo>} @throws {Error} one line
 */
export function serveStatus({ host, port }, getStatus) {
  const server = createServer({
    maxHeaderSize: MAX_HEADERS,
    headersTimeout: TIMEOUT,
    requestTimeout: TIMEOUT,
    connectionsCheckingInterval: 1000,
  })
  server.maxConnections = MAX_CONNECTIONS
  server.timeout = TIMEOUT
  server.on('request', ({ method = '', url = '' }, response) => {
    const page = PAGES[url.split('?', 1)[0]]
    const isRead = method === 'GET' || method === 'HEAD'
    const status = page === undefined ? 404 : isRead ? 200 : 405
    const body =
      status === 200
        ? page.body(getStatus())
        : status === 404
          ? 'not found: the paths are / and /json'
          : 'method not allowed: use GET'
    response.writeHead(status, {
      'content-type': status === 200 ? page.type : PAGES['/'].type,
      'content-length': Buffer.byteLength(body) + 1,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
      ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
    })
    response.end(`${body}\n`)
  })
  return new Promise((resolve, reject) => {
    // After `listen`, e.g. too many open files for one connection: the server continues.
    server.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      const place = `${host.includes(':') ? `[${host}]` : host}:${port}`
      const reason = REASONS[error.code ?? ''] ?? error.message
      reject(new Error(`cannot open the status port ${place}: ${reason}`))
    })
    server.listen({ host, port }, () => resolve(/** @type {AddressInfo} */ (server.address())))
  })
}
