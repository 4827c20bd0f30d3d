import { errors } from '../../../base/errors.js'
import { RedisCalls } from './calls.js'
import { ALL, decode, Inboxes, Kind } from './inboxes.js'
import { RedisOrders } from './orders.js'
import { Registry } from './registry.js'
import { RedisSurveys } from './surveys.js'

/** A worker without a heartbeat for this long counts as dead, ms. */
const LEASE_MS = 7000
const TICK_MS = 1000

const NOTHING = Buffer.alloc(0)

/** @typedef {import('../contract.js').Control} Control */

/**
 * Control between the workers of all nodes: registry, surveys, calls, users. One partition carries all of it, which
 * gives it one order.
 * @implements {Control}
 */
export class RedisControl {
  #partition
  #inboxes
  #registry
  #surveys
  #orders
  #calls
  #uid
  #node
  #local
  #users
  #onJoined
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** Whether the registry is being read. */
  #joining = false
  /** @type {(() => void)[]} surveys and calls that wait for the registry: one reply of Redis */
  #waiting = []

  /**
   * @param {object} parts @param {import('./placement.js').Placement} parts.placement
   * @param {string} parts.uid of this worker's life: letters and digits
   * @param {string} parts.node id of this node @param {number} parts.worker number of this worker
   * @param {import('../contract.js').BrokerEvents} parts.events @param {import('pino').Logger} parts.log
   * @param {Control} parts.local control of this node's own workers
   * @param {import('./users.js').RedisUsers | null} parts.users
   * @param {() => void} [parts.onJoined] called whenever this worker has joined the registry
   * @param {() => void} [parts.onCurrent] called whenever `current` has become true
   * @param {() => void} [parts.onStale] called when this worker may have missed orders: see `current`
   * @param {number} [parts.lease] ms
   * @param {typeof import('./orders.js').KEEP} [parts.keep] of orders
   */
  constructor({ lease = LEASE_MS, onJoined = () => {}, onCurrent = () => {}, onStale = () => {}, ...given }) {
    this.#partition = given.placement.control
    this.#uid = given.uid
    this.#node = given.node
    this.#local = given.local
    this.#users = given.users
    this.#onJoined = onJoined
    // After a lease a worker counts as dead: nobody waits for its replies.
    this.#inboxes = new Inboxes(this.#partition, 2 * lease)
    const parts = { ...given, partition: this.#partition, inboxes: this.#inboxes }
    const events = {
      workerUp: (/** @type {string} */ uid) => this.#workerUp(uid),
      workerGone: (/** @type {string} */ uid) => this.#workerGone(uid),
      removed: () => this.#failAll(),
      joined: () => this.#registryRead(),
      beaten: (/** @type {string} */ head, /** @type {number} */ now, /** @type {number} */ sent) =>
        this.#orders.beaten(head, now, sent),
    }
    this.#orders = new RedisOrders({
      ...parts,
      lease,
      answer: (to, survey, answer) => this.#surveys.reply(to, survey, answer),
      onCurrent: () => {
        onCurrent()
        if (this.joined) this.#onJoined()
      },
      onStale: () => {
        onStale()
        this.#registry.beat()
      },
    })
    this.#registry = new Registry({ ...parts, ttl: lease, orders: this.#orders, events })
    this.#surveys = new RedisSurveys({ ...parts, registry: this.#registry })
    this.#calls = new RedisCalls(parts)
  }

  start() {
    this.#timer = setInterval(() => this.tick(), TICK_MS)
  }

  /** @returns {Promise<void>} resolves when this worker has left the registry, or Redis is out of reach */
  close() {
    clearInterval(this.#timer)
    return this.#registry.leave()
  }

  /** Whether this worker and the others know each other. */
  get joined() {
    return this.#registry.ready && this.current
  }

  /** Whether this worker has executed all acknowledged orders. */
  get current() {
    return this.#orders.current
  }

  nodes() {
    return this.#registry.nodes()
  }

  /** @param {string} uid */
  #workerUp(uid) {
    this.#surveys.workerUp(uid)
    this.#calls.workerUp(uid)
  }

  /** @param {string} uid */
  #workerGone(uid) {
    this.#surveys.removeWorker(uid)
    this.#calls.removeWorker(uid)
  }

  /** The registry was read, or cannot be read for now. */
  #registryRead() {
    this.#joining = false
    for (const then of this.#waiting.splice(0)) then()
    if (this.joined) this.#onJoined()
  }

  #failAll() {
    this.#surveys.failAll()
    this.#calls.failAll()
  }

  /** @param {import('./partition.js').Partition} partition */
  up(partition) {
    this.#users?.up(partition)
    if (partition !== this.#partition) return
    this.#joining = true
    partition.subscribe([this.#inboxes.all, this.#inboxes.topicOf(this.#uid)], error => {
      if (error) return this.#registryRead()
      // Before the others learn that this worker is back and ask for those answers.
      this.#inboxes.flush()
      this.#registry.up()
    })
  }

  /** @param {import('./partition.js').Partition} partition */
  down(partition) {
    if (partition !== this.#partition) return
    this.#registry.down()
    this.#orders.down()
    this.#failAll()
    this.#registryRead()
  }

  /** Called once a second. */
  tick() {
    this.#orders.tick()
    this.#users?.tick()
    this.#inboxes.tick()
    this.#registry.tick()
    this.#surveys.tick()
  }

  /** Handles a message on one of the topics of this worker. @param {string} topic @param {Buffer} bytes */
  message(topic, bytes) {
    const { kind, fields, body } = decode(bytes)
    const [one, two, three] = fields
    switch (kind) {
      case Kind.WORKER_UP:
        return this.#registry.workerUp(one, Number(two), body.toString())
      case Kind.WORKER_GONE:
        return this.#registry.workerGone(one)
      case Kind.SURVEY:
        if (topic === ALL && !this.#registry.announced) return
        return this.#surveys.asked(one, Number(two), body)
      case Kind.SURVEY_ANSWER:
        return this.#surveys.answered(Number(one), two, body.toString())
      case Kind.SURVEY_LARGE:
        return this.#surveys.answeredLarge(Number(one), two, Number(three))
      case Kind.SURVEY_FAILED:
        return this.#surveys.answered(Number(one), two, '')
      case Kind.ORDER:
        return this.#orders.message(fields, body)
      case Kind.CALL:
        return this.#calls.called(one, Number(two), body)
      case Kind.CALL_ANSWER:
        return this.#calls.answered(Number(one), body)
      case Kind.CALL_FAILED:
        return this.#calls.failed(Number(one))
      case Kind.CALL_PROBE:
        return this.#calls.probed(one, JSON.parse(body.toString()))
    }
    // An empty message asks whether anybody listens; unknown kinds are of a newer version.
  }

  /** @type {Control['survey']} */
  survey(op, params) {
    if (!this.#joining) return this.#surveys.ask(op, params)
    return new Promise(resolve => this.#waiting.push(() => resolve(this.#surveys.ask(op, params))))
  }

  /** @type {Control['order']} */
  order(op, params, claim) {
    const body = JSON.stringify({ op, params })
    const give = () =>
      claim === undefined
        ? this.#surveys.order((number, sent) => this.#orders.append(number, body, 0, sent))
        : this.#claim(body, claim.at)
    if (!this.#joining) return give()
    return new Promise(resolve => this.#waiting.push(() => resolve(give())))
  }

  /** @param {string} body @param {number} at @returns {Promise<any[]>} */
  #claim(body, at) {
    if (!this.joined) return Promise.reject(errors.internal)
    return new Promise((resolve, reject) =>
      this.#orders.append(0, body, at, error => (error ? reject(error) : resolve([]))),
    )
  }

  /** @type {Control['call']} */
  call(node, worker, request, done) {
    if (node === '' || node === this.#node) this.#local.call('', worker, request, done)
    else this.callNode(node, worker, request, done)
  }

  /** Calls a worker through Redis. @type {Control['call']} */
  callNode(node, worker, request, done) {
    if (!this.#joining) return this.#call(node, worker, request, done)
    const copy = typeof request === 'string' ? request : Buffer.from(request)
    this.#waiting.push(() => this.#call(node, worker, copy, done))
  }

  /** @type {Control['claimUser']} */
  claimUser(user, limit, done) {
    this.#users?.claim(user, limit, done)
  }

  /** @type {Control['releaseUser']} */
  releaseUser(user) {
    this.#users?.release(user)
  }

  /** @type {Control['call']} */
  #call(node, worker, request, done) {
    const uid = this.#registry.find(node, worker)
    if (this.joined && uid !== undefined) return this.#calls.call(uid, request, done)
    if (done !== null) queueMicrotask(() => done(this.joined ? errors.notFound : errors.internal, NOTHING))
  }

  /** Called when a worker of this node has ended. @param {number} worker its number */
  workerGone(worker) {
    this.#registry.workerEnded(worker)
  }
}
