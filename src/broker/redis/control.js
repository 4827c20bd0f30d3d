import { errors } from '../../errors.js'
import { RemoteCalls } from './calls.js'
import { decode, EVERYBODY, Kind, Mail } from './inboxes.js'
import { Members } from './registry.js'
import { Surveys } from './surveys.js'

/** Without a sign of life for so long a worker counts as dead, ms. */
const LEASE_MS = 7000

const NOTHING = Buffer.alloc(0)

/**
 * What workers of all nodes have to do with each other beyond channels: who is there, surveys, calls. All of it goes through one
 * partition, so that everything has one order.
 */
export class Control {
  #partition
  #mail
  #members
  #surveys
  #calls
  #uid
  #joined
  /** Whether it is about to be known who is there. */
  #joining = false
  /** @type {(() => void)[]} surveys and calls that wait for that: it takes one answer of Redis */
  #waiting = []

  /**
   * @param {object} parts
   * @param {import('./placement.js').Placement} parts.placement
   * @param {string} parts.uid of this worker's life: letters and digits
   * @param {string} parts.node id of this node
   * @param {number} parts.worker index of this worker
   * @param {import('../contract.js').BrokerEvents} parts.events
   * @param {import('pino').Logger} parts.log
   * @param {() => void} [parts.joined] called each time when this worker has become known to the others
   * @param {number} [parts.lease] ms
   */
  constructor({ placement, uid, node, worker, events, log, joined = () => {}, lease = LEASE_MS }) {
    const partition = placement.control
    this.#partition = partition
    this.#uid = uid
    this.#joined = joined
    // Who is out of reach for longer than a lease counts as dead: nobody waits for its replies.
    this.#mail = new Mail(partition, 2 * lease)
    const mail = this.#mail
    const memberEvents = {
      here: (/** @type {string} */ uid) => this.#here(uid),
      gone: (/** @type {string} */ uid) => this.#gone(uid),
      buried: () => this.#failAll(),
      joined: () => this.#settle(),
    }
    this.#members = new Members({ partition, mail, uid, node, worker, ttl: lease, events: memberEvents, log })
    this.#surveys = new Surveys({ partition, mail, members: this.#members, uid, events, log })
    this.#calls = new RemoteCalls({ mail, uid, events, log })
  }

  /** Whether this worker is known to the others, and knows them. */
  get ready() {
    return this.#members.ready
  }

  /** How many nodes are one gateway, this one included; 0 when that is not known yet. */
  get nodes() {
    return this.#members.nodes()
  }

  /** @param {string} uid */
  #here(uid) {
    this.#surveys.here(uid)
    this.#calls.here(uid)
  }

  /** @param {string} uid */
  #gone(uid) {
    this.#surveys.gone(uid)
    this.#calls.gone(uid)
  }

  /** It is known who is there, or that it cannot be known for now. */
  #settle() {
    this.#joining = false
    for (const then of this.#waiting.splice(0)) then()
    if (this.ready) this.#joined()
  }

  #failAll() {
    this.#surveys.failAll()
    this.#calls.failAll()
  }

  /** @param {import('./partition.js').Partition} partition */
  up(partition) {
    if (partition !== this.#partition) return
    this.#joining = true
    partition.subscribe([this.#mail.everybody, this.#mail.topicOf(this.#uid)], error => {
      if (error) return this.#settle()
      // Before anybody hears that this worker is back, and asks what has become of those answers.
      this.#mail.flush()
      this.#members.up()
    })
  }

  /** @param {import('./partition.js').Partition} partition */
  down(partition) {
    if (partition !== this.#partition) return
    this.#members.down()
    this.#failAll()
    this.#settle()
  }

  /** To be called once a second. */
  tick() {
    this.#mail.tick()
    this.#members.tick()
    this.#surveys.tick()
  }

  /**
   * Takes a message on one of the topics of this worker.
   * @param {string} topic
   * @param {Buffer} bytes
   */
  message(topic, bytes) {
    const { kind, fields, body } = decode(bytes)
    const [one, two, three] = fields
    switch (kind) {
      case Kind.HERE:
        return this.#members.here(one, Number(two), body.toString())
      case Kind.GONE:
        return this.#members.gone(one)
      case Kind.ASK:
        if (topic === EVERYBODY && !this.#members.announced) return
        return this.#surveys.asked(one, Number(two), body)
      case Kind.TOLD:
        return this.#surveys.told(Number(one), two, body.toString())
      case Kind.LEFT:
        return this.#surveys.left(Number(one), two, Number(three))
      case Kind.UNTOLD:
        return this.#surveys.untold(Number(one), two)
      case Kind.CALL:
        return this.#calls.called(one, Number(two), body)
      case Kind.ANSWER:
        return this.#calls.answered(Number(one), body)
      case Kind.FAILED:
        return this.#calls.failed(Number(one))
      case Kind.PROBE:
        return this.#calls.probed(one, JSON.parse(body.toString()))
    }
    // Nothing but the question whether anybody listens; or what only a newer version knows.
  }

  /**
   * Asks every worker of every node, this one included.
   * @param {string} op
   * @param {any} params
   * @returns {Promise<any[]>} rejects with errors.internal when one does not answer
   */
  survey(op, params) {
    if (!this.#joining) return this.#surveys.ask(op, params)
    return new Promise(resolve => this.#waiting.push(() => resolve(this.#surveys.ask(op, params))))
  }

  /**
   * Calls a worker of another node.
   * @param {string} node
   * @param {number} worker
   * @param {string | Buffer} request
   * @param {((error: Error | null, answer: Buffer) => void) | null} done as in the contract
   */
  call(node, worker, request, done) {
    if (!this.#joining) return this.#call(node, worker, request, done)
    const kept = typeof request === 'string' ? request : Buffer.from(request)
    this.#waiting.push(() => this.#call(node, worker, kept, done))
  }

  /**
   * @param {string} node
   * @param {number} worker
   * @param {string | Buffer} request
   * @param {((error: Error | null, answer: Buffer) => void) | null} done
   */
  #call(node, worker, request, done) {
    const uid = this.#members.find(node, worker)
    if (this.ready && uid !== undefined) return this.#calls.call(uid, request, done)
    if (done !== null) queueMicrotask(() => done(this.ready ? errors.notFound : errors.internal, NOTHING))
  }

  /**
   * A worker of this node has ended.
   * @param {number} worker index
   */
  gone(worker) {
    this.#members.ended(worker)
  }

  /** @returns {Promise<void>} when this worker is no longer in the registry, or Redis is out of reach */
  leave() {
    return this.#members.leave()
  }
}
