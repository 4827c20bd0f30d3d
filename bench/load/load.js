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

/** The load generator: processes with clients, one with publishers. */
export class Load {
  #server
  #sizes
  #show
  #readyByChannel
  /** @type {Child[]} */
  #subscribers = []
  /** @type {Child | null} */
  #publishers = null

  /**
   * @param {import('../servers.js').Server} server
   * @param {import('../scenarios.js').Sizes} sizes
   * @param {import('../scenarios.js').Show} show
   */
  constructor(server, sizes, show) {
    this.#server = server
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
    const { conns, size, loaders } = this.#sizes
    const parts = Math.max(loaders, Math.ceil(conns / (openFilesLimit() - OWN_FILES)))
    const started = nowMicros()
    const connecting = spread(conns, parts).map(part => {
      const child = new Child('subscribers')
      this.#subscribers.push(child)
      const concurrency = Math.ceil(CONCURRENCY / parts)
      const { target } = this.#server
      return child.ask('start', { ...part, target, channels: this.channels, size, concurrency })
    })
    const timer = setInterval(() => this.#showConnected(conns), PROGRESS_EVERY)
    const results = await Promise.all(connecting).finally(() => clearInterval(timer))
    const seconds = (nowMicros() - started) / 1e6
    const latency = new Histogram()
    for (const result of results) {
      latency.merge(new Histogram(result.connectLatency))
      for (const [channel, count] of result.readyByChannel.entries()) this.#readyByChannel[channel] += count
    }
    const ready = results.reduce((sum, result) => sum + result.ready, 0)
    if (ready === 0) throw new Error(`no client got its subscription: ${results[0].firstFault}`)
    const failed = results.reduce((sum, result) => sum + result.failed, 0)
    return { ready, failed, seconds, latency }
  }

  /** @param {number} conns */
  async #showConnected(conns) {
    const states = await this.#ask('progress').catch(() => [])
    const ready = states.reduce((sum, state) => sum + state.ready, 0)
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
      ...this.#server.api,
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
   */
  async drain(expected) {
    let received = 0
    let quietSince = Date.now()
    while (Date.now() - quietSince < DRAIN_PATIENCE) {
      const states = await this.#ask('progress')
      const now = states.reduce((sum, state) => sum + state.received, 0)
      if (now >= expected) return
      if (now > received) quietSince = Date.now()
      received = now
      await sleep(50)
    }
  }

  /** What the clients counted, added up. */
  async report() {
    const reports = await this.#ask('report')
    /** @param {string} name */
    const sum = name => reports.reduce((total, report) => total + report[name], 0)
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
