// What TLS costs: memory of idle connections, processor time of a connect and of a publication's delivery, with plain
// WebSockets beside it, in turn.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { checkDriver, parseFlags } from './flags.js'
import { cpuOf, memoryOf } from './proc.js'
import { medians, rounded, table } from './report.js'
import { Server } from './servers.js'

/** @typedef {import('./bench.js').Io} Io */

const DEFAULTS = { clients: 2000, publications: 200, runs: 3 }
const TEXTS = { driver: 'auto' }

export const HELP = `Usage: npm run bench -- tls [flags]

Memory of idle WebSockets, and processor time of connects and of deliveries, with TLS and without, of one worker. As
many clients are connected before: what a process allocates at its start does not count. Each connect is a whole
handshake (ECDSA, P-256); openssl makes the certificate.

  --clients N       connections that are measured (default ${DEFAULTS.clients})
  --publications N  to all of them (default ${DEFAULTS.publications})
  --driver NAME     auto, uws or node (default ${TEXTS.driver})
  --runs N          of each variant, in turn; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** Connects under way at the same time. */
const AT_ONCE = 20
/** Of memory, for one figure. */
const READINGS = 10
const START_PATIENCE_MS = 60_000
const CHANNEL = 'bench'

/** @param {string[]} args @returns {(typeof DEFAULTS & {driver: string, json: boolean}) | null} null: help */
export function parseOptions(args) {
  const options = /** @type {any} */ (parseFlags(args, DEFAULTS, TEXTS))
  if (options !== null) checkDriver(options.driver)
  return options
}

/** Both variants in turn. */
export class Run {
  #options
  #io
  /** @type {Server | null} */
  #server = null
  #folder = ''

  /** @param {typeof DEFAULTS & {driver: string, json: boolean}} options @param {Io} io */
  constructor(options, io) {
    this.#options = options
    this.#io = io
  }

  async run() {
    const { runs, json, driver } = this.#options
    const { print, progress } = this.#io
    this.#folder = await mkdtemp(join(tmpdir(), 'halley-bench-'))
    const pair = await this.#certificate()
    const variants = { plain: null, tls: { enabled: true, cert_pem: pair.cert, key_pem: pair.key } }
    /** @type {Record<string, Record<string, number>[]>} */
    const results = {}
    for (let run = 1; run <= runs; run++) {
      for (const [name, tls] of Object.entries(variants)) {
        progress(`${name}: run ${run} of ${runs}`)
        const result = await this.#measure(tls)
        ;(results[name] ??= []).push(result)
        if (json) print(`${JSON.stringify({ scenario: 'tls', driver, variant: name, ...result })}\n`)
      }
    }
    const columns = Object.entries(results).map(([name, all]) => ({ name, result: medians(all) }))
    if (!json) print(`${table(`tls, ${driver}`, columns)}\n`)
  }

  async #certificate() {
    const [cert, key] = [join(this.#folder, 'cert.pem'), join(this.#folder, 'key.pem')]
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    const names = ['-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1']
    execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-out', cert, '-keyout', key], {
      stdio: 'pipe',
    })
    return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') }
  }

  /** @param {{cert_pem: string} | null} tls @returns {Promise<Record<string, number>>} */
  async #measure(tls) {
    const { clients, publications, driver } = this.#options
    const socket = join(this.#folder, 'stats.sock')
    const server = await Server.spawn('halley', {
      workers: 1,
      driver,
      env: this.#io.env,
      // The clients answer no pings.
      config: { stats: { socket }, client: { ping_interval: '1h' }, ...(tls && { http_server: { tls } }) },
    })
    this.#server = server
    const scheme = tls === null ? 'ws' : 'wss'
    const url = `${scheme}://127.0.0.1:${server.port}/connection/websocket`
    const open = () => connected(url, tls?.cert_pem)
    await started(server, open)
    const first = await crowd(clients, open)
    const memory = await settled(server.pid, socket)
    const cpu = cpuOf(server.pid)
    const second = await crowd(clients, open)
    const connects = cpuOf(server.pid) - cpu
    const idle = (await settled(server.pid, socket)) - memory
    const sockets = [...first, ...second]
    // Until V8 has compiled what counts.
    await deliver(sockets, Math.ceil(publications / 5))
    const before = cpuOf(server.pid)
    await deliver(sockets, publications)
    const deliveries = cpuOf(server.pid) - before
    for (const socket of sockets) socket.terminate()
    await server.stop()
    return {
      memory_bytes_per_connection: Math.round(idle / clients),
      cpu_us_per_connect: rounded((connects / clients) * 1e6, 1),
      cpu_us_per_delivery: rounded((deliveries / (publications * sockets.length)) * 1e6, 2),
    }
  }

  async stop() {
    await this.#server?.stop()
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true })
  }
}

/** @param {Server} server @param {() => Promise<WebSocket>} open */
async function started(server, open) {
  const patience = Date.now() + START_PATIENCE_MS
  for (;;) {
    const socket = await open().catch(() => null)
    if (socket !== null) return socket.terminate()
    if (!server.runs || Date.now() > patience) return server.answers()
    await sleep(50)
  }
}

/** @param {string} url @param {string} [ca] @returns {Promise<WebSocket>} connected and subscribed */
async function connected(url, ca) {
  const socket = new WebSocket(url, { perMessageDeflate: false, ca })
  await once(socket, 'open')
  socket.send(`{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"${CHANNEL}"}}`)
  return new Promise((resolve, reject) => {
    socket.onclose = () => reject(new Error('a client was closed'))
    socket.onmessage = ({ data }) => {
      if (String(data).includes('"error"')) reject(new Error(`a client was refused: ${data}`))
      if (!String(data).includes('"subscribe":')) return
      socket.onmessage = socket.onclose = null
      resolve(socket)
    }
  })
}

/** @param {number} count @param {() => Promise<WebSocket>} open @returns {Promise<WebSocket[]>} */
async function crowd(count, open) {
  /** @type {WebSocket[]} */
  const sockets = []
  let begun = 0
  const next = async () => {
    while (begun++ < count) sockets.push(await open())
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return sockets
}

/**
 * Memory after garbage collections, the least of some readings.
 * @param {number} pid of the gateway @param {string} socket its stats socket @returns {Promise<number>} bytes
 */
async function settled(pid, socket) {
  let least = Infinity
  for (let i = 0; i < READINGS; i++) {
    await collect(socket)
    await sleep(1000)
    least = Math.min(least, memoryOf(pid))
  }
  return least
}

/** Collects garbage in all workers. @param {string} path of the stats socket */
async function collect(path) {
  const socket = connect(path)
  socket.write('{"type":"gc"}\n')
  for await (const line of createInterface({ input: socket })) if (line.includes('"type":"done"')) break
  socket.destroy()
}

/** Publishes one after another to all of them. @param {WebSocket[]} sockets @param {number} publications */
function deliver(sockets, publications) {
  return new Promise((resolve, reject) => {
    const [publisher] = sockets
    let published = 0
    let waiting = 0
    const next = () => {
      if (published === publications) {
        for (const socket of sockets) socket.onmessage = socket.onclose = null
        return resolve(undefined)
      }
      waiting = sockets.length
      const data = `{"n":${++published},"text":"twenty characters..."}`
      publisher.send(`{"id":${published + 2},"publish":{"channel":"${CHANNEL}","data":${data}}}`)
    }
    for (const socket of sockets) {
      socket.onclose = () => reject(new Error('a client was closed'))
      socket.onmessage = ({ data }) => {
        if (String(data).includes('"pub":') && --waiting === 0) next()
      }
    }
    next()
  })
}
