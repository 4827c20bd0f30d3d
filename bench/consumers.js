// How fast a consumer publishes what a backend has written, as subscribers see it: rows of an outbox in a PostgreSQL of
// its own, written with NOTIFY; or a bulk of messages in a Kafka or RabbitMQ of its own.

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { cpuOf } from '../fleet/runner/proc.js'
import { rounded, roundedMs } from '../fleet/runner/table.js'
import { startKafka, withoutKafka } from '../test/kit/servers/kafka.js'
import { startPostgres, withoutPostgres } from '../test/kit/servers/postgres.js'
import { startRabbit, withoutRabbit } from '../test/kit/servers/rabbitmq.js'
import { parseFlags, UsageError } from './flags.js'
import { VariantsRun } from './servers.js'

const DEFAULTS = { subscribers: 100, rate: 5000, seconds: 8, single: 300, messages: 50_000, runs: 3 }
/** Type -> why its server cannot be started. @type {Record<string, () => string | false>} */
const LACKS = { postgresql: withoutPostgres, kafka: withoutKafka, rabbitmq: withoutRabbit }
const TYPES = Object.keys(LACKS)
/** Of a message in bulk. */
const MESSAGE_BYTES = 100
/** Between two of the statements that keep the rate, ms. */
const STATEMENT_MS = 20
/** For the last publications, ms. */
const PATIENCE_MS = 60_000

const OUTBOX = `
  CREATE TABLE outbox (id bigserial PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
    partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now());
  CREATE INDEX ON outbox (partition, id)`

export const HELP = `Usage: npm run bench -- consumers [flags]

Rows of an outbox in a PostgreSQL that it starts (without fsync), each a publication for one of the channels, which have a
subscriber each. idle: one row at a time, from before its INSERT to its arrival. load: as many rows a second as told; their
latency has up to ${STATEMENT_MS} ms of a statement's collecting. kafka and rabbitmq: messages of ${MESSAGE_BYTES} bytes, offered as fast as
the server takes them; their rate is that from the first publication to the last one, as the subscribers see it. It exits
with 1 if a publication is missing or out of the order of its channel.

postgresql needs PostgreSQL (Debian: postgresql). rabbitmq needs RabbitMQ (Debian: rabbitmq-server). kafka needs java and
KAFKA_LIBS=FOLDER, which has the jars of org.apache.kafka:kafka_2.13:3.9.1 and an slf4j binding.

  --type TYPE         of the consumer: ${TYPES.join(', ')} (default ${TYPES[0]})
  --subscribers N     and channels (default ${DEFAULTS.subscribers})
  --messages N        of kafka and rabbitmq (default ${DEFAULTS.messages})
  --single N          rows of idle (default ${DEFAULTS.single})
  --rate N            rows a second of load (default ${DEFAULTS.rate})
  --seconds N         of load (default ${DEFAULTS.seconds})
  --runs N            the table has medians (default ${DEFAULTS.runs})
  --json              a line of JSON for each run instead of a table
  -h, --help          this text
`

/** @typedef {typeof DEFAULTS & {json: boolean, type: string}} ConsumersOptions */

/** @param {string[]} args @returns {ConsumersOptions | null} null: help was requested */
export function parseOptions(args) {
  const flags = parseFlags(args, DEFAULTS, { type: TYPES[0] })
  if (flags === null) return null
  if (!TYPES.includes(flags.type))
    throw new UsageError(`--type is ${TYPES.join(' or ')}, not "${flags.type}"`)
  const missing = LACKS[flags.type]()
  if (missing) throw new UsageError(missing)
  return /** @type {any} */ (flags)
}

/** ms, the same clock for what is written and what is received. */
const now = () => performance.now()

/** @param {number[]} sorted @param {number} part 0 to 1 @returns {number} */
const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

/** What all subscribers have received. */
class Received {
  /** Of each publication since `clear`, ms. @type {number[]} */
  latencies = []
  disordered = 0
  /** Time of the first publication and of the last one since `clear`, ms. */
  first = 0
  last = 0
  /** @type {(() => void) | null} */
  #arrived = null
  /** @type {Map<string, number>} channel -> number of its last publication */
  #numbers = new Map()

  /** @param {string} channel @param {{n: number, at: number}} data */
  add(channel, { n, at }) {
    this.last = now()
    if (this.latencies.length === 0) this.first = this.last
    this.latencies.push(this.last - at)
    if (n <= (this.#numbers.get(channel) ?? 0)) this.disordered++
    this.#numbers.set(channel, n)
    this.#arrived?.()
  }

  clear() {
    this.latencies = []
  }

  /**
   * @param {number} count @param {number} ms @returns {Promise<void>} with that many publications, or after that time
   */
  async wait(count, ms) {
    if (this.latencies.length >= count) return
    await new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#arrived = () => {
        if (this.latencies.length < count) return
        clearTimeout(timer)
        resolve(undefined)
      }
    })
    this.#arrived = null
  }

  /** @returns {Record<string, number>} */
  get figures() {
    const sorted = this.latencies.toSorted((a, b) => a - b)
    return {
      p50_ms: roundedMs(quantile(sorted, 0.5)),
      p99_ms: roundedMs(quantile(sorted, 0.99)),
      max_ms: roundedMs(quantile(sorted, 1)),
    }
  }
}

/**
 * @typedef {(t: any) => Promise<{options: object, send: (bodies: string[]) => Promise<void>}>} Queue with its server
 */

/** @type {Record<string, Queue>} */
const QUEUES = {
  async kafka(t) {
    const server = await startKafka(t)
    await server.createTopic('orders')
    const headers = { 'centrifugo-method': 'publish' }
    return {
      options: { brokers: [server.broker], topics: ['orders'], consumer_group: 'bench' },
      send: bodies =>
        server.send(
          'orders',
          bodies.map(value => ({ value, headers })),
        ),
    }
  },
  async rabbitmq(t) {
    const server = await startRabbit(t)
    await server.declare('orders')
    return {
      options: { urls: [server.url()], queues: ['orders'] },
      send: async bodies => void (await server.send('orders', bodies, { 'centrifugo-method': 'publish' })),
    }
  },
}

/** @param {number} first @param {number} count @param {number} channels @returns {string[]} publications, numbered */
function bulk(first, count, channels) {
  return Array.from({ length: count }, (_, i) => {
    const n = first + i
    const body = `{"channel":"orders-${n % channels}","data":{"n":${n},"at":0,"pad":""}}`
    return body.replace('"pad":"', `$&${'x'.repeat(Math.max(0, MESSAGE_BYTES - body.length))}`)
  })
}

/** @extends {VariantsRun<ConsumersOptions>} */
export class Run extends VariantsRun {
  #sound = true

  /** @returns {Promise<boolean>} whether everything arrived, in its order */
  async run() {
    const { type } = this.options
    await this.compare({ scenario: 'consumers' }, { [type]: type }, () =>
      type === 'postgresql' ? this.#measureRows() : this.#measureBulk(QUEUES[type]),
    )
    return this.#sound
  }

  /** What servers of tests need: they end with the run. */
  get #test() {
    return { teardown: (/** @type {any} */ end) => this.ends.push(end) }
  }

  /** @param {string} type of the consumer @param {object} options of its block @returns gateway with subscribers */
  async #consume(type, options) {
    const consumer = { name: 'bench', enabled: true, type, [type]: options }
    const server = await this.spawn({ workers: 1, config: { consumers: [consumer] } })
    const received = new Received()
    const url = `${server.url.replace('http', 'ws')}/connection/websocket`
    const channels = Array.from({ length: this.options.subscribers }, (_, n) => `orders-${n}`)
    const sockets = await Promise.all(channels.map(channel => subscribe(url, channel, received)))
    this.ends.push(() => sockets.forEach(socket => void socket.terminate()))
    return { server, received }
  }

  /** @param {Queue} queue @returns {Promise<Record<string, number>>} */
  async #measureBulk(queue) {
    const { type, subscribers, messages } = this.options
    const { options, send } = await queue(this.#test)
    const { server, received } = await this.#consume(type, options)
    await send(bulk(1, subscribers, subscribers))
    await received.wait(subscribers, PATIENCE_MS)
    const bodies = bulk(subscribers + 1, messages, subscribers)
    received.clear()
    const [cpu, started] = [cpuOf(server.pid), now()]
    await send(bodies)
    const sent = (now() - started) / 1000
    await received.wait(messages, PATIENCE_MS)
    const count = received.latencies.length
    const took = (received.last - received.first) / 1000
    this.#sound &&= count === messages && received.disordered === 0
    return {
      messages,
      sent_per_s: Math.round(messages / sent),
      received_per_s: count > 1 ? Math.round((count - 1) / took) : 0,
      missing: messages - count,
      order_faults: received.disordered,
      cpu_us_per_message: rounded(((cpuOf(server.pid) - cpu) / messages) * 1e6, 1),
    }
  }

  /** @returns {Promise<Record<string, number>>} */
  async #measureRows() {
    const { subscribers, single, rate, seconds } = this.options
    const database = await startPostgres(this.#test)
    await database.query(OUTBOX)
    const options = {
      dsn: database.dsn(),
      outbox_table_name: 'outbox',
      partition_notification_channel: 'outbox',
    }
    const { server, received } = await this.#consume('postgresql', options)

    let written = 0
    /** @param {number} count rows, to the channels in turn */
    const write = async count => {
      const [from, to, at] = [written + 1, written + count, now()]
      written = to
      await database.query(`INSERT INTO outbox (method, payload) SELECT 'publish', jsonb_build_object('channel',
        'orders-' || n % ${subscribers}, 'data', jsonb_build_object('n', n, 'at', ${at}::float8))
        FROM generate_series(${from}, ${to}) AS n; NOTIFY outbox, '0'`)
    }
    await write(subscribers)
    await received.wait(subscribers, PATIENCE_MS)
    received.clear()
    for (let i = 1; i <= single; i++) {
      await write(1)
      await received.wait(i, PATIENCE_MS)
    }
    const idle = received.figures
    let missing = single - received.latencies.length

    received.clear()
    const [rows, cpu, started] = [rate * seconds, cpuOf(server.pid), now()]
    for (let sent = 0; sent < rows; ) {
      const due = Math.min(rows, Math.floor(((now() - started + STATEMENT_MS) / 1000) * rate))
      if (due > sent) await write(due - sent)
      sent = Math.max(sent, due)
      await sleep(STATEMENT_MS - ((now() - started) % STATEMENT_MS))
    }
    const wrote = (now() - started) / 1000
    await received.wait(rows, PATIENCE_MS)
    const took = (now() - started) / 1000
    missing += rows - received.latencies.length
    this.#sound &&= missing === 0 && received.disordered === 0
    const load = received.figures
    return {
      idle_p50_ms: idle.p50_ms,
      idle_p99_ms: idle.p99_ms,
      idle_max_ms: idle.max_ms,
      rows,
      written_per_s: Math.round(rows / wrote),
      received_per_s: Math.round(received.latencies.length / took),
      missing,
      order_faults: received.disordered,
      load_p50_ms: load.p50_ms,
      load_p99_ms: load.p99_ms,
      load_max_ms: load.max_ms,
      cpu_us_per_row: rounded(((cpuOf(server.pid) - cpu) / rows) * 1e6, 1),
    }
  }
}

/** @param {string} url @param {string} channel @param {Received} received @returns {Promise<WebSocket>} subscribed */
async function subscribe(url, channel, received) {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  const subscribed = new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('a subscriber was closed')))
    socket.on('message', message => {
      for (const line of String(message).split('\n')) {
        if (line === '{}') socket.send('{}')
        else if (line.includes('"error":')) reject(new Error(`a subscriber was refused: ${line}`))
        else if (line.includes('"subscribe":')) resolve(undefined)
        else if (line.includes('"pub":')) received.add(channel, JSON.parse(line).push.pub.data)
      }
    })
  })
  subscribed.catch(() => {})
  await once(socket, 'open')
  socket.send(`{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"${channel}"}}`)
  await subscribed
  return socket
}
