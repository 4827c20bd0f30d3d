// Workers of several nodes in one process: control over Redis, without channels.

import { errors } from '../../../../src/base/errors.js'
import { RedisControl } from '../../../../src/channels/broker/redis/control.js'
import { SingleShard } from '../../../../src/channels/broker/redis/placement.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { createTestLog } from '../embedded/rig.js'

/**
 * ms; ticks are shorter than a second by the same factor. On a busy machine this process, or Redis, may be blocked for
 * a second or two, and no worker may count as dead for it.
 */
const LEASE = 2500

/** A worker with its own connection to Redis. */
export class Worker {
  /** Number of times that it may have missed orders while connected. */
  stale = 0
  /** While true, it receives nothing. */
  deaf = false
  /** @type {[string, Buffer][] | null} unread messages while it is blocked */
  #unread = null
  #proxy
  #shard
  #timer

  /**
   * @param {TcpProxy} proxy @param {import('../../../../src/channels/broker/contract.js').BrokerEvents} events
   * @param {{uid: string, node: string, worker: number, lease: number, keep?: any, log: any}} options
   */
  constructor(proxy, events, { uid, node, worker, lease, keep, log }) {
    this.uid = uid
    this.place = { node, worker }
    this.#proxy = proxy
    this.#shard = new SingleShard(
      /** @type {any} */ ({
        name: uid,
        options: { host: '127.0.0.1', port: proxy.port, connectTimeout: 5000, socketTimeout: 20_000 },
      }),
      'halley',
      {
        up: partition => this.control.up(partition),
        down: partition => this.control.down(partition),
        channelMessage: () => {},
        controlMessage: (topic, message) => this.#message(topic, message),
      },
      log,
    )
    const placement = /** @type {any} */ ({ control: this.#shard.partitions[0] })
    const onStale = () => this.stale++
    const parts = { placement, uid, node, worker, events, log, lease, keep, onJoined: () => {}, onStale }
    // Calls between workers of one node also go through Redis.
    const call = (_node, worker, request, done) => this.control.callNode(node, worker, request, done)
    this.control = new RedisControl({ ...parts, local: /** @type {any} */ ({ call }), users: null })
    this.#timer = setInterval(() => this.#unread || this.control.tick(), lease / 7)
  }

  /** @param {string} topic @param {Buffer} message */
  #message(topic, message) {
    if (this.#unread) this.#unread.push([topic, Buffer.from(message)])
    else if (!this.deaf) this.control.message(topic, message)
  }

  /** It is blocked, but stays connected. */
  sleep() {
    this.#unread = []
  }

  wake() {
    const unread = this.#unread ?? []
    this.#unread = null
    for (const [topic, message] of unread) this.control.message(topic, message)
  }

  /** @returns {Promise<void>} when all others know it */
  async join() {
    this.#shard.connect()
    await this.known()
  }

  /** @returns {Promise<void>} when it is known to others (again) */
  async known() {
    await until(() => this.control.joined, 'the worker to join')
  }

  /** Its connection is lost; it reconnects in `restore`. */
  cut() {
    this.#proxy.refuses = true
    this.#proxy.cut()
  }

  async disconnect() {
    this.cut()
    await until(() => !this.control.joined)
  }

  restore() {
    this.#proxy.refuses = false
  }

  async reconnect() {
    this.restore()
    await this.known()
  }

  /** It exits without a message. */
  die() {
    clearInterval(this.#timer)
    this.#shard.close()
    this.#proxy.stop()
  }

  survey(op, params) {
    return this.control.survey(op, params)
  }

  order(op, params, claim) {
    return this.control.order(op, params, claim)
  }

  call(node, worker, request, done) {
    this.control.call(node, worker, request, done)
  }
}

/**
 * @param {any} t @param {import('../../../kit/servers/redis.js').RedisServer} server
 * @param {{lease?: number, keep?: {life: number, entries: number, bytes: number}}} [options] ms; `keep`: of orders
 */
export async function startControlRig(t, server, { lease = LEASE, keep = undefined } = {}) {
  const log = createTestLog()
  /** @type {Set<Worker>} */
  const workers = new Set()
  t.teardown(() => {
    for (const worker of workers) worker.die()
  })
  // One server for a whole file: each test starts with an empty one.
  await server.call('FLUSHALL')
  let started = 0

  return {
    log,

    /**
     * @param {import('../../../../src/channels/broker/contract.js').BrokerEvents} events @param {string} node
     * @param {number} worker
     */
    async start(events, node, worker) {
      const proxy = await TcpProxy.start(t, server.port)
      const uid = `uid${started++}`
      const made = new Worker(proxy, events, {
        uid,
        node,
        worker,
        lease,
        keep,
        log: /** @type {any} */ (log),
      })
      workers.add(made)
      await made.join()
      return made
    },

    /**
     * As the conformance tests want it: each worker is on a node of its own, those that replace each other on the
     * same one.
     */
    async join(events, worker = started) {
      const made = await this.start(events, `node-${worker}`, worker)
      // A worker that has responded knows this one.
      await made.survey('hello', {})
      return /** @type {any} */ (made)
    },

    place: broker => broker.place,
    cut: broker => broker.die(),
    pass: () => {},
  }
}

/**
 * @param {Worker} from @param {{place: {node: string, worker: number}}} to @param {string | Buffer} request
 * @returns {Promise<string>} the answer, or the message of the error
 */
export const outcome = (from, { place: { node, worker } }, request) =>
  new Promise(resolve =>
    from.call(node, worker, request, (error, answer) => resolve(error ? error.message : String(answer))),
  )

export const NOT_FOUND = errors.notFound.message
export const INTERNAL = errors.internal.message
