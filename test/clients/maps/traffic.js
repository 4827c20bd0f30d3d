// Writers and watchers of maps while servers fail: what was acknowledged is in the maps, and every watcher has it.

import { Centrifuge } from 'centrifuge'
import WebSocket from 'ws'
import { fetch } from '../../kit/fetch.js'
import { pause, until, within } from '../../kit/wait.js'

const MAP = {
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
}
const PAGES = { min_page_size: 1 }

/** Namespaces, one of each mode. */
export const namespaces = [
  { name: 'persistent', ...MAP, map: { mode: 'persistent', stream_size: 10_000, ...PAGES } },
  {
    name: 'recoverable',
    ...MAP,
    map: { mode: 'recoverable', key_ttl: '10m', stream_size: 10_000, stream_ttl: '10m', ...PAGES },
  },
  { name: 'ephemeral', ...MAP, map: { mode: 'ephemeral', key_ttl: '10m', ...PAGES } },
]

/** A channel of each mode. @param {string | number} [name] */
export const mapsOf = (name = 1) => namespaces.map(namespace => `${namespace.name}:${name}`)

/** The first offset after a failover of Redis is higher by at least this. */
const LEAP = 1_000_000
const AGAIN_AFTER = 20

/** @typedef {{value: number, removed: boolean}} MapWrite `value`: ascending */

/** Writes keys of its own, one after another. */
class Writer {
  /** Writes that may be the last one of a key: the last acknowledged one, and those after it. @type {Map<string, MapWrite[]>} */
  possible = new Map()

  /** @param {number} lane @param {string} channel */
  constructor(lane, channel) {
    this.lane = lane
    this.channel = channel
  }

  /** @param {number} value @returns {{key: string, write: MapWrite, method: string, params: object}} */
  next(value) {
    const key = `${this.lane}.${value % 7}`
    const write = { value, removed: value % 5 === 0 }
    const list = this.possible.get(key) ?? []
    this.possible.set(key, list)
    list.push(write)
    const { channel } = this
    return write.removed
      ? { key, write, method: 'map_remove', params: { channel, key } }
      : { key, write, method: 'map_publish', params: { channel, key, data: value } }
  }

  /** @param {string} key @param {MapWrite} write */
  acknowledged(key, write) {
    const list = /** @type {MapWrite[]} */ (this.possible.get(key))
    list.splice(0, list.indexOf(write))
  }

  /** @param {Map<string, number>} state @returns {string[]} keys whose last write is missing */
  missing(state) {
    const wrong = []
    for (const [key, list] of this.possible) {
      const value = state.get(key)
      const fits = list.some(write => (write.removed ? value === undefined : value === write.value))
      // Nothing acknowledged yet.
      if (!fits && !(value === undefined && list[0].value <= 7))
        wrong.push(`${this.channel} ${key}: ${value}, may be ${JSON.stringify(list)}`)
    }
    return wrong
  }
}

/** Writes continuously, and records what was acknowledged. */
export class MapLoad {
  acks = 0
  /** @type {Map<number, number>} code -> replies; 0: none */
  errors = new Map()
  #stopped = false
  #urls
  #writers
  #running

  /**
   * @param {any} t ends with this test @param {() => string[]} urls of the gateways @param {string[]} channels
   * @param {{lanes?: number, first?: number, pauseMs?: number}} [options] `first`: number of the first lane
   */
  constructor(t, urls, channels, { lanes = 2, first = 0, pauseMs = 5 } = {}) {
    this.#urls = urls
    this.#writers = channels.flatMap(channel =>
      Array.from({ length: lanes }, (_, lane) => new Writer(first + lane, channel)),
    )
    t.teardown(() => {
      this.#stopped = true
    })
    this.#running = Promise.all(this.#writers.map((writer, i) => this.#run(writer, i, pauseMs)))
  }

  /** @param {Writer} writer @param {number} i @param {number} pauseMs */
  async #run(writer, i, pauseMs) {
    for (let value = 1; !this.#stopped; value++) {
      const urls = this.#urls()
      const { key, write, method, params } = writer.next(value)
      const { error } = await this.#call(urls[i % urls.length], method, params).catch(() => ({
        error: { code: 0 },
      }))
      if (error) {
        this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
        i++
        await pause(AGAIN_AFTER)
      } else {
        this.acks++
        writer.acknowledged(key, write)
        await pause(pauseMs)
      }
    }
  }

  /** @param {string} url @param {string} method @param {object} params */
  async #call(url, method, params) {
    const body = JSON.stringify(params)
    const response = await fetch(`${url}/api/${method}`, {
      method: 'POST',
      headers: { 'X-API-Key': 'key' },
      body,
    })
    return response.status === 200 ? response.json() : { error: { code: response.status } }
  }

  /** @param {number} count resolves when this many more are acknowledged */
  async acked(count) {
    const goal = this.acks + count
    await until(
      () => this.acks >= goal,
      () => `${goal} writes, ${this.acks} acknowledged, errors ${JSON.stringify([...this.errors])}`,
    )
  }

  async stop() {
    this.#stopped = true
    await within(this.#running, 'the answers to the last writes')
  }

  /** @param {string} channel @param {Map<string, number>} state @returns {string[]} */
  missing(channel, state) {
    return this.#writers.filter(writer => writer.channel === channel).flatMap(writer => writer.missing(state))
  }
}

/** A client of the SDK with its view of a map. */
export class MapWatcher {
  /** @type {Map<string, number>} */
  view = new Map()
  /** @type {string[]} */
  faults = []
  /** @type {any[]} of the subscription, which it tries again */
  errors = []
  syncs = 0
  recoveries = 0
  /** Offset of the last change; -1: unknown. */
  #last = -1

  /** @param {any} t ends with this test @param {string} url @param {string} channel @param {object} [options] */
  constructor(t, url, channel, options = {}) {
    this.channel = channel
    this.client = new Centrifuge(url, {
      websocket: WebSocket,
      minReconnectDelay: 10,
      maxReconnectDelay: 200,
      timeout: 20_000,
    })
    t.teardown(() => this.client.disconnect())
    this.subscription = this.client.newMapSubscription(channel, {
      minResubscribeDelay: 10,
      maxResubscribeDelay: 200,
      pageSize: 3,
      ...options,
    })
    this.subscription.on('subscribed', ({ recovered }) => {
      if (recovered) this.recoveries++
      else this.#last = -1
    })
    this.subscription.on('error', ({ error }) => this.errors.push(error))
    this.subscription.on('sync', ({ entries }) => {
      this.syncs++
      this.view = new Map(entries.map(({ key, data }) => [key, data]))
      this.#last = -1
    })
    this.subscription.on('update', ({ key, data, removed, offset = 0 }) => {
      this.#check(offset, key)
      if (removed) this.view.delete(key)
      else this.view.set(key, data)
    })
    this.client.on('disconnected', ({ code, reason }) => {
      if (code !== 0) this.faults.push(`${channel}: disconnected with ${code} ${reason}`)
    })
    this.subscription.on('unsubscribed', ({ code, reason }) => {
      if (code !== 0) this.faults.push(`${channel}: unsubscribed with ${code} ${reason}`)
    })
    this.subscription.subscribe()
    this.client.connect()
  }

  /** @param {number} offset @param {string} key */
  #check(offset, key) {
    const last = this.#last
    this.#last = offset
    if (offset === 0 || last < 0) return
    if (offset !== last + 1 && offset < last + LEAP)
      this.faults.push(`${this.channel}: ${offset} (${key}) after ${last}`)
  }

  ready() {
    return within(this.subscription.ready(), `the subscription to ${this.channel}`)
  }

  /** @param {Map<string, number>} state @returns {boolean} */
  has(state) {
    return JSON.stringify([...this.view].sort()) === JSON.stringify([...state].sort())
  }
}

/**
 * @param {any} gateway @param {string} channel
 * @returns {Promise<Map<string, number>>} its state, as soon as it can be read
 */
export async function stateOf(gateway, channel) {
  const { entries } = await until(
    async () => (await gateway.api('map_read_state', { channel, limit: -1 })).result,
    `the state of ${channel}`,
  )
  return new Map(entries.map(({ key, data }) => [key, data]))
}

/**
 * Ends the load; acknowledged writes are in the maps, and all watchers have what is in the maps.
 * @param {any} t @param {any} gateway @param {MapLoad} load @param {MapWatcher[]} watchers
 * @param {{lossy?: boolean}} [options] `lossy`: a new master of Redis may lack acknowledged writes
 */
export async function settle(t, gateway, load, watchers, { lossy = false } = {}) {
  await load.stop()
  const channels = new Set(watchers.map(({ channel }) => channel))
  for (const channel of channels) {
    const state = await stateOf(gateway, channel)
    t.ok(state.size > 0, `${channel} has ${state.size} keys`)
    if (!lossy) t.same(load.missing(channel, state), [], 'everything acknowledged is in the map')
    for (const watcher of watchers.filter(watcher => watcher.channel === channel)) {
      await until(
        () => watcher.has(state),
        () =>
          `${channel}: ${JSON.stringify([...state].sort())}, has ${JSON.stringify([...watcher.view].sort())}`,
      )
      t.same(watcher.faults, [], 'no change twice or left out')
    }
  }
}
