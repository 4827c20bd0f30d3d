// What a hook costs a publication: clients publish over WebSockets to a worker without a hooks module, and with modules
// whose publish handler returns at once, in turn.

import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import WebSocket from 'ws'
import { parseFlags } from './flags.js'
import { cpuOf } from './proc.js'
import { rounded } from './report.js'
import { VariantsRun } from './servers.js'

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

/** All variants in turn. @extends {VariantsRun<typeof DEFAULTS & {json: boolean}>} */
export class Run extends VariantsRun {
  async run() {
    await this.compare({ scenario: 'hooks' }, VARIANTS, module => this.#measure(module))
  }

  /** @param {string} source of the module, '' = none @returns {Promise<Record<string, number>>} */
  async #measure(source) {
    const { clients, publications, batch } = this.options
    const module = source && join(await this.folder(), 'hooks.mjs')
    if (module) await writeFile(module, source)
    const server = await this.spawn({ workers: 1, config: { hooks: { module } } })
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
    return {
      cpu_us_per_publication: rounded((cpu / (each * clients)) * 1e6, 2),
      publications_per_s: Math.round((each * clients) / seconds),
    }
  }
}

/** @param {import('./servers.js').Server} server @returns {Promise<WebSocket>} connected */
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
