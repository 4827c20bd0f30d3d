// What TLS costs: memory of idle connections, processor time of a connect and of a publication's delivery, with plain
// WebSockets beside it, in turn.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { cpuOf } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { VariantsRun } from './servers.js'

/** @typedef {import('./servers.js').Gateway} Server */
/** @typedef {typeof DEFAULTS & {driver: string, json: boolean}} TlsOptions */

const DEFAULTS = { clients: 2000, publications: 200, runs: 3 }
const DRIVERS = Object.freeze(['uws', 'node'])
/** Of `--driver`: all of DRIVERS. */
const BOTH = 'both'

export const HELP = `Usage: npm run bench -- tls [flags]

Memory of idle WebSockets, and processor time of connects and of deliveries, with TLS and without, of one worker of
each socket server. As many clients are connected before: what a process allocates at its start does not count. Each
connect is a whole handshake (ECDSA, P-256); openssl makes the certificate.

  --clients N       connections that are measured (default ${DEFAULTS.clients})
  --publications N  to all of them (default ${DEFAULTS.publications})
  --driver NAME     uws or node: only this socket server (default ${BOTH})
  --runs N          of each variant, in turn; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** Connects under way at the same time. */
const AT_ONCE = 20
/** Of memory, for one figure. */
const READINGS = 10
const CHANNEL = 'bench'

/** @param {string[]} args @returns {TlsOptions | null} null: help was requested */
export const parseOptions = args =>
  /** @type {TlsOptions | null} */ (parseFlags(args, DEFAULTS, { driver: BOTH }))

/** All variants in turn. @extends {VariantsRun<TlsOptions>} */
export class Run extends VariantsRun {
  async run() {
    const { driver: only } = this.options
    const variants = (only === BOTH ? DRIVERS : [only]).flatMap(driver => [
      [`${driver}, plain`, { driver, encrypted: false }],
      [`${driver}, TLS`, { driver, encrypted: true }],
    ])
    await this.compare({ scenario: 'tls' }, Object.fromEntries(variants), variant => this.#measure(variant))
  }

  /** @param {{driver: string, encrypted: boolean}} variant @returns {Promise<Record<string, number>>} */
  async #measure({ driver, encrypted }) {
    const { clients, publications } = this.options
    const folder = await this.folder()
    const tls = encrypted ? { enabled: true, ...(await certificate(folder)) } : null
    const open = (/** @type {Server} */ { port }) =>
      connected(`${encrypted ? 'wss' : 'ws'}://127.0.0.1:${port}/connection/websocket`, tls?.cert_pem)
    const server = await this.spawn(
      {
        workers: 1,
        driver,
        // The clients answer no pings.
        config: { client: { ping_interval: '1h' }, ...(tls && { http_server: { tls } }) },
      },
      async server => {
        const socket = await open(server).catch(() => null)
        socket?.terminate()
        return socket !== null
      },
    )
    const first = await crowd(clients, () => open(server))
    const memory = await settled(server)
    const cpu = cpuOf(server.pid)
    const second = await crowd(clients, () => open(server))
    const connects = cpuOf(server.pid) - cpu
    const idle = (await settled(server)) - memory
    const sockets = [...first, ...second]
    // Until V8 has compiled what counts.
    await deliver(sockets, Math.ceil(publications / 5))
    const before = cpuOf(server.pid)
    await deliver(sockets, publications)
    const deliveries = cpuOf(server.pid) - before
    for (const socket of sockets) socket.terminate()
    return {
      memory_kb_per_connection: rounded(idle / clients / 1000, 1),
      cpu_ms_per_connect: rounded((connects / clients) * 1000, 2),
      cpu_us_per_delivery: rounded((deliveries / (publications * sockets.length)) * 1e6, 1),
    }
  }
}

/** @param {string} folder for its files @returns {Promise<{cert_pem: string, key_pem: string}>} self-signed */
async function certificate(folder) {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1']
  const args = ['req', '-x509', ...kind, ...names, '-out', cert, '-keyout', key]
  execFileSync('openssl', args, { stdio: 'pipe' })
  return { cert_pem: await readFile(cert, 'utf8'), key_pem: await readFile(key, 'utf8') }
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
 * @param {Server} server @returns {Promise<number>} bytes
 */
async function settled(server) {
  let least = Infinity
  for (let i = 0; i < READINGS; i++) {
    await collect(server.socket)
    await sleep(1000)
    least = Math.min(least, server.memory())
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
