// What republishing costs the clients that publish: the same load over WebSockets without and with a `republish` route
// to a real server, in turn.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { cpuOf, descendantRunning } from '../fleet/runner/proc.js'
import { ratios, rounded, roundedMs } from '../fleet/runner/table.js'
import { DESTINATIONS } from '../test/backends/queues/republishers/destinations.js'
import { parseFlags, UsageError, wholeNumber } from './flags.js'
import { VariantsRun } from './servers.js'

const DEFAULTS = { clients: 200, channels: 100, seconds: 5, runs: 5 }
const TYPES = Object.keys(DESTINATIONS)
const OVERFLOWS = ['', 'drop_oldest', 'drop_new', 'block']
/** Of the data of a publication. */
const DATA_BYTES = 100
const WARM_UP_MS = 1500
/** Between two rounds of a fixed rate, ms. */
const ROUND_MS = 5
/** For the last confirms, ms. */
const PATIENCE_MS = 60_000

export const HELP = `Usage: npm run bench -- republish [flags]

Clients publish over WebSockets, ${DATA_BYTES} bytes each, into channels that have a subscriber each: without republishing, and with a
route to a server that it starts, in turn. It prints what the subscribers receive, how long the reply to a publish takes,
and processor time of the gateway's processes and of the server. It exits with 1 if a publication is missing at a
subscriber or in the server. With --overflow the queue has its default size, and may lose what this says.

  --type TYPE        of the republisher: ${TYPES.join(', ')} (default ${TYPES[0]})
  --clients N        that publish (default ${DEFAULTS.clients})
  --channels N       that they publish into in turn (default ${DEFAULTS.channels})
  --rate N           publishes a second of all clients; 0: each client publishes as soon as it has a reply (default 0)
  --seconds N        of a run (default ${DEFAULTS.seconds})
  --overflow NAME    drop_oldest, drop_new or block (default: a queue that has room for all)
  --runs N           the table has medians, and ratios of these (default ${DEFAULTS.runs})
  --json             a line of JSON for each run, and one with the ratios, instead of a table
  -h, --help         this text
`

/** @typedef {typeof DEFAULTS & {json: boolean, type: string, rate: number, overflow: string}} RepublishOptions */

/** @param {string[]} args @returns {RepublishOptions | null} null: help was requested */
export function parseOptions(args) {
  const flags = parseFlags(args, DEFAULTS, { type: TYPES[0], rate: '0', overflow: '' })
  if (flags === null) return null
  if (!TYPES.includes(flags.type))
    throw new UsageError(`--type is ${TYPES.join(' or ')}, not "${flags.type}"`)
  if (!OVERFLOWS.includes(flags.overflow))
    throw new UsageError(`--overflow is drop_oldest, drop_new or block, not "${flags.overflow}"`)
  const missing = DESTINATIONS[flags.type].without()
  if (missing) throw new UsageError(missing)
  return /** @type {any} */ ({ ...flags, rate: wholeNumber('rate', flags.rate, 0) })
}

/** @param {number[]} sorted @param {number} part 0 to 1 @returns {number} */
const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

/** What all clients have done. */
class Load {
  replies = 0
  errors = 0
  delivered = 0
  /** ms, of the replies since `mark`. @type {number[]} */
  latencies = []

  /** Forgets latencies. @returns {{replies: number, delivered: number, at: number}} */
  mark() {
    this.latencies = []
    return { replies: this.replies, delivered: this.delivered, at: performance.now() }
  }
}

/** A client that publishes. */
class Publisher {
  #socket
  #load
  #channel
  #flatOut
  #id = 1
  /** Of publishes without a reply, ms. @type {Map<number, number>} */
  #sent = new Map()

  /** @param {WebSocket} socket @param {Load} load @param {string} channel @param {boolean} flatOut */
  constructor(socket, load, channel, flatOut) {
    this.#socket = socket
    this.#load = load
    this.#channel = channel
    this.#flatOut = flatOut
    socket.on('message', message => {
      for (const line of String(message).split('\n')) {
        if (line === '{}') socket.send('{}')
        else this.#replied(line)
      }
    })
  }

  get open() {
    return this.#sent.size
  }

  /** @param {string} line */
  #replied(line) {
    const id = Number(/^\{"id":(\d+)/.exec(line)?.[1])
    const at = this.#sent.get(id)
    if (at === undefined) return
    this.#sent.delete(id)
    if (line.includes('"error"')) this.#load.errors++
    else this.#load.replies++
    this.#load.latencies.push(performance.now() - at)
    if (this.#flatOut) this.publish()
  }

  publish() {
    const id = ++this.#id
    const data = `{"n":${id},"text":"`
    const text = 'x'.repeat(DATA_BYTES - data.length - 2)
    this.#sent.set(id, performance.now())
    this.#socket.send(`{"id":${id},"publish":{"channel":"${this.#channel}","data":${data}${text}"}}}`)
  }

  stop() {
    this.#flatOut = false
  }
}

/** @extends {VariantsRun<RepublishOptions>} */
export class Run extends VariantsRun {
  #sound = true

  /** @returns {Promise<boolean>} whether everything arrived */
  async run() {
    const { type, rate, json } = this.options
    const medians = await this.compare({ scenario: 'republish' }, { without: false, [type]: true }, on =>
      this.#measure(on),
    )
    const ratio = ratios(medians[type], medians.without)
    if (json) this.io.print(`${JSON.stringify({ scenario: 'republish', ratio_to: 'without', ...ratio })}\n`)
    else if (rate === 0) this.io.print(`published with ${type} / without: ${ratio.published_per_s}\n`)
    return this.#sound
  }

  /** @param {boolean} republish @returns {Promise<Record<string, number>>} */
  async #measure(republish) {
    const { type, clients, channels, rate, seconds, overflow } = this.options
    const test = { teardown: (/** @type {any} */ end) => this.ends.push(end) }
    // It runs without a route, too: an idle server is part of both.
    const destination = await DESTINATIONS[type].open(test, false)
    const room = overflow === '' ? { queue_max_size: 10_000_000, queue_max_bytes: 2 ** 32 } : { overflow }
    const entry = { name: 'bench', enabled: true, type, channels: ['bench-*'], [type]: destination.block }
    const { server, watcher } = await this.spawnWatched({
      workers: 1,
      config: republish ? { republish: [{ ...entry, ...room }] } : {},
    })
    const figures = () => watcher.received.at(-1)?.snapshot.republishers?.[0]
    if (republish) await watcher.next(({ republishers }) => republishers?.[0].up === true)
    const worker = descendantRunning(server.pid, 'worker/main.js')
    const queues = descendantRunning(server.pid, 'queues/main.js')
    const cpus = () => [server.pid, worker, queues, destination.pid()].map(pid => (pid ? cpuOf(pid) : 0))

    const load = new Load()
    const url = `${server.url.replace('http', 'ws')}/connection/websocket`
    const names = Array.from({ length: channels }, (_, n) => `bench-${n}`)
    const subscribers = await Promise.all(names.map(name => subscribe(url, name, load)))
    const sockets = await Promise.all(Array.from({ length: clients }, () => open(url)))
    this.ends.push(() => [...subscribers, ...sockets].forEach(socket => void socket.terminate()))
    const publishers = sockets.map(
      (socket, n) => new Publisher(socket, load, names[n % channels], rate === 0),
    )
    const running = rate === 0 ? null : new AbortController()
    if (running === null) for (const publisher of publishers) publisher.publish()
    else publishAt(rate, publishers, running.signal)
    await sleep(WARM_UP_MS)
    const [from, before] = [load.mark(), cpus()]
    await sleep(seconds * 1000)
    const [all, ofWorker, ofQueues, ofServer] = cpus().map((cpu, i) => cpu - before[i])
    const { latencies } = load
    const to = load.mark()
    running?.abort()
    for (const publisher of publishers) publisher.stop()
    const patience = performance.now() + PATIENCE_MS
    const quiet = () => publishers.every(({ open }) => open === 0) && load.delivered >= load.replies
    while (!quiet() && performance.now() < patience) await sleep(10)
    const settled = () => figures()?.queued === 0 && done(figures()) >= load.replies
    while (republish && !settled() && performance.now() < patience) await sleep(100)
    const stored = republish ? await destination.count() : 0
    const lost = republish ? Math.max(0, load.replies - stored) : 0
    const count = to.replies - from.replies
    const took = (to.at - from.at) / 1000
    this.#sound &&= load.delivered === load.replies && (lost === 0 || overflow !== '')
    const sorted = latencies.toSorted((a, b) => a - b)
    const each = (/** @type {number} */ cpu) => rounded((cpu / Math.max(1, count)) * 1e6, 1)
    return {
      published_per_s: Math.round(count / took),
      delivered_per_s: Math.round((to.delivered - from.delivered) / took),
      reply_p50_ms: roundedMs(quantile(sorted, 0.5)),
      reply_p99_ms: roundedMs(quantile(sorted, 0.99)),
      worker_cpu_us_per_publish: each(ofWorker),
      primary_cpu_us_per_publish: each(all - ofWorker - ofQueues),
      queues_cpu_us_per_publish: each(ofQueues),
      server_cpu_us_per_publish: each(ofServer),
      published: load.replies,
      errors: load.errors,
      undelivered: load.replies - load.delivered,
      republished: stored,
      lost,
    }
  }
}

/** @param {any} figures of a republisher @returns {number} messages with an outcome */
const done = ({ confirmed, returned, refused, dropped }) => confirmed + returned + refused + dropped

/** @param {number} rate a second @param {Publisher[]} publishers @param {AbortSignal} signal ends it */
async function publishAt(rate, publishers, signal) {
  const started = performance.now()
  for (let sent = 0; !signal.aborted; await sleep(ROUND_MS)) {
    const due = Math.floor(((performance.now() - started) / 1000) * rate)
    for (; sent < due; sent++) publishers[sent % publishers.length].publish()
  }
}

/** @param {string} url @returns {Promise<WebSocket>} connected */
async function open(url) {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  await once(socket, 'open')
  socket.send('{"id":1,"connect":{}}')
  await once(socket, 'message')
  return socket
}

/** @param {string} url @param {string} channel @param {Load} load counts @returns {Promise<WebSocket>} subscribed */
async function subscribe(url, channel, load) {
  const socket = await open(url)
  const subscribed = new Promise((resolve, reject) => {
    socket.once('close', () => reject(new Error('a subscriber was closed')))
    socket.on('message', message => {
      for (const line of String(message).split('\n')) {
        if (line === '{}') socket.send('{}')
        else if (line.includes('"pub":')) load.delivered++
        else if (line.includes('"error":')) reject(new Error(`a subscriber was refused: ${line}`))
        else if (line.includes('"subscribe":')) resolve(undefined)
      }
    })
  })
  subscribed.catch(() => {})
  socket.send(`{"id":2,"subscribe":{"channel":"${channel}"}}`)
  await subscribed
  return socket
}
