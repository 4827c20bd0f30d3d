// The load generator: processes of a drone (fleet/drone), some with clients, one that publishes.

import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { EngineProcess } from '../fleet/drone/engine-process.js'
import { cpuOf, openFilesLimit } from '../fleet/runner/proc.js'
import { addCounters, zeroCounters } from '../fleet/statistics/counters.js'
import { Distribution } from '../fleet/statistics/distribution.js'

/**
 * @typedef {import('../fleet/schema.js').Settings} Settings
 * @typedef {{process: EngineProcess, settings: Settings}} Member
 */

const ENGINE = fileURLToPath(new URL('../fleet/drone/main.js', import.meta.url))
const FLAGS = ['--max-semi-space-size=32', '--expose-gc']
/** Open files of a process beside its connections. */
const OWN_FILES = 200
/** Concurrent connects of all processes: fewer than a listen backlog of 512. */
const CONCURRENCY = 256
/** Concurrent subscribe requests of a process. */
const SUBSCRIPTIONS = 2_000
/** Connections per source address: leaves the kernel free source ports. */
const CONNECTIONS_PER_ADDRESS = 20_000
const PROGRESS_EVERY = 100
/** ms without a new connection after which connecting has failed. */
const CONNECT_PATIENCE = 15_000
const SUBSCRIBE_PATIENCE = 20_000
/** ms without a new message after which missing ones are lost. */
const DRAIN_PATIENCE = 10_000
/** ms after the end of publishing for replies to messages that are due or under way. */
const PUBLISH_PATIENCE = 60_000
/** ms from the announcement of publishing to its start. */
const LEAD = 300

/**
 * @typedef {object} Sizes
 * @property {number} conns clients
 * @property {number} channels 0: one for each client
 * @property {number} rate publications per second; 0: as many as are answered
 * @property {number} size bytes of each payload
 * @property {number} publishers connections that publish
 * @property {number} seconds measured
 * @property {number} loaders processes with clients; 0: as many as open files require
 * @property {number} [subscriptions] of each client, each to its own channel
 * @typedef {object} Show output during a run
 * @property {(text: string) => void} progress current step; the next one replaces it
 * @property {(text: string) => void} warning a line that stays
 * @typedef {object} Endpoints
 * @property {Target[]} targets clients are distributed over them
 * @property {import('./servers.js').Api[]} apis publishers are distributed over them
 * @typedef {object} Target
 * @property {string} url
 * @property {string} transport
 */

/** @param {import('./servers.js').Gateway} server @param {string} [transport] @returns {Endpoints} */
export const endpointsOf = ({ url, api }, transport = 'websocket') => ({
  targets: [{ url, transport }],
  apis: [api],
})

/** @param {number} total @param {number} parts @returns {{first: number, count: number}[]} even shares of `total` */
const spread = (total, parts) =>
  Array.from({ length: parts }, (_, part) => {
    const first = Math.floor((total * part) / parts)
    return { first, count: Math.floor((total * (part + 1)) / parts) - first }
  })

export class Load {
  #endpoints
  #sizes
  #show
  /** @type {Member[]} */
  #clients = []
  /** @type {Member | null} */
  #publisher = null

  /**
   * @param {Endpoints} endpoints @param {import('./load.js').Sizes} sizes
   * @param {import('./load.js').Show} show
   */
  constructor(endpoints, sizes, show) {
    this.#endpoints = endpoints
    this.#sizes = sizes
    this.#show = show
    this.channels = sizes.channels || sizes.conns
  }

  get #all() {
    return this.#publisher ? [...this.#clients, this.#publisher] : this.#clients
  }

  /** @param {Partial<Settings>} some @returns {Settings} */
  #settings(some) {
    const { conns, subscriptions = 0 } = this.#sizes
    const { targets } = this.#endpoints
    const addresses = Math.ceil(conns / CONNECTIONS_PER_ADDRESS)
    return {
      targets: targets.map(({ url }) => url),
      transport: /** @type {any} */ (targets[0].transport),
      connections: 0,
      first: 0,
      total: conns,
      concurrency: 1,
      rate: 0,
      addresses: addresses > 1 ? [`127.1.0.1-127.1.0.${addresses}`] : [],
      ports: '',
      channels:
        subscriptions > 0
          ? Array.from({ length: subscriptions }, (_, k) => channelOf(k, `{0..${conns - 1}}`))
          : [`ch{0..${this.channels - 1}}`],
      recover: false,
      user: '',
      churn: 0,
      backoff: { min: 60_000, max: 60_000 },
      publish: null,
      publishFrom: 0,
      ...some,
    }
  }

  /** @param {'connections' | 'publisher'} role @param {Settings} settings */
  async #spawn(role, settings) {
    const { targets, apis } = this.#endpoints
    const allow = [...targets, ...apis].map(({ url }) => new URL(url).host)
    const launch = {
      role,
      allow,
      apiKey: apis[0].key,
      machine: 1,
      subscribe: this.#sizes.subscriptions ? 'later' : 'with',
    }
    const process = new EngineProcess(
      () => fork(ENGINE, ['--engine'], { execArgv: FLAGS, serialization: 'advanced' }),
      launch,
    )
    const member = { process, settings }
    if (role === 'publisher') this.#publisher = member
    else this.#clients.push(member)
    await process.request('apply', settings)
  }

  /** @param {Member} member @param {Partial<Settings>} some */
  #change(member, some) {
    member.settings = { ...member.settings, ...some }
    return member.process.request('apply', member.settings)
  }

  /**
   * @param {Member[]} members
   * @returns {Promise<{counters: import('../fleet/schema.js').Counters, open: number, lastAt: number, latency:
   *   Distribution, connect: Distribution, answer: Distribution, faults: Record<string, number>}>} sum of all
   *   counters, and distributions since the last call
   */
  async #sample(members) {
    const samples = await Promise.all(members.map(({ process }) => process.request('sample')))
    const all = {
      counters: zeroCounters(),
      open: 0,
      lastAt: 0,
      latency: new Distribution(),
      connect: new Distribution(),
      answer: new Distribution(),
      faults: /** @type {Record<string, number>} */ ({}),
    }
    for (const sample of samples) {
      addCounters(all.counters, sample.counters)
      all.open += sample.gauges.open
      all.lastAt = Math.max(all.lastAt, sample.lastAt)
      for (const name of /** @type {const} */ (['latency', 'connect', 'answer']))
        all[name].merge(sample[name])
      for (const kind in sample.faults) all.faults[kind] = (all.faults[kind] ?? 0) + sample.faults[kind]
    }
    for (const kind in all.faults) this.#show.warning(`${all.faults[kind]} times: ${kind}`)
    return all
  }

  /** Counters of clients and publishers, and distributions since the last call. */
  async sample() {
    const clients = await this.#sample(this.#clients)
    const publisher = await this.#sample(this.#publisher ? [this.#publisher] : [])
    return { ...clients, answer: publisher.answer, publisher: publisher.counters }
  }

  /**
   * Connects all clients, and subscribes those that do not subscribe later.
   * @returns {Promise<{ready: number, failed: number, seconds: number, latency: Distribution}>} `latency` ms
   */
  async connect() {
    const { conns, loaders } = this.#sizes
    const parts = Math.max(loaders, Math.ceil(conns / (openFilesLimit() - OWN_FILES)))
    const concurrency = Math.ceil(CONCURRENCY / parts)
    const started = performance.now()
    await Promise.all(
      spread(conns, parts).map(({ first, count }) =>
        this.#spawn('connections', this.#settings({ first, connections: count, concurrency })),
      ),
    )
    const latency = new Distribution()
    let ready = 0
    let failed = 0
    for (let quietSince = Date.now(); ready + failed < conns; ) {
      await sleep(Math.min(PROGRESS_EVERY, 10 + ready / 20))
      const { open, connect, counters } = await this.#sample(this.#clients)
      latency.merge(connect.toWire())
      if (open + counters.failed > ready + failed) quietSince = Date.now()
      ready = open
      failed = counters.failed
      if (Date.now() - quietSince > CONNECT_PATIENCE) break
      this.#show.progress(`${ready.toLocaleString('en')} of ${conns.toLocaleString('en')} connected`)
    }
    const seconds = (performance.now() - started) / 1e3
    if (ready === 0) throw new Error('no client got its subscription')
    return { ready, failed: conns - ready, seconds, latency }
  }

  /**
   * Subscribes all clients of a run with several subscriptions each.
   * @returns {Promise<{subscribed: number, refused: number, seconds: number}>}
   */
  async subscribe() {
    const { subscriptions = 1, conns } = this.#sizes
    const started = performance.now()
    const results = await Promise.all(
      this.#clients.map(({ process, settings }) =>
        subscribeAll(process, settings.connections * subscriptions, subscriptions),
      ),
    )
    const seconds = (performance.now() - started) / 1e3
    const subscribed = results.reduce((sum, count) => sum + count, 0)
    return { subscribed, refused: conns * subscriptions - subscribed, seconds }
  }

  /** Closes a share of the clients at once. @param {number} share 0 to 1 @returns {Promise<number>} their number */
  async leave(share) {
    let left = 0
    await Promise.all(
      this.#clients.map(member => {
        const stay = member.settings.connections - Math.round(member.settings.connections * share)
        left += member.settings.connections - stay
        return this.#change(member, { connections: stay })
      }),
    )
    return left
  }

  /** @param {number} warmUp s @returns {Promise<number>} Unix ms of the end of the warm-up */
  async publish(warmUp) {
    const { rate, size, publishers } = this.#sizes
    const lanes = Math.min(publishers, this.channels)
    let publishFrom = 0
    // Client processes learn the start before it comes, so that they expect each channel's first message.
    for (let lead = LEAD; ; lead *= 2) {
      publishFrom = Date.now() + lead
      await Promise.all(this.#clients.map(member => this.#change(member, { publishFrom })))
      if (Date.now() < publishFrom) break
    }
    await this.#spawn(
      'publisher',
      this.#settings({
        targets: this.#endpoints.apis.map(({ url }) => url),
        transport: 'websocket',
        channels: [],
        publishFrom,
        publish: {
          via: 'single',
          channels: `ch{0..${this.channels - 1}}`,
          order: 'sequential',
          rate: rate || 1,
          flat: rate === 0,
          size,
          part: 0,
          parts: 1,
          lanes,
        },
      }),
    )
    return Math.max(publishFrom, Date.now()) + warmUp * 1e3
  }

  /**
   * Ends publishing and waits for its deliveries.
   *
   * Messages are counted by sequence, over the whole run with its warm-up: each channel has 1, 2, 3 ... up to the last
   * one in the publisher's ledger. The ledger is final only when the publisher has a reply to everything that was due:
   * an earlier one lacks messages that subscribers will still receive.
   * @returns {Promise<{expected: number, all: Awaited<ReturnType<Load['sample']>>}>} `expected`: deliveries to all
   *   clients by the ledger; without loss, `all.counters.received` reaches it
   */
  async finish() {
    const { process } = /** @type {Member} */ (this.#publisher)
    const ledgers = await process.request('finish', PUBLISH_PATIENCE)
    const all = await this.drain(await this.#expected(ledgers))
    // A client that connected during publishing expects what follows its first message.
    return { expected: await this.#expected(ledgers), all }
  }

  /** @param {import('../fleet/schema.js').Ledger[]} ledgers */
  async #expected(ledgers) {
    const parts = await Promise.all(this.#clients.map(({ process }) => process.request('reckon', ledgers)))
    return parts.reduce((sum, { expected }) => sum + expected, 0)
  }

  /** Waits until all deliveries have arrived, or none arrives any more. @param {number} expected deliveries */
  async drain(expected) {
    for (let received = -1, quietSince = Date.now(); ; await sleep(20)) {
      const all = await this.sample()
      if (all.counters.received > received) quietSince = Date.now()
      received = all.counters.received
      if (received >= expected || Date.now() - quietSince > DRAIN_PATIENCE) return all
    }
  }

  /** @returns {number[]} seconds of processor time of each process of the load generator */
  cpu() {
    return this.#all.map(({ process }) => cpuOf(process.pid ?? 0))
  }

  stop() {
    for (const { process } of this.#all) process.kill()
  }
}

/** @param {number} k place among a client's channels @param {number | string} client @returns {string} its name */
export const channelOf = (k, client) => `ch${k}x${client}`

/**
 * @param {EngineProcess} process @param {number} wanted subscriptions @param {number} width subscriptions of a client
 * @returns {Promise<number>} subscriptions made
 */
async function subscribeAll(process, wanted, width) {
  const atOnce = Math.max(1, Math.floor(SUBSCRIPTIONS / width))
  let asked = 0
  let settled = 0
  for (let quietSince = Date.now(); Date.now() - quietSince < SUBSCRIBE_PATIENCE; await sleep(1)) {
    const more = asked - settled < SUBSCRIPTIONS ? atOnce : 0
    const { left, subscribed, refused } = await process.request('subscribe', more)
    asked = wanted - left * width
    if (subscribed + refused > settled) quietSince = Date.now()
    settled = subscribed + refused
    if (left === 0 && settled >= wanted) return subscribed
  }
  return (await process.request('subscribe', 0)).subscribed
}
