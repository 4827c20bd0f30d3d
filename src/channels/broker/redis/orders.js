// Orders: server API calls on connections (disconnect, unsubscribe, refresh, subscribe), which a worker that is out of
// reach for a while must not miss. They are kept in a log in Redis, and published. The embedded engine needs no log:
// its bus loses nothing.
//
//   orderAppend -> log, topic of all workers -> live: executed in order, if it follows the position
//   registryJoin -> head of the log          -> not the position: orderRead, from the position on
//
// An order is acknowledged when all registered workers have executed it. So a worker misses an acknowledged one only
// if its lease has ended before. From then on, or when its connection is lost, until it is at the head of the log, it
// is not `current`, and the engine lets none of its clients use Redis.

import { errors } from '../../../base/errors.js'
import { newEpoch } from '../epoch.js'
import { surveyAnswer } from '../surveys.js'
import { orderAppend, orderRead } from './scripts.js'

/** How long, how many and how large (bytes) orders are kept; ms. A worker that was away for longer loses its clients. */
export const KEEP = Object.freeze({ life: 10 * 60_000, entries: 100_000, bytes: 32 * 1024 * 1024 })
/** Orders read at once. */
const PAGE = 500
/** Before the first order of a log. */
const NONE = '0-0'

/**
 * @typedef {object} Order
 * @property {string} epoch @property {string} previous id of the order before it @property {string} id
 * @property {number} time connections made before are concerned, ms by the clock of Redis
 * @property {boolean} late `time` is earlier than the order
 * @property {string} from uid of the worker that gave it @property {number} survey its number there; 0: no answer
 * @property {Buffer} body JSON: operation, parameters
 */

/** @param {string} id @returns {[number, number]} */
const parts = id => /** @type {[number, number]} */ (id.split('-').map(Number))

/** @param {string} one @param {string} other @returns {boolean} whether the first id is lower */
function isBefore(one, other) {
  const [ms, n] = parts(one)
  const [otherMs, otherN] = parts(other)
  return ms < otherMs || (ms === otherMs && n < otherN)
}

/** @param {(Buffer | string)[]} fields of a message or an entry @param {Buffer} body @returns {Order} */
function orderOf([epoch, previous, id, time, late, from, survey], body) {
  return {
    epoch: String(epoch),
    previous: String(previous),
    id: String(id),
    time: Number(time),
    late: String(late) === '1',
    from: String(from),
    survey: Number(survey),
    body,
  }
}

export class RedisOrders {
  /** Whether this worker has executed all orders that were acknowledged. */
  current = false
  #partition
  #topic
  #uid
  #lease
  #keep
  #events
  #log
  #answer
  #onCurrent
  #onStale
  /** Position: life of the log, and id of the last executed order. '': not joined yet. */
  #epoch = ''
  #id = NONE
  /** Whether the position is an order; otherwise a time. */
  #exact = false
  #reading = false
  #listening = false
  #began = performance.now()
  /** When the last successful heartbeat was sent, ms. */
  #beatAt = performance.now()
  /** Whether the lease may have ended since this worker was current. */
  #wasAway = false
  /** The clock of Redis, and the own time after it was read; ms. */
  #clock = { redis: 0, after: 0 }

  /**
   * @param {object} parts @param {import('./partition.js').Partition} parts.partition
   * @param {import('./inboxes.js').Inboxes} parts.inboxes @param {string} parts.uid
   * @param {number} parts.lease ms until a silent worker counts as dead
   * @param {import('../contract.js').BrokerEvents} parts.events @param {import('pino').Logger} parts.log
   * @param {typeof KEEP} [parts.keep]
   * @param {(to: string, survey: number, answer: string) => void} parts.answer JSON text, '' if the order has failed
   * @param {() => void} parts.onCurrent @param {() => void} parts.onStale called whenever `current` has changed
   */
  constructor({ partition, inboxes, uid, lease, events, log, keep = KEEP, answer, onCurrent, onStale }) {
    this.#partition = partition
    this.#topic = inboxes.all
    this.#uid = uid
    this.#lease = lease
    this.#keep = keep
    this.#events = events
    this.#log = log
    this.#answer = answer
    this.#onCurrent = onCurrent
    this.#onStale = onStale
  }

  #keys() {
    return [this.#partition.key('orders', 'head'), this.#partition.key('orders', 'log')]
  }

  /** Key of the head, for a heartbeat, which reads it; and what it is without orders, and for how long. */
  get head() {
    return { key: this.#keys()[0], fresh: `${newEpoch()} ${NONE}`, life: this.#keep.life }
  }

  /**
   * Gives an order to all workers.
   * @param {number} survey number under which they answer; 0: no answer is wanted
   * @param {string} body JSON: operation, parameters
   * @param {number} at connections made before are concerned, ms of performance.now(); 0: all that there are
   * @param {(error: Error | null) => void} done with an error Redis has not taken it, or its answer was lost
   */
  append(survey, body, at, done) {
    const { life, entries, bytes } = this.#keep
    const time = at === 0 ? '' : Math.round(at - this.#clock.after + this.#clock.redis)
    const { publishCommand } = this.#partition
    const args = [
      newEpoch(),
      this.#uid,
      survey,
      body,
      time,
      life,
      entries,
      bytes,
      this.#topic,
      publishCommand,
    ]
    this.#partition.run(orderAppend, this.#keys(), args, error => done(error && errors.internal))
  }

  /** Receives a published order. @param {string[]} fields @param {Buffer} body */
  message(fields, body) {
    const order = orderOf(fields, body)
    // What comes while the log is read is in it.
    if (this.#epoch === '' || this.#reading) return
    if (order.epoch !== this.#epoch) return this.#renewed(order.epoch)
    if (!isBefore(this.#id, order.id)) return
    if (order.previous !== this.#id) return this.#read()
    this.#execute(order, order.late ? this.#ownTime(order.time) : Infinity)
  }

  /**
   * Handles the reply to a heartbeat: all orders up to the head have been published to this worker, if it was
   * connected.
   * @param {string} head @param {number} now clock of Redis, ms @param {number} sent when the heartbeat was, ms
   */
  beaten(head, now, sent) {
    const after = performance.now()
    this.#clock = { redis: now, after }
    if (after - this.#beatAt >= this.#validFor) this.#wasAway = true
    this.#beatAt = sent
    this.#listening = true
    if (this.#reading) return
    const [epoch, id] = head.split(' ')
    if (this.#epoch === '') {
      // Orders since the start of this worker concern its connections.
      this.#epoch = epoch
      this.#id = `${Math.floor(now - (after - this.#began))}-0`
      this.#exact = false
    }
    if (epoch !== this.#epoch) this.#renewed(epoch)
    else if (id === this.#id || (!this.#exact && isBefore(id, this.#id))) this.#caughtUp(id)
    else this.#read()
  }

  /** Time after a heartbeat in which this worker is registered for sure, ms. */
  get #validFor() {
    return (6 / 7) * this.#lease
  }

  /** Redis has lost its data: the log is another one. @param {string} epoch */
  #renewed(epoch) {
    if (!this.#wasAway) {
      this.#epoch = epoch
      this.#id = NONE
      this.#exact = true
    }
    this.#read()
  }

  /** Executes the orders of the log after the position, page by page. */
  #read() {
    this.#reading = true
    this.#partition.run(orderRead, this.#keys(), [this.#id, PAGE], (error, reply) => {
      this.#reading = false
      // The next heartbeat tries again.
      if (error || !this.#listening) return
      const [head, ...entries] = reply
      const [epoch, id = NONE] = String(head).split(' ')
      const orders = entries.map((/** @type {Buffer[]} */ entry) => orderOf(entry, entry[7]))
      if (epoch !== this.#epoch || !this.#follows(orders[0]?.previous ?? id)) return this.#lost(epoch, id)
      for (const order of orders) this.#execute(order, this.#ownTime(order.time))
      if (orders.length === PAGE) this.#read()
      else this.#caughtUp(id)
    })
  }

  /**
   * @param {string} previous id of the order before the first one that was read
   * @returns {boolean} whether there was no other order after the position
   */
  #follows(previous) {
    if (previous === this.#id) return true
    // Later: the log was trimmed. Earlier: a failover has lost the newest orders; this worker has executed them, but
    // maybe not all, if it was away.
    return isBefore(previous, this.#id) && !(this.#exact && this.#wasAway)
  }

  /** @param {string} epoch @param {string} id newest order */
  #lost(epoch, id) {
    const away = Math.round(performance.now() - this.#beatAt)
    this.#log.warn({ away_ms: away }, 'orders to connections are lost: all clients reconnect')
    this.#epoch = epoch
    this.#events.ordersLost?.()
    this.#caughtUp(id)
  }

  /** @param {Order} order @param {number} before connections made before are concerned, ms of performance.now() */
  #execute({ id, from, survey, body }, before) {
    this.#id = id
    this.#exact = true
    const { op, params } = JSON.parse(body.toString())
    const answer = surveyAnswer(this.#events, this.#log, op, params, before)
    if (survey !== 0) this.#answer(from, survey, answer)
  }

  /** @param {number} time by the clock of Redis, ms @returns {number} the latest own time that it can be */
  #ownTime(time) {
    return time - this.#clock.redis + this.#clock.after
  }

  /** All orders are executed, but parts may still be under way, in slices. @param {string} id the newest */
  #caughtUp(id) {
    this.#id = id
    this.#exact = true
    if (this.current) {
      this.#wasAway = false
      return
    }
    const then = () => {
      if (!this.#listening || this.#reading || this.current) return
      this.#wasAway = false
      this.current = true
      this.#onCurrent()
    }
    if (this.#events.executed) this.#events.executed(then)
    else then()
  }

  /** Called once a second: after a standstill other workers may count this one as dead. */
  tick() {
    if (!this.current || performance.now() - this.#beatAt < this.#validFor) return
    this.current = false
    this.#onStale()
  }

  /** The connection is lost. */
  down() {
    this.#listening = false
    this.current = false
  }
}
