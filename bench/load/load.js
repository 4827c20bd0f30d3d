import { cpuOf, openFilesLimit } from '../proc.js'
import { Child, spread } from './children.js'
import { nowMicros, sleep } from './clock.js'
import { Histogram } from './histogram.js'

/** A process needs files for itself. */
const OWN_FILES = 200
/** Connects under way at once, over all processes: less than a listen backlog of 512 holds. */
const CONCURRENCY = 256
const PROGRESS_EVERY = 500
/** Messages that do not come for so long are lost, ms. */
const DRAIN_PATIENCE = 2_000
/** From the order to publish until the publishers begin, s. */
const LEAD = 0.1

/**
 * @param {any[]} reports
 * @param {string} name
 * @returns {number} its sum over those that have it
 */
const sumOf = (reports, name) => reports.reduce((sum, report) => sum + (report[name] ?? 0), 0)

/**
 * @typedef {object} Ends
 * @property {import('./subscribers.js').Target[]} targets over which clients are spread, by process
 * @property {Api[]} apis over which publishers are spread
 *
 * @typedef {object} Api where to publish
 * @property {string} host
 * @property {number} port
 * @property {string} key
 */

/** The load generator: processes with clients, one with publishers. */
export class Load {
  #ends
  #sizes
  #show
  #readyByChannel
  /** @type {Child[]} */
  #subscribers = []
  /** @type {Child | null} */
  #publishers = null

  /**
   * @param {Ends} ends
   * @param {import('../scenarios.js').Sizes} sizes
   * @param {import('../scenarios.js').Show} show
   */
  constructor(ends, sizes, show) {
    this.#ends = ends
    this.#sizes = sizes
    this.#show = show
    this.channels = sizes.channels || sizes.conns
    this.#readyByChannel = new Uint32Array(this.channels)
  }

  /**
   * Connects and subscribes all clients.
   * @returns {Promise<{ready: number, failed: number, seconds: number, latency: Histogram}>}
   */
  async connect() {
    const { conns, size, loaders, subscriptions = 0 } = this.#sizes
    const { targets } = this.#ends
    const least = Math.max(loaders, Math.ceil(conns / (openFilesLimit() - OWN_FILES)))
    // As many for each target.
    const parts = Math.ceil(least / targets.length) * targets.length
    const started = nowMicros()
    const connecting = spread(conns, parts).map((part, i) => {
      const child = new Child('clients')
      this.#subscribers.push(child)
      const concurrency = Math.ceil(CONCURRENCY / parts)
      const { channels } = this
      const target = targets[i % targets.length]
      return child.ask('start', { ...part, target, channels, size, concurrency, subscriptions })
    })
    const timer = setInterval(() => this.#showConnected(conns), PROGRESS_EVERY)
    const results = await Promise.all(connecting).finally(() => clearInterval(timer))
    const seconds = (nowMicros() - started) / 1e6
    const latency = new Histogram()
    for (const result of results) {
      latency.merge(new Histogram(result.connectLatency))
      for (const [channel, count] of result.readyByChannel.entries()) this.#readyByChannel[channel] += count
    }
    const ready = sumOf(results, 'ready')
    if (ready === 0) throw new Error(`no client got its subscription: ${results[0].firstFault}`)
    const failed = sumOf(results, 'failed')
    return { ready, failed, seconds, latency }
  }

  /**
   * Subscribes all clients of a run with several subscriptions for each.
   * @returns {Promise<{subscribed: number, refused: number, seconds: number}>}
   */
  async subscribe() {
    const started = nowMicros()
    const timer = setInterval(() => this.#showSubscribed(), PROGRESS_EVERY)
    const results = await this.#ask('subscribe').finally(() => clearInterval(timer))
    const seconds = (nowMicros() - started) / 1e6
    return { subscribed: sumOf(results, 'subscribed'), refused: sumOf(results, 'refused'), seconds }
  }

  async #showSubscribed() {
    const states = await this.#ask('progress').catch(() => [])
    this.#show.progress(`${sumOf(states, 'subscribed').toLocaleString('en')} subscribed`)
  }

  /**
   * Some of the clients leave, all at once.
   * @param {number} share 0 to 1
   * @returns {Promise<number>} how many those are
   */
  async leave(share) {
    const counts = await this.#ask('leave', { share })
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** @param {number} conns */
  async #showConnected(conns) {
    const states = await this.#ask('progress').catch(() => [])
    const ready = sumOf(states, 'ready')
    this.#show.progress(`${ready.toLocaleString('en')} of ${conns.toLocaleString('en')} connected`)
  }

  /**
   * Starts to publish.
   * @param {number} warmUp s
   * @param {number} seconds that are measured
   * @returns {Promise<{from: number, to: number, done: Promise<{total: number, byChannel: Uint32Array, counted: number,
   *   errors: number, answers: Histogram}>}>} microseconds from and to which is measured, and what was published in the end
   */
  async publish(warmUp, seconds) {
    const { rate, size, publishers } = this.#sizes
    const connections = Math.min(publishers, this.channels)
    const child = new Child('publishers')
    this.#publishers = child
    await child.ask('start', {
      apis: this.#ends.apis,
      channels: this.channels,
      first: 0,
      count: connections,
      connections,
      rate,
      size,
    })
    const from = nowMicros() + Math.round((LEAD + warmUp) * 1e6)
    const to = from + Math.round(seconds * 1e6)
    await this.#ask('measure', { from, to })
    return { from, to, done: child.ask('publish', { from, to }).then(result => this.#published(result)) }
  }

  /** @param {any} result of the publishers */
  #published({ published, counted, errors, firstFault, answers }) {
    if (errors > 0) this.#show.warning(`a publish failed: ${firstFault}`)
    const total = published.reduce((/** @type {number} */ sum, /** @type {number} */ count) => sum + count, 0)
    return { total, byChannel: published, counted, errors, answers: new Histogram(answers) }
  }

  /**
   * @param {Uint32Array} published by channel
   * @returns {number} deliveries that make up all that was published
   */
  expected(published) {
    return published.reduce((sum, count, channel) => sum + count * this.#readyByChannel[channel], 0)
  }

  /**
   * Waits until everything has come, or nothing comes any more.
   * @param {number} expected deliveries
   * @returns {Promise<{received: number, lastAt: number}>} and when the last one came, of clients with several subscriptions: microseconds
   */
  async drain(expected) {
    let received = 0
    let quietSince = Date.now()
    for (;;) {
      const states = await this.#ask('progress')
      const now = sumOf(states, 'received')
      if (now > received) quietSince = Date.now()
      received = now
      if (received >= expected || Date.now() - quietSince > DRAIN_PATIENCE)
        return { received, lastAt: Math.max(...states.map(state => state.lastAt ?? 0)) }
      await sleep(50)
    }
  }

  /** What the clients counted, added up. */
  async report() {
    const reports = await this.#ask('report')
    /** @param {string} name */
    const sum = name => sumOf(reports, name)
    const latency = new Histogram()
    for (const report of reports) latency.merge(new Histogram(report.latency))
    const fault = reports.find(({ firstFault }) => firstFault !== '')
    if (fault !== undefined) this.#show.warning(`a connection was lost: ${fault.firstFault}`)
    return {
      received: sum('received'),
      counted: sum('counted'),
      orderFaults: sum('orderFaults'),
      damaged: sum('damaged'),
      closed: sum('closed'),
      unsubscribed: sum('unsubscribed'),
      latency,
    }
  }

  /** @returns {number[]} seconds of processor time that each process of the load generator has used */
  cpu() {
    const children = this.#publishers === null ? this.#subscribers : [...this.#subscribers, this.#publishers]
    return children.map(({ pid }) => cpuOf(pid))
  }

  /** Ends its processes. */
  stop() {
    for (const child of this.#subscribers) child.stop()
    this.#publishers?.stop()
  }

  /**
   * @param {string} name
   * @param {object} [params]
   * @returns {Promise<any[]>} the answers of all processes with clients
   */
  #ask(name, params) {
    return Promise.all(this.#subscribers.map(child => child.ask(name, params)))
  }
}
