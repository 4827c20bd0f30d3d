// Two gateways and one persistent Redis under steady load, while Redis or the gateways are killed repeatedly.
// Publishers and clients are those of the tests: they record every publication. The records are compared at the end.

import { setTimeout as sleep } from 'node:timers/promises'
import { Listener, Load, SdkListener } from '../test/channels/broker/redis/traffic.js'
import { startRedis } from '../test/kit/servers/redis.js'
import { parseFlags, UsageError } from './flags.js'
import { printResult, rounded } from './report.js'
import { ServerRun } from './servers.js'

/** @typedef {import('./servers.js').Server} Server */

const NODES = 2
/** Publications of each channel kept for recovery. */
const HISTORY_SIZE = 50_000
/** Connections of publishers: so many that slow replies do not reduce the rate. */
const CONNECTIONS = 32
/** Every fourth client uses the official SDK. */
const SDK_EVERY = 4
/** ms from the last publication until clients must have received everything. */
const PATIENCE = 30_000

const DEFAULTS = {
  rounds: 20,
  every: 2_000,
  away: 200,
  rate: 2_000,
  clients: 20,
  channels: 20,
  subscriptions: 4,
  workers: 2,
}

export const HELP = `Usage: npm run bench -- restarts [flags]

Two gateways on one Redis with an append-only file; publishers, and clients that keep all that they get. Redis or a
gateway is killed (SIGKILL) and starts again, many times. At the end, every acknowledged publication is looked up at
each client. Ends with 1 if a publication is missing, repeated or out of order.

  --kill WHAT          redis, or node: one of the gateways in turn; its clients move to the other one (default redis)
  --rounds N           kills (default ${DEFAULTS.rounds})
  --every MS           from the end of one round to the next kill (default ${DEFAULTS.every})
  --away MS            from the kill to the restart (default ${DEFAULTS.away})
  --fsync WHEN         always or everysec (default always). With everysec a SIGKILL may lose what Redis acknowledged
  --rate N             publications a second (default ${DEFAULTS.rate})
  --clients N          every fourth one with the official SDK (default ${DEFAULTS.clients})
  --channels N         all with history (default ${DEFAULTS.channels})
  --subscriptions N    channels of each client (default ${DEFAULTS.subscriptions})
  --workers N          of each gateway (default ${DEFAULTS.workers})
  --json               a line of JSON instead of a table
  -h, --help           this text
`

/**
 * @typedef {typeof DEFAULTS & {kill: 'redis' | 'node', fsync: 'always' | 'everysec', json: boolean}} RestartOptions
 */

/** @param {string[]} args @returns {RestartOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { kill: 'redis', fsync: 'always' })
  if (options === null) return null
  const { kill, fsync } = options
  if (kill !== 'redis' && kill !== 'node') throw new UsageError(`--kill is redis or node, not "${kill}"`)
  if (fsync !== 'always' && fsync !== 'everysec')
    throw new UsageError(`--fsync is always or everysec, not "${fsync}"`)
  if (options.subscriptions > options.channels)
    throw new UsageError('--subscriptions want as many --channels')
  return /** @type {RestartOptions} */ (options)
}

/** @extends {ServerRun<RestartOptions>} */
export class Run extends ServerRun {
  /** @type {import('../test/kit/servers/redis.js').RedisServer | null} */
  #redis = null
  /** null: it is down. @type {(Server | null)[]} */
  #nodes = []
  /** ms from the restart of Redis, or the end of a gateway, to the next acknowledgement. @type {number[]} */
  #pauses = []

  /** @returns {Promise<boolean>} whether all clients received what they should */
  async run() {
    const { fsync, channels, rate, rounds, every, kill, json } = this.options
    const { progress, warning } = this.io
    // In place of a test: `startRedis` registers its cleanup.
    const owner = { teardown: (/** @type {() => Promise<void>} */ end) => this.ends.push(end) }
    this.#redis = await startRedis(owner, { aof: fsync === 'always' ? 'always' : true })
    for (let node = 0; node < NODES; node++) this.#nodes.push(await this.#spawn())
    const names = Array.from({ length: channels }, (_, i) => `c${i}`)
    const listeners = this.#listeners(names)
    await Promise.all(listeners.map(({ ready }) => ready))
    const urls = () => this.#alive().map(({ api }) => api.url)
    const load = new Load(urls, names, { rate, connections: CONNECTIONS })
    const began = performance.now()
    for (let round = 1; round <= rounds; round++) {
      progress(`restarts: ${kill}, ${round}/${rounds}, ${load.acks.toLocaleString('en')} acknowledged`)
      await sleep(every)
      if (kill === 'redis') await this.#killRedis(load)
      else await this.#killNode(round % NODES, load)
    }
    await sleep(every)
    const seconds = (performance.now() - began) / 1e3
    await load.stop()
    progress('restarts: waiting for the last ones')
    await this.#settle(listeners, names)
    progress('')
    const compared = compareRecords(load, listeners)
    for (const fault of compared.faults.slice(0, 10)) warning(fault)
    const result = {
      kills: rounds,
      seconds: rounded(seconds, 1),
      publishes_per_s: Math.round(compared.publications / seconds),
      ...compared.figures,
      slowest_answer_ms: Math.round(load.slowest),
      acknowledged_again_ms: Math.round(this.#pauses.reduce((sum, wait) => sum + wait, 0) / rounds),
      acknowledged_again_max_ms: Math.round(Math.max(...this.#pauses)),
    }
    printResult(this.io, json, { scenario: 'restarts', kill }, `${kill} killed`, result)
    return isSound(compared)
  }

  async #spawn() {
    const { address } = /** @type {import('../test/kit/servers/redis.js').RedisServer} */ (this.#redis)
    return await this.spawn({
      workers: this.options.workers,
      redis: { address },
      history: HISTORY_SIZE,
      subscriptions: this.options.subscriptions,
    })
  }

  #alive() {
    return /** @type {Server[]} */ (this.#nodes.filter(server => server !== null))
  }

  /** @param {string[]} names */
  #listeners(names) {
    const { clients, subscriptions } = this.options
    return Array.from({ length: clients }, (_, i) => {
      const url = () => {
        const { url } = this.#nodes[i % NODES] ?? this.#alive()[0]
        return `${url.replace('http', 'ws')}/connection/websocket`
      }
      const own = Array.from({ length: subscriptions }, (_, k) => names[(i + k) % names.length])
      const listener = i % SDK_EVERY === SDK_EVERY - 1 ? new SdkListener(url, own) : new Listener(url, own)
      this.ends.push(() => listener.stop())
      return listener
    })
  }

  /** @param {Load} load */
  async #killRedis(load) {
    const redis = /** @type {import('../test/kit/servers/redis.js').RedisServer} */ (this.#redis)
    await redis.kill()
    await sleep(this.options.away)
    await redis.start()
    await this.#acknowledgedAgain(load)
  }

  /** @param {number} node @param {Load} load */
  async #killNode(node, load) {
    const server = /** @type {Server} */ (this.#nodes[node])
    this.#nodes[node] = null
    await server.kill()
    await this.#acknowledgedAgain(load)
    await sleep(this.options.away)
    this.#nodes[node] = await this.#spawn()
  }

  /** @param {Load} load */
  async #acknowledgedAgain(load) {
    const since = performance.now()
    await load.acked(1)
    this.#pauses.push(performance.now() - since)
  }

  /**
   * Waits until all clients have reached the ends of their channels, read from Redis.
   * @param {(Listener | SdkListener)[]} listeners @param {string[]} names of the channels
   */
  async #settle(listeners, names) {
    const { url, key } = this.#alive()[0].api
    const settled = names.map(async channel => {
      const answer = await fetch(`${url}/api/history`, {
        method: 'POST',
        headers: { 'X-API-Key': key },
        body: JSON.stringify({ channel, limit: 0 }),
      })
      const { result } = /** @type {any} */ (await answer.json())
      await Promise.all(listeners.map(({ tracks }) => tracks.get(channel)?.reaches(result)))
    })
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const patience = new Promise(resolve => {
      timer = setTimeout(resolve, PATIENCE)
    })
    await Promise.race([Promise.all(settled), patience])
    clearTimeout(timer)
  }
}

/**
 * @typedef {Listener | SdkListener} Client
 * @typedef {object} Comparison
 * @property {number} publications whatever their outcome
 * @property {Record<string, number>} figures
 * @property {string[]} faults in words
 */

/** Texts of faults: see `Track` in test/channels/broker/redis/traffic.js. */
const REPEATED = / twice$/
const OUT_OF_ORDER = / after \d+ of /
/** Error 100: the request may be retried. */
const TEMPORARY = 100

/** @param {Load} load stopped @param {Client[]} clients subscribed before it began @returns {Comparison} */
export function compareRecords(load, clients) {
  const tracks = clients.flatMap(client => [...client.tracks.values()])
  const recorded = [...load.faults, ...clients.flatMap(({ faults }) => faults)]
  let expected = 0
  /** Of the acknowledged ones. */
  let delivered = 0
  let received = 0
  /** @type {string[]} */
  const missing = []
  /** @type {string[]} */
  const other = []
  for (const { channel, got } of tracks) {
    const acknowledged = load.acknowledged.get(channel) ?? new Map()
    expected += acknowledged.size
    received += got.size
    for (const [position, id] of acknowledged) {
      const gotId = got.get(position)
      if (gotId === id) delivered++
      else if (gotId === undefined) missing.push(`${channel}: ${position} (${id}) is missing`)
      else other.push(`${channel}: ${position} is ${gotId}, and was acknowledged as ${id}`)
    }
  }
  const repeated = recorded.filter(fault => REPEATED.test(fault))
  const outOfOrder = recorded.filter(fault => OUT_OF_ORDER.test(fault))
  const rest = recorded.filter(fault => !REPEATED.test(fault) && !OUT_OF_ORDER.test(fault))
  /** @param {(client: any) => number} figure */
  const sum = figure => clients.reduce((total, client) => total + figure(client), 0)
  const refused = load.errors.get(TEMPORARY) ?? 0
  const errors = [...load.errors.values()].reduce((total, count) => total + count, 0)
  const figures = {
    acknowledged: load.acks,
    refused,
    refused_otherwise: errors - refused,
    unanswered: load.unanswered,
    clients: clients.length,
    subscriptions: tracks.length,
    expected,
    delivered,
    // Stored although the publisher received an error, or no reply.
    delivered_unacknowledged: received - delivered,
    missing: missing.length,
    repeated: repeated.length,
    out_of_order: outOfOrder.length,
    other_faults: rest.length + other.length,
    told_of_gaps: tracks.reduce((total, { unrecovered }) => total + unrecovered, 0),
    clients_that_returned: clients.filter(({ returns }) => returns > 0).length,
    returns: sum(({ returns }) => returns),
    // The SDK does not report these.
    disconnects_seen: sum(({ closed = [] }) => closed.length),
    unsubscribes_seen: sum(({ unsubscribed = [] }) => unsubscribed.length),
  }
  const publications = load.acks + errors + load.unanswered
  return { publications, figures, faults: [...rest, ...other, ...outOfOrder, ...repeated, ...missing] }
}

/**
 * @param {Comparison} compared @returns {boolean} whether each client received everything once and in order,
 *   and none was notified of a gap
 */
const isSound = ({ figures, faults }) =>
  faults.length === 0 &&
  figures.told_of_gaps === 0 &&
  figures.refused_otherwise === 0 &&
  figures.acknowledged > 0
