// What the lifecycle log costs: clients connect, subscribe and leave, at a gateway without the log and at one that
// writes it to a file, in turn.

import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { cpuOf, processTree, rssOf } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { checkCapacity, VariantsRun } from './servers.js'

/** File of the log of each variant; '' = none. */
const VARIANTS = Object.freeze({ none: '', file: 'lifecycle.log' })
const DEFAULTS = { clients: 2000, rounds: 5, runs: 3 }
/** Clients that connect at the same time. */
const TOGETHER = 50
/** For what the primary still has to write, ms. */
const REST_MS = 500

export const HELP = `Usage: npm run bench -- lifecycle [flags]

Processor time and memory of a worker and its primary, without the lifecycle log and with its file, while clients connect,
subscribe to a channel of their own, and leave: three events each.

  --clients N       that are connected at the same time (default ${DEFAULTS.clients})
  --rounds N        in which all of them come and go, after one that is not measured (default ${DEFAULTS.rounds})
  --runs N          of each variant, in turn; the table has medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

/** @param {string[]} args @returns {(typeof DEFAULTS & {json: boolean}) | null} null: help was requested */
export const parseOptions = args => parseFlags(args, DEFAULTS)

/** Both variants in turn. @extends {VariantsRun<typeof DEFAULTS & {json: boolean}>} */
export class Run extends VariantsRun {
  async run() {
    checkCapacity(this.options.clients, 1)
    await this.compare({ scenario: 'lifecycle' }, VARIANTS, file => this.#measure(file))
  }

  /** @param {string} file of the log, '' = none @returns {Promise<Record<string, number>>} */
  async #measure(file) {
    const { clients, rounds } = this.options
    const path = file && join(await this.folder(), file)
    const server = await this.spawn({ workers: 1, config: { lifecycle: { file: { path } } } })
    const [primary, worker] = processTree(server.pid)
    const address = `${server.url.replace('http', 'ws')}/connection/websocket`
    const cpu = () => {
      const ofWorker = cpuOf(worker)
      return { worker: ofWorker, primary: cpuOf(primary) - ofWorker }
    }
    await leave(await enter(address, clients))
    await sleep(REST_MS)
    const before = cpu()
    let memory = { worker: 0, primary: 0 }
    for (let round = 0; round < rounds; round++) {
      const sockets = await enter(address, clients)
      memory = { worker: rssOf(worker), primary: rssOf(primary) }
      await leave(sockets)
    }
    await sleep(REST_MS)
    const after = cpu()
    const each = (/** @type {'worker' | 'primary'} */ of) =>
      rounded(((after[of] - before[of]) / (clients * rounds)) * 1e6, 1)
    return {
      worker_cpu_us_per_client: each('worker'),
      primary_cpu_us_per_client: each('primary'),
      worker_rss_mb: rounded(memory.worker / 1e6, 1),
      primary_rss_mb: rounded(memory.primary / 1e6, 1),
    }
  }
}

/** @param {string} address @param {number} count @returns {Promise<WebSocket[]>} connected and subscribed */
async function enter(address, count) {
  /** @type {WebSocket[]} */
  const sockets = []
  for (let at = 0; at < count; at += TOGETHER) {
    const some = Array.from({ length: Math.min(TOGETHER, count - at) }, (_, n) => open(address, at + n))
    sockets.push(...(await Promise.all(some)))
  }
  return sockets
}

/** @param {string} address @param {number} n @returns {Promise<WebSocket>} */
async function open(address, n) {
  const socket = new WebSocket(address, { perMessageDeflate: false })
  await once(socket, 'open')
  socket.send('{"id":1,"connect":{}}')
  await once(socket, 'message')
  socket.send(`{"id":2,"subscribe":{"channel":"own-${n}"}}`)
  const [reply] = await once(socket, 'message')
  if (!String(reply).includes('"subscribe"')) throw new Error(`a subscription was refused: ${reply}`)
  return socket
}

/** @param {WebSocket[]} sockets */
const leave = sockets =>
  Promise.all(
    sockets.map(socket => {
      socket.close()
      return once(socket, 'close')
    }),
  )
