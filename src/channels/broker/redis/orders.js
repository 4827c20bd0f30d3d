// Orders: server API calls on connections, which no worker may miss in an outage. They are logged in Redis.
//
//   orderAppend -> log, topic of all workers -> live: executed in order, if it follows the position
//   registryJoin -> head of the log          -> if not the position: orderRead from the position
//
// An order is acknowledged when all registered workers have executed it. From the end of its lease or connection until
// it reaches the head of the log, a worker is not `current`: it may lack orders, so its clients cannot use Redis.

import { errors } from '../../../base/errors.js'
import { newEpoch } from '../epoch.js'
import { answerSurvey } from '../surveys.js'
import { orderAppend, orderRead } from './scripts.js'

/** @import { Claim } from '../contract.js' */
/** @import { ControlParts } from './control.js' */

/** Lifetime (ms), number and bytes of kept orders. A worker missing more loses its clients. */
export const KEEP = Object.freeze({ life: 10 * 60_000, entries: 100_000, bytes: 32 * 1024 * 1024 })
const PAGE = 500
/** A claim that takes longer from its worker to Redis is late, ms: its worker was frozen, or Redis unreachable. */
const PROMPT = 1000
/** Before the first order of a log. */
const NONE = '0-0'

/**
 * `previous`: id of the previous order; `time`: applies to connections made before, ms on the Redis clock; `late`:
 * `time` is earlier than the order; `from`: uid of its worker; `survey`: 0 = no response; `body`: JSON.
 * @typedef {{epoch: string, previous: string, id: string, time: number, late: boolean, from: string, survey: number,
 *   body: Buffer}} Order
 */

/** @param {string} id @returns {[number, number]} */
const parts = id => /** @type {[number, number]} */ (id.split('-').map(Number))

/** @param {string} one @param {string} other @returns {boolean} whether the first id is lower */
function isBefore(one, other) {
  const [ms, n] = parts(one)
  const [otherMs, otherN] = parts(other)
  return ms < otherMs || (ms === otherMs && n < otherN)
}

/**
 * @param {string} id @param {number} time @param {boolean} late
 * @returns {number} when the order takes effect, ms. Ids of one millisecond differ in a fraction that a double keeps
 */
function effectOf(id, time, late) {
  if (late) return time
  const [ms, n] = parts(id)
  return ms + Math.min(n, 4095) / 4096
}

/** @param {(Buffer | string)[]} fields of a message or an entry @param {Buffer} body @returns {Order} */
function orderOf(fields, body) {
  const [epoch, previous, id, time, late, from, survey] = fields.slice(0, 7).map(String)
  return {
    ...{ epoch, previous, id, time: Number(time), late: late === '1' },
    ...{ from, survey: Number(survey), body },
  }
}

export class RedisOrders {
  /** Whether this worker has executed all acknowledged orders. */
  current = false
  #parts
  #keep
  /** Position: epoch of the log, and id of the last executed order. '': not joined yet. */
  #epoch = ''
  #id = NONE
  /** The position is an order, not a time. */
  #exact = false
  #reading = false
  #listening = false
  #began = performance.now()
  /** When the last successful heartbeat was sent, ms. */
  #beatAt = performance.now()
  /** Whether the lease may have expired since this worker was current. */
  #wasAway = false
  /** Redis clock, and local time before and after reading it; ms. */
  #clock = { redis: 0, before: 0, after: 0 }

  /**
   * @param {ControlParts & {lease: number, keep?: typeof KEEP,
   *   answer: (to: string, survey: number, answer: string) => void, onCurrent: () => void, onStale: () => void}} parts
   *   `lease`: ms; `answer`: JSON text, '' if the order failed; `onCurrent`, `onStale`: `current` changed
   */
  constructor({ keep = KEEP, ...parts }) {
    this.#parts = parts
    this.#keep = keep
  }

  #keys() {
    const { partition } = this.#parts
    return [partition.key('orders', 'head'), partition.key('orders', 'log')]
  }

  /** Key of the head, which heartbeats read; its initial value and lifetime. */
  get head() {
    return { key: this.#keys()[0], fresh: `${newEpoch()} ${NONE}`, life: this.#keep.life }
  }

  /**
   * @param {number} survey number of the survey; 0: no response expected
   * @param {string} body JSON: operation, parameters
   * @param {Claim | null} claim null: applies to all connections
   * @param {(error: Error | null, time: number) => void} done error: Redis did not accept it, or the reply was lost;
   *   `time`: when it takes effect, see Control
   */
  append(survey, body, claim, done) {
    const { life, entries, bytes } = this.#keep
    const { redis, before, after } = this.#clock
    const time = claim === null ? '' : Math.round(claim.at - after + redis)
    const tolerance = claim?.late ? 0 : Math.round(PROMPT + after - before)
    const { partition, inboxes, uid } = this.#parts
    const head = [newEpoch(), uid, survey, body, time, tolerance, life, entries, bytes]
    const args = [...head, inboxes.all, partition.publishCommand]
    partition.run(orderAppend, this.#keys(), args, (error, reply) => {
      if (error) return done(errors.internal, 0)
      const [id, time, late] = reply.map(String)
      done(null, effectOf(id, Number(time), late === '1'))
    })
  }

  /** Receives a published order. @param {string[]} fields @param {Buffer} body */
  message(fields, body) {
    const order = orderOf(fields, body)
    // Orders published during a read are in the log.
    if (this.#epoch === '' || this.#reading) return
    if (order.epoch !== this.#epoch) return this.#renewed(order.epoch)
    if (!isBefore(this.#id, order.id)) return
    if (order.previous !== this.#id) return this.#read()
    this.#execute(order, order.late ? this.#ownTime(order.time) : Infinity)
  }

  /**
   * Handles a heartbeat reply: a connected worker has received all orders up to the head.
   * @param {string} head @param {number} now Redis clock, ms @param {number} sent time of the heartbeat, ms
   */
  beaten(head, now, sent) {
    const after = performance.now()
    this.#clock = { redis: now, before: sent, after }
    if (after - this.#beatAt >= this.#validFor) this.#wasAway = true
    this.#beatAt = sent
    this.#listening = true
    if (this.#reading) return
    const [epoch, id] = head.split(' ')
    if (this.#epoch === '') {
      // Orders since this worker's start apply to its connections.
      this.#epoch = epoch
      this.#id = `${Math.floor(now - (after - this.#began))}-0`
      this.#exact = false
    }
    if (epoch !== this.#epoch) this.#renewed(epoch)
    else if (id === this.#id || (!this.#exact && isBefore(id, this.#id))) this.#caughtUp(id)
    else this.#read()
  }

  /** Time after a heartbeat in which this worker is surely registered, ms. */
  get #validFor() {
    return (6 / 7) * this.#parts.lease
  }

  /** Redis lost its data: the log is a new one. @param {string} epoch */
  #renewed(epoch) {
    if (!this.#wasAway) {
      this.#epoch = epoch
      this.#id = NONE
      this.#exact = true
    }
    this.#read()
  }

  #read() {
    this.#reading = true
    this.#parts.partition.run(orderRead, this.#keys(), [this.#id, PAGE], (error, reply) => {
      this.#reading = false
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

  /** @param {string} previous id of the order before the first read @returns {boolean} whether none was missed */
  #follows(previous) {
    if (previous === this.#id) return true
    // Later: the log was trimmed. Earlier: a failover lost orders; this worker executed them if it was connected.
    return isBefore(previous, this.#id) && !(this.#exact && this.#wasAway)
  }

  /** @param {string} epoch @param {string} id newest order */
  #lost(epoch, id) {
    const outage_ms = Math.round(performance.now() - this.#beatAt)
    this.#parts.log.warn({ outage_ms }, 'missed orders are lost: disconnecting all clients')
    this.#epoch = epoch
    this.#parts.events.ordersLost?.()
    this.#caughtUp(id)
  }

  /** @param {Order} order @param {number} before applies to older connections, ms of performance.now() */
  #execute({ id, time, late, from, survey, body }, before) {
    this.#id = id
    this.#exact = true
    const { events, log, answer } = this.#parts
    const { op, params } = JSON.parse(body.toString())
    if (params?.claim) params.time = effectOf(id, time, late)
    answerSurvey(events, log, op, params, before, text => {
      if (survey !== 0) answer(from, survey, text)
    })
  }

  /** @param {number} time of the Redis clock, ms @returns {number} latest possible local time */
  #ownTime(time) {
    return time - this.#clock.redis + this.#clock.after
  }

  /** All orders are executed, but slices may still be pending. @param {string} id the newest */
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
      this.#parts.onCurrent()
    }
    const { events } = this.#parts
    if (events.executed) events.executed(then)
    else then()
  }

  /** Call once a second: other workers may consider a blocked worker dead. */
  tick() {
    if (!this.current || performance.now() - this.#beatAt < this.#validFor) return
    this.current = false
    this.#parts.onStale()
  }

  down() {
    this.#listening = false
    this.current = false
  }
}
