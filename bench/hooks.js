// What a hook costs a publication: clients publish over WebSockets to a worker without a hooks module, and with modules
// whose publish handler returns at once, in turn.

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import WebSocket from 'ws'
import { parseFlags } from './flags.js'
import { cpuOf } from './proc.js'
import { medians, rounded, table } from './report.js'
import { Server } from './servers.js'

/** @typedef {import('./bench.js').Io} Io */

/** Module of each variant; '' = none. */
const VARIANTS = Object.freeze({
  none: '',
  passes: 'export function publish() {}',
  reads: 'export function publish({ data }) { if (data.n < 0) throw new Error("negative") }',
  changes: 'export function publish({ data, user }) { return { data: { n: data.n, by: user } } }',
})

const DEFAULTS = { clients: 8, publications: 200_000, batch: 50, runs: 5 }

export const HELP = `Usage: npm run bench -- hooks [flags]

Processor time of a gateway for a publication of a client, without hooks and with a publish handler that answers at once.
The clients' channel has no subscribers.

  --clients N       that publish at the same time (default ${DEFAULTS.clients})
  --publications N  of all clients in a run (default ${DEFAULTS.publications})
  --batch N         publications that a client sends together (default ${DEFAULTS.batch})
  --runs N          of each variant, in turn; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** @param {string[]} args @returns {(typeof DEFAULTS & {json: boolean}) | null} null: help was requested */
export const parseOptions = args => parseFlags(args, DEFAULTS)

/** All variants in turn. */
export class Run {
  #options
  #io
  /** @type {Server | null} */
  #server = null
  #folder = ''

  /** @param {typeof DEFAULTS & {json: boolean}} options @param {Io} io */
  constructor(options, io) {
    this.#options = options
    this.#io = io
  }

  async run() {
    const { runs, json } = this.#options
    const { print, progress } = this.#io
    this.#folder = await mkdtemp(join(tmpdir(), 'halley-bench-'))
    /** @type {Record<string, Record<string, number>[]>} */
    const results = {}
    for (let run = 1; run <= runs; run++) {
      for (const [name, module] of Object.entries(VARIANTS)) {
        progress(`hooks ${name}: run ${run} of ${runs}`)
        const result = await this.#measure(name, module)
        ;(results[name] ??= []).push(result)
        if (json) print(`${JSON.stringify({ scenario: 'hooks', variant: name, ...result })}\n`)
      }
    }
    const columns = Object.entries(results).map(([name, all]) => ({ name, result: medians(all) }))
    if (!json) print(`${table('hooks', columns)}\n`)
  }

  /** @param {string} name @param {string} module @returns {Promise<Record<string, number>>} */
  async #measure(name, module) {
    const { clients, publications, batch } = this.#options
    const file = join(this.#folder, `${name}.mjs`)
    if (module !== '') await writeFile(file, module)
    const server = await Server.spawn('halley', {
      workers: 1,
      env: this.#io.env,
      config: {
        ...(module !== '' && { hooks: { module: file } }),
        client: { insecure: true, allowed_origins: ['*'] },
      },
    })
    this.#server = server
    await server.answers()
    const sockets = await Promise.all(Array.from({ length: clients }, () => open(server)))
    // Until V8 has compiled what counts.
    await Promise.all(sockets.map(socket => publish(socket, Math.ceil(20_000 / clients), batch)))
    const before = cpuOf(server.pid)
    const begun = performance.now()
    const each = Math.ceil(publications / clients)
    await Promise.all(sockets.map(socket => publish(socket, each, batch)))
    const seconds = (performance.now() - begun) / 1000
    const cpu = cpuOf(server.pid) - before
    for (const socket of sockets) socket.terminate()
    await server.stop()
    return {
      cpu_us_per_publication: rounded((cpu / (each * clients)) * 1e6, 2),
      publications_per_s: Math.round((each * clients) / seconds),
    }
  }

  async stop() {
    await this.#server?.stop()
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true })
  }
}

/** @param {Server} server @returns {Promise<WebSocket>} connected */
async function open(server) {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/connection/websocket`, {
    perMessageDeflate: false,
  })
  await once(socket, 'open')
  socket.send('{"id":1,"connect":{}}')
  await once(socket, 'message')
  return socket
}

/**
 * Publishes in batches; the next one follows the last reply of the one before.
 * @param {WebSocket} socket @param {number} total @param {number} batch
 */
function publish(socket, total, batch) {
  return new Promise((resolve, reject) => {
    let sent = 0
    let answered = 0
    const next = () => {
      const lines = []
      for (let n = Math.min(batch, total - sent); n > 0; n--)
        lines.push(
          `{"id":${++sent},"publish":{"channel":"bench","data":{"n":${sent},"text":"twenty characters..."}}}`,
        )
      socket.send(lines.join('\n'))
    }
    socket.onclose = () => reject(new Error('a client was closed'))
    socket.onmessage = ({ data }) => {
      for (const line of String(data).split('\n')) {
        if (line.includes('"error"')) return reject(new Error(`a publication was refused: ${line}`))
        if (line.includes('"publish"')) answered++
      }
      if (answered === total) {
        socket.onmessage = socket.onclose = null
        resolve(undefined)
      } else if (answered === sent) next()
    }
    next()
  })
}
