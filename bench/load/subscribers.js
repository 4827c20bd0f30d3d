import { nowMicros, sleep } from './clock.js'
import { Histogram } from './histogram.js'
import { PayloadReader } from './payload.js'
import { Subscriber } from './subscriber.js'
import { FrameReader } from './websocket.js'

/**
 * @typedef {object} Target
 * @property {string} host
 * @property {number} port
 * @property {string} path of the endpoint; for a bare library %d stands for the channel's number
 * @property {string} wire one of WIRES
 */

/**
 * @typedef {object} SubscribersPlan
 * @property {Target} target
 * @property {number} first index of this process's first client among all
 * @property {number} count clients of this process
 * @property {number} channels client i subscribes to channel i % channels
 * @property {number} size bytes of each payload
 * @property {number} concurrency connects under way at once
 * @property {number} subscriptions of each client, to channels of its own which come later; 0: each has one, to which it connects
 */

/** A group whose connects make no progress for so long gives up on the rest, ms. */
const CONNECT_PATIENCE = 15_000

/** The clients of one process, and what they counted. */
export class Subscribers {
  buffer = Buffer.allocUnsafeSlow(256 * 1024)
  frames = new FrameReader()
  latency = new Histogram()
  connectLatency = new Histogram()
  received = 0
  /** Received between `from` and `to`. */
  counted = 0
  orderFaults = 0
  damaged = 0
  failed = 0
  closed = 0
  readyCount = 0
  /** @type {string} why the first one that failed or closed did */
  firstFault = ''
  target
  #from = Infinity
  #to = Infinity
  #now = 0
  #pending = 0
  #payloads
  #plan
  /** @type {Subscriber[]} */
  clients = []
  #readyByChannel

  /** @param {SubscribersPlan} plan */
  constructor(plan) {
    this.#plan = plan
    this.target = plan.target
    this.#payloads = new PayloadReader(plan.size)
    this.#readyByChannel = new Uint32Array(plan.channels)
  }

  /** @returns {number} microseconds */
  now() {
    return nowMicros()
  }

  /** What is read from now on came now: one look at the clock for each read, not for each message. */
  touch() {
    this.#now = nowMicros()
  }

  /**
   * Connects all clients, and waits until each has its subscription or has failed.
   * @returns {Promise<{ready: number, failed: number, readyByChannel: Uint32Array, connectLatency: object, firstFault: string}>}
   */
  async connect() {
    const { first, count, channels, concurrency } = this.#plan
    let quietSince = Date.now()
    let settled = 0
    while (this.readyCount + this.failed < count) {
      while (this.clients.length < count && this.#pending < concurrency) {
        const index = first + this.clients.length
        this.#pending++
        this.clients.push(new Subscriber(this, index, index % channels))
      }
      await sleep(1)
      if (this.readyCount + this.failed > settled) {
        settled = this.readyCount + this.failed
        quietSince = Date.now()
      } else if (Date.now() - quietSince > CONNECT_PATIENCE) {
        for (const client of this.clients) if (client.pending) client.end('no answer')
        this.failed += count - this.clients.length
        break
      }
    }
    return {
      ready: this.readyCount,
      failed: this.failed,
      readyByChannel: this.#readyByChannel,
      connectLatency: this.connectLatency.state,
      firstFault: this.firstFault,
    }
  }

  /**
   * @param {Subscriber} client
   * @param {number} micros from the connect to the subscription
   */
  ready(client, micros) {
    this.#pending--
    this.readyCount++
    this.#readyByChannel[client.channel]++
    this.connectLatency.add(micros)
  }

  /**
   * @param {Subscriber} _client
   * @param {boolean} wasReady
   * @param {string} reason
   */
  ended(_client, wasReady, reason) {
    if (this.firstFault === '') this.firstFault = reason
    if (wasReady) {
      this.closed++
    } else {
      this.#pending--
      this.failed++
    }
  }

  /**
   * Counts the messages of one frame.
   * @param {Buffer} bytes
   * @param {number} at
   * @param {number} end
   * @param {number} sequence of the last message of this client
   * @returns {number} the same, now
   */
  messages(bytes, at, end, sequence) {
    const payloads = this.#payloads
    const now = this.#now
    const inWindow = now >= this.#from && now < this.#to
    for (let next = payloads.next(bytes, at, end); next >= 0; next = payloads.next(bytes, next, end)) {
      this.received++
      if (!payloads.whole) this.damaged++
      if (payloads.sequence !== sequence + 1) this.orderFaults++
      sequence = payloads.sequence
      if (inWindow) {
        this.counted++
        this.latency.add(now - payloads.micros)
      }
    }
    return sequence
  }

  /** @param {{from: number, to: number}} span microseconds: what comes in it makes the rates and latencies */
  measure({ from, to }) {
    this.#from = from
    this.#to = to
  }

  /**
   * Some leave, all at once.
   * @param {number} share of the clients, 0 to 1
   * @returns {number} how many those are
   */
  leave(share) {
    const leaving = this.clients.splice(0, Math.round(this.clients.length * share))
    for (const client of leaving) client.leave()
    return leaving.length
  }

  /** What has happened so far. */
  progress() {
    return { ready: this.readyCount, received: this.received }
  }

  /** @returns {object} */
  report() {
    const { received, counted, orderFaults, damaged, failed, closed, firstFault } = this
    const latency = this.latency.state
    return { received, counted, orderFaults, damaged, failed, closed, firstFault, latency }
  }
}
