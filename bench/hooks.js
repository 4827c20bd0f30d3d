// Cost of a `publish` hook: clients publish over WebSockets to a worker without a hooks module, and with modules whose
// handler returns at once, in turn.

import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import WebSocket from 'ws'
import { cpuOf } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { VariantsRun } from './servers.js'

/** Source of each variant's hooks module: none, a handler that returns, one that reads `data`, one that replaces it. */
const VARIANTS = Object.freeze({
  none: '',
  passes: 'export function publish() {}',
  reads: 'export function publish({ data }) { if (data.n < 0) throw new Error("negative") }',
  changes: 'export function publish({ data, user }) { return { data: { n: data.n, by: user } } }',
})

const DEFAULTS = { clients: 8, publications: 200_000, batch: 50, runs: 5 }
/** Publications of all clients before the measurement: V8 compiles the code that they run. */
const WARM_UP_PUBLICATIONS = 20_000

export const HELP = `Usage: npm run bench -- hooks [flags]

Processor time of a gateway per publication by a client, without hooks and with publish handlers that return at once.
The channel has no subscribers.

  --clients N       clients, which publish concurrently (default ${DEFAULTS.clients})
  --publications N  publications of a run, all clients together (default ${DEFAULTS.publications})
  --batch N         publications in one WebSocket message (default ${DEFAULTS.batch})
  --runs N          runs of each variant, in turn; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** @param {string[]} args @returns {(typeof DEFAULTS & {json: boolean}) | null} null: help was requested */
export const parseOptions = args => parseFlags(args, DEFAULTS)

/** All variants in turn. @extends {VariantsRun<typeof DEFAULTS & {json: boolean}>} */
export class Run extends VariantsRun {
  async run() {
    await this.compare({ scenario: 'hooks' }, VARIANTS, module => this.#measure(module))
  }

  /** @param {string} source of the hooks module; '': none @returns {Promise<Record<string, number>>} figures */
  async #measure(source) {
    const { clients, publications, batch } = this.options
    const module = source && join(await this.folder(), 'hooks.mjs')
    if (module) await writeFile(module, source)
    const server = await this.spawn({ workers: 1, config: { hooks: { module } } })
    const sockets = await Promise.all(Array.from({ length: clients }, () => connect(server)))
    await publishAll(sockets, WARM_UP_PUBLICATIONS, batch)
    const before = cpuOf(server.pid)
    const begun = performance.now()
    const published = await publishAll(sockets, publications, batch)
    const seconds = (performance.now() - begun) / 1000
    const cpu = cpuOf(server.pid) - before
    for (const socket of sockets) socket.terminate()
    return {
      cpu_us_per_publication: rounded((cpu / published) * 1e6, 2),
      publications_per_s: Math.round(published / seconds),
    }
  }
}

/** @param {import('./servers.js').Gateway} server @returns {Promise<WebSocket>} connected */
async function connect(server) {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/connection/websocket`, {
    perMessageDeflate: false,
  })
  await once(socket, 'open')
  socket.send('{"id":1,"connect":{}}')
  await once(socket, 'message')
  return socket
}

/**
 * @param {WebSocket[]} sockets @param {number} total publications at least, shared evenly @param {number} batch
 * @returns {Promise<number>} publications accepted
 */
async function publishAll(sockets, total, batch) {
  const perClient = Math.ceil(total / sockets.length)
  await Promise.all(sockets.map(socket => publish(socket, perClient, batch)))
  return perClient * sockets.length
}

/**
 * Publishes in batches; each batch is sent after the last reply to the one before.
 * @param {WebSocket} socket @param {number} total publications @param {number} batch publications of one message
 * @returns {Promise<void>} when all were accepted; rejects if one is refused or the connection ends
 */
function publish(socket, total, batch) {
  return new Promise((resolve, reject) => {
    let sent = 0
    let accepted = 0
    const sendBatch = () => {
      const lines = []
      for (let n = Math.min(batch, total - sent); n > 0; n--)
        lines.push(
          `{"id":${++sent},"publish":{"channel":"bench","data":{"n":${sent},"text":"twenty characters..."}}}`,
        )
      socket.send(lines.join('\n'))
    }
    socket.onclose = () => reject(new Error('the gateway closed a connection'))
    socket.onmessage = ({ data }) => {
      for (const line of String(data).split('\n')) {
        // A ping. Its answer is the same.
        if (line === '{}') socket.send(line)
        if (line.includes('"error"')) return reject(new Error(`a publication was refused: ${line}`))
        if (line.includes('"publish"')) accepted++
      }
      if (accepted === total) {
        socket.onmessage = socket.onclose = null
        resolve()
      } else if (accepted === sent) sendBatch()
    }
    sendBatch()
  })
}
