// What batches save, and what conflation delivers (docs/batching.md): one channel with many clients, with and without
// `batch_max_delay`; and updates of a few keys, with and without `batch_flush_latest`.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { figuresOf } from '../fleet/runner/figures.js'
import { cpuOf } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { checkCapacity, post, VariantsRun } from './servers.js'

/** @typedef {import('./servers.js').Gateway} Server */
/** @typedef {typeof DEFAULTS & {json: boolean}} BatchingOptions */
/** @typedef {Record<string, string | boolean>} Batching options of the namespace */

const DEFAULTS = { clients: 3000, rate: 60, delay: 50, readers: 20, seconds: 8, workers: 2, runs: 3 }
const SIZE = 512

export const HELP = `Usage: npm run bench -- batching [flags]

Two comparisons, each of two variants in turn. First one channel with many clients and messages of ${SIZE} bytes, each sent
at once, and collected with batch_max_delay. Then 1,000 updates a second of 10 keys, each sent, and with batch_flush_latest
and batch_conflate_tag the newest of each key every 100 ms: it exits with 1 if a reader has not the newest update of each
key in the end, gets updates of a key out of order, or if one was neither received nor counted as conflated.

  --clients N       of the channel (default ${DEFAULTS.clients})
  --rate N          messages a second to all of them (default ${DEFAULTS.rate})
  --delay MS        batch_max_delay (default ${DEFAULTS.delay})
  --readers N       of the updates (default ${DEFAULTS.readers})
  --seconds N       measured (default ${DEFAULTS.seconds})
  --workers N       of the first comparison; the second has one (default ${DEFAULTS.workers})
  --runs N          of each variant, in turn; the tables have medians (default ${DEFAULTS.runs})
  --json            a line of JSON for each run instead of a table
  -h, --help        this text
`

const CHANNEL = 'quotes'
const KEYS = Array.from({ length: 10 }, (_, key) => `key${key}`)
/** Updates of all keys together. */
const UPDATES_PER_S = 1000
const WINDOW_MS = 100
/** ms for the last updates and for metrics, which are those of the last second. */
const PATIENCE = 15_000

/** @type {Record<string, Batching>} */
const CONFLATION = {
  'each update': {},
  'newest of each key': {
    batch_max_delay: `${WINDOW_MS}ms`,
    batch_flush_latest: true,
    batch_conflate_tag: 'key',
  },
}

/** @param {string[]} args @returns {BatchingOptions | null} null: help was requested */
export const parseOptions = args => parseFlags(args, DEFAULTS)

/** Both comparisons. @extends {VariantsRun<BatchingOptions>} */
export class Run extends VariantsRun {
  #sound = true

  /** @returns {Promise<boolean>} whether the updates are accounted for */
  async run() {
    const { clients, delay, workers } = this.options
    checkCapacity(clients, workers)
    /** @type {Record<string, Batching>} */
    const batched = { 'at once': {}, [`batches of ${delay} ms`]: { batch_max_delay: `${delay}ms` } }
    await this.compare({ scenario: 'batching' }, batched, batching => this.#flow(batching))
    await this.compare({ scenario: 'conflation' }, CONFLATION, batching => this.#updates(batching))
    return this.#sound
  }

  /** @param {Batching} batching @returns {Promise<Record<string, number>>} */
  async #flow(batching) {
    const { clients, rate, seconds, workers } = this.options
    const config = { channel: { without_namespace: batching } }
    const settings = {
      n: clients,
      channels: [CHANNEL],
      publish_channels: [CHANNEL],
      publish_rate: rate,
      publish_size: SIZE,
    }
    const { steps } = await this.runScenario('batching', { workers, config }, { settings, seconds })
    return figuresOf(steps[0])
  }

  /** @param {Batching} batching @returns {Promise<Record<string, number>>} */
  async #updates(batching) {
    const { readers: count, seconds } = this.options
    const config = { channel: { without_namespace: batching }, prometheus: { enabled: true } }
    const server = await this.spawn({ workers: 1, config })
    const url = `${server.url.replace('http', 'ws')}/connection/websocket`
    const readers = await Promise.all(Array.from({ length: count }, () => Reader.open(url)))
    this.ends.push(() => readers.forEach(reader => void reader.close()))
    const cpu = cpuOf(server.pid)
    const started = performance.now()
    const updates = await publishUpdates(server, seconds)
    const took = (performance.now() - started) / 1000
    const late = () => readers.reduce((sum, reader) => sum + reader.missing(updates), 0)
    await settled(async () => late() === 0)
    const used = cpuOf(server.pid) - cpu
    const { received, messages } = readers[0]
    const unaccounted = async () => updates - received - (await conflated(server))
    await settled(async () => (await unaccounted()) === 0)
    const result = {
      updates,
      updates_per_s: Math.round(updates / took),
      received_per_s: Math.round(received / took),
      messages_per_s: rounded(messages / took, 1),
      keys_without_newest: late(),
      order_faults: readers.reduce((sum, { disordered }) => sum + disordered, 0),
      unaccounted: await unaccounted(),
      cpu_us_per_update: rounded((used / updates) * 1e6, 1),
    }
    const { keys_without_newest, order_faults, unaccounted: lost } = result
    this.#sound &&= keys_without_newest === 0 && order_faults === 0 && lost === 0
    return result
  }
}

/** A client that reads the updates. */
export class Reader {
  #socket
  /** @type {Map<string, number>} key -> its newest update */
  #newest = new Map()
  received = 0
  /** With updates: WebSocket messages. */
  messages = 0
  disordered = 0

  /** @param {string} url @returns {Promise<Reader>} subscribed; rejects when it is refused, or its connection ends before */
  static async open(url) {
    const socket = new WebSocket(url, { perMessageDeflate: false })
    await once(socket, 'open')
    const reader = new Reader(socket)
    try {
      await reader.#subscribe()
    } catch (error) {
      reader.close()
      throw error
    }
    return reader
  }

  /** @param {WebSocket} socket open */
  constructor(socket) {
    this.#socket = socket
    socket.on('message', message => this.#read(String(message)))
  }

  /** @returns {Promise<void>} */
  #subscribe() {
    const socket = this.#socket
    socket.send(`{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"${CHANNEL}"}}`)
    return new Promise((resolve, reject) => {
      // Both replies may come in one turn of the event loop: after a promise of the first, the second would be missed.
      const answered = (/** @type {import('ws').RawData} */ reply) => {
        const text = String(reply)
        if (text.includes('"error"')) reject(new Error(`a reader was refused: ${text}`))
        else if (text.includes('"subscribe":')) resolve()
        else return
        socket.off('message', answered)
      }
      socket.on('message', answered)
      socket.once('close', code => reject(new Error(`the connection of a reader was closed (${code})`)))
    })
  }

  /** @param {string} message */
  #read(message) {
    let pushes = 0
    for (const [, data] of message.matchAll(/"pub":\{"data":(\{[^}]*\})/g)) {
      const { key, number } = JSON.parse(data)
      if (number <= (this.#newest.get(key) ?? 0)) this.disordered++
      this.#newest.set(key, number)
      pushes++
    }
    this.received += pushes
    if (pushes > 0) this.messages++
  }

  /** @param {number} updates of all keys @returns {number} keys whose newest update it has not received */
  missing(updates) {
    return KEYS.filter(key => this.#newest.get(key) !== updates / KEYS.length).length
  }

  close() {
    this.#socket.terminate()
  }
}

/** @param {Server} server @param {number} seconds @returns {Promise<number>} updates */
async function publishUpdates({ api }, seconds) {
  const rounds = (seconds * UPDATES_PER_S) / KEYS.length
  const started = performance.now()
  for (let number = 1; number <= rounds; number++) {
    const due = started + (number * 1000 * KEYS.length) / UPDATES_PER_S
    await sleep(Math.max(0, due - performance.now()))
    const commands = KEYS.map(key => ({
      publish: { channel: CHANNEL, data: { key, number }, tags: { key } },
    }))
    if (!(await post(api, 'batch', JSON.stringify({ commands })))) throw new Error('updates were refused')
  }
  return rounds * KEYS.length
}

/** @param {Server} server @returns {Promise<number>} publications that newer ones have replaced */
async function conflated({ url }) {
  const text = await (await fetch(`${url}/metrics`)).text()
  return [...text.matchAll(/^halley_batch_conflated_total\S* (\d+)/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  )
}

/** @param {() => Promise<boolean>} done @returns {Promise<void>} when it is, or after PATIENCE */
async function settled(done) {
  for (const end = Date.now() + PATIENCE; Date.now() < end && !(await done()); ) await sleep(100)
}
