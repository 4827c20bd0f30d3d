import { errors } from '../../../base/errors.js'
import { RedisCalls } from './calls.js'
import { ALL, decode, Inboxes, Kind } from './inboxes.js'
import { RedisOrders } from './orders.js'
import { Registry } from './registry.js'
import { RedisSurveys } from './surveys.js'

/** @import { Control } from '../contract.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { KEEP } from './orders.js' */
/** @import { Partition } from './partition.js' */
/** @import { RedisUsers } from './users.js' */

/** Time without a heartbeat until a worker counts as dead, ms. */
const LEASE_MS = 7000
const TICK_MS = 1000

const NOTHING = Buffer.alloc(0)

/**
 * @typedef {Pick<RedisParts, 'uid' | 'node' | 'worker' | 'events' | 'log'> & {partition: Partition, inboxes: Inboxes}}
 *   ControlParts shared by the parts of control
 */

/**
 * Control between the workers of all nodes. All messages use one partition, so they have one order.
 * @implements {Control}
 */
export class RedisControl {
  #partition
  #inboxes
  #registry
  #surveys
  #orders
  #calls
  #parts
  #onJoined
  #onState
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #joining = false
  /** @type {(() => void)[]} surveys and calls waiting for the registry: one Redis reply */
  #waiting = []

  /**
   * @param {Pick<RedisParts, 'placement' | 'uid' | 'node' | 'worker' | 'events' | 'local' | 'log'> & {
   *   users: RedisUsers | null, onJoined?: () => void, onCurrent?: () => void, onStale?: () => void,
   *   onWorkerGone?: (uid: string) => void, onState?: (index: number) => void, lease?: number, keep?: typeof KEEP}} parts `onJoined`: this worker joined the registry; `onCurrent`: `current` is true;
   *   `onStale`: this worker may have missed orders; `lease`: ms; `keep`: of orders
   */
  constructor(parts) {
    const { lease = LEASE_MS, ...given } = parts
    const {
      onJoined = () => {},
      onCurrent = () => {},
      onStale = () => {},
      onWorkerGone = () => {},
      onState = () => {},
    } = given
    this.#partition = given.placement.control
    this.#parts = given
    this.#onJoined = onJoined
    this.#onState = onState
    // After its lease a worker counts as dead: no worker waits for its replies.
    this.#inboxes = new Inboxes(this.#partition, 2 * lease)
    const shared = { ...given, partition: this.#partition, inboxes: this.#inboxes, lease }
    this.#orders = new RedisOrders({
      ...shared,
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
    this.#registry = new Registry(
      { ...shared, orders: this.#orders },
      {
        workerUp: uid => {
          this.#surveys.workerUp(uid)
          this.#calls.workerUp(uid)
        },
        workerGone: uid => {
          this.#surveys.removeWorker(uid)
          this.#calls.removeWorker(uid)
          onWorkerGone(uid)
        },
        removed: () => this.#failAll(),
        joined: () => this.#registryRead(),
        beaten: (head, now, sent) => this.#orders.beaten(head, now, sent),
      },
    )
    this.#surveys = new RedisSurveys({ ...shared, registry: this.#registry })
    this.#calls = new RedisCalls(shared)
  }

  start() {
    this.#timer = setInterval(() => this.tick(), TICK_MS)
  }

  close() {
    clearInterval(this.#timer)
    return this.#registry.leave()
  }

  get joined() {
    return this.#registry.ready && this.current
  }

  get current() {
    return this.#orders.current
  }

  nodes() {
    return this.#registry.nodes()
  }

  #registryRead() {
    this.#joining = false
    for (const then of this.#waiting.splice(0)) then()
    if (this.joined) this.#onJoined()
  }

  #failAll() {
    this.#surveys.failAll()
    this.#calls.failAll()
  }

  /** @param {Partition} partition */
  up(partition) {
    this.#parts.users?.up(partition)
    if (partition !== this.#partition) return
    this.#joining = true
    partition.subscribe([this.#inboxes.all, this.#inboxes.topicOf(this.#parts.uid)], error => {
      if (error) return this.#registryRead()
      // Before other workers request them again.
      this.#inboxes.flush()
      this.#registry.up()
    })
  }

  /** @param {Partition} partition */
  down(partition) {
    if (partition !== this.#partition) return
    this.#registry.down()
    this.#orders.down()
    this.#failAll()
    this.#registryRead()
  }

  tick() {
    for (const part of [this.#orders, this.#parts.users, this.#inboxes, this.#registry, this.#surveys])
      part?.tick()
  }

  /** An empty message is a probe. @type {Record<string, (fields: string[], body: Buffer, topic: string) => void>} */
  #handlers = {
    [Kind.WORKER_UP]: ([uid, worker], body) => this.#registry.workerUp(uid, Number(worker), body.toString()),
    [Kind.WORKER_GONE]: ([uid]) => this.#registry.workerGone(uid),
    [Kind.SURVEY]: ([uid, number], body, topic) => {
      if (topic !== ALL || this.#registry.announced) this.#surveys.question(uid, Number(number), body)
    },
    [Kind.SURVEY_ANSWER]: ([number, uid], body) =>
      this.#surveys.answered(Number(number), uid, body.toString()),
    [Kind.SURVEY_LARGE]: ([number, uid, size]) =>
      this.#surveys.answeredLarge(Number(number), uid, Number(size)),
    [Kind.SURVEY_FAILED]: ([number, uid]) => this.#surveys.answered(Number(number), uid, ''),
    [Kind.ORDER]: (fields, body) => this.#orders.message(fields, body),
    [Kind.STATE]: ([index]) => this.#onState(Number(index)),
    [Kind.CALL]: ([uid, number], body) => this.#calls.called(uid, Number(number), body),
    [Kind.CALL_ANSWER]: ([number], body) => this.#calls.answered(Number(number), body),
    [Kind.CALL_FAILED]: ([number]) => this.#calls.failed(Number(number)),
    [Kind.CALL_PROBE]: ([uid], body) => this.#calls.probed(uid, JSON.parse(body.toString())),
  }

  /** Handles a message on one of the topics of this worker. @param {string} topic @param {Buffer} bytes */
  message(topic, bytes) {
    const { kind, fields, body } = decode(bytes)
    if (Object.hasOwn(this.#handlers, kind)) this.#handlers[kind](fields, body, topic)
  }

  /** @template T @param {() => Promise<T>} make called after reading the registry @returns {Promise<T>} */
  #whenJoined(make) {
    if (!this.#joining) return make()
    return new Promise(resolve => this.#waiting.push(() => resolve(make())))
  }

  /** @type {Control['survey']} */
  survey(op, params) {
    return this.#whenJoined(() => this.#surveys.ask(op, params))
  }

  /** @type {Control['order']} */
  order(op, params, claim) {
    const body = JSON.stringify({ op, params })
    return this.#whenJoined(() => {
      if (claim === undefined)
        return this.#surveys.order((number, sent) => this.#orders.append(number, body, null, sent))
      if (!this.joined) return Promise.reject(errors.internal)
      return new Promise((resolve, reject) =>
        this.#orders.append(0, body, claim, (error, time) => (error ? reject(error) : resolve([time]))),
      )
    })
  }

  /** @type {Control['call']} */
  call(node, worker, request, done) {
    const { node: own, local } = this.#parts
    if (node === '' || node === own) local.call('', worker, request, done)
    else this.callNode(node, worker, request, done)
  }

  /** Calls a worker through Redis. @type {Control['call']} */
  callNode(node, worker, request, done) {
    if (this.#joining) {
      const copy = typeof request === 'string' ? request : Buffer.from(request)
      return void this.#waiting.push(() => this.callNode(node, worker, copy, done))
    }
    const uid = this.#registry.find(node, worker)
    if (this.joined && uid !== undefined) return this.#calls.call(uid, request, done)
    if (done !== null) queueMicrotask(() => done(this.joined ? errors.notFound : errors.internal, NOTHING))
  }

  /** Sends a message that may be lost. @param {string} uid of a worker @param {string | Buffer} message */
  send(uid, message) {
    this.#inboxes.send(uid, message, () => {})
  }

  /** @type {Control['claimUser']} */
  claimUser(user, limit, done) {
    this.#parts.users?.claim(user, limit, done)
  }

  /** @type {Control['releaseUser']} */
  releaseUser(user) {
    this.#parts.users?.release(user)
  }

  /** Call when a worker of this node has exited. @param {number} worker its number */
  workerGone(worker) {
    this.#registry.workerEnded(worker)
  }
}
