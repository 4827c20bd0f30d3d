// Clients that come, do a little of everything, and leave in every way: each could leak.

import { setTimeout as sleep } from 'node:timers/promises'
import { ProtobufClient } from '../test/clients/transport/protobuf-client.js'
import { PollClient } from '../test/kit/poll-client.js'
import { RawClient } from '../test/kit/raw-client.js'
import { StreamClient } from '../test/kit/stream-client.js'
import { poll } from '../test/kit/uni-poll-client.js'
import { post } from './servers.js'

/** Blocks of the gateway's configuration. */
export const CHURN_CONFIG = Object.freeze({
  client: { ping_interval: '10s', pong_timeout: '5s', stale_close_delay: '2s' },
  channel: {
    // Channels with names of their own are forgotten soon, so that their number does not grow.
    history_meta_ttl: '5s',
    without_namespace: {
      presence: true,
      join_leave: true,
      history_size: 5,
      history_ttl: '3s',
      allow_recovery: true,
      allowed_delta_types: ['fossil'],
    },
  },
  http_stream: { enabled: true },
  sse: { enabled: true },
  poll: { enabled: true, session_timeout: '5s' },
  uni_sse: { enabled: true },
  uni_poll: { enabled: true },
})

/** Channels that many visit. */
const SHARED = 200
/** Idempotency keys are kept for five minutes: more of them would be a growth that ends only then. */
const KEYS = 500
const MAX_FAULTS = 20

/**
 * @typedef {{url: string, ws: string, api: import('./servers.js').Api}} ChurnTarget
 * @typedef {(target: ChurnTarget) => Promise<any>} Arrival a connected two-way client
 */

/** @type {Arrival[]} */
const ARRIVALS = [
  ({ ws }) => RawClient.connected(ws),
  ({ ws }) => ProtobufClient.connected(ws),
  ({ url }) => StreamClient.connected(url, 'http_stream'),
  ({ url }) => StreamClient.connected(url, 'sse'),
  ({ url }) => PollClient.connected({ url }),
]

/** Visitors, each with one session after another, at a steady rate of all. */
export class Churn {
  sessions = 0
  /** The first ones. @type {string[]} */
  faults = []
  #target
  #isStopped = false
  /** @type {Promise<void>[]} */
  #visitors = []
  #unique = 0
  /** ms between two sessions. */
  #interval
  /** When the next session is due. */
  #next = performance.now()

  /** @param {ChurnTarget} target @param {{visitors: number, rate: number}} options at once; sessions a second */
  constructor(target, { visitors, rate }) {
    this.#target = target
    this.#interval = 1000 / rate
    this.#visitors = Array.from({ length: visitors }, (_, number) => this.#visit(number))
  }

  /** @returns {Promise<void>} when all have left */
  async stop() {
    this.#isStopped = true
    await Promise.all(this.#visitors)
  }

  /** @param {number} number */
  async #visit(number) {
    for (let round = number; !this.#isStopped; round++) {
      const wait = this.#next - performance.now()
      // What was late is not made up for: a burst would fill caches.
      this.#next = Math.max(this.#next, performance.now()) + this.#interval
      if (wait > 0) await sleep(wait)
      try {
        await this.#session(round)
      } catch (error) {
        if (this.faults.length < MAX_FAULTS) this.faults.push(error.message)
      }
      this.sessions++
    }
  }

  /** @param {number} round */
  #session(round) {
    const kinds = ARRIVALS.length + 4
    const kind = round % kinds
    if (kind < ARRIVALS.length) return this.#twoWay(ARRIVALS[kind], Math.floor(round / kinds))
    if (kind === kinds - 4) return this.#oneWayStream()
    if (kind === kinds - 3) return this.#oneWayPoll()
    return kind === kinds - 2 ? this.#silent() : this.#wrong()
  }

  /** @param {Arrival} arrive @param {number} round */
  async #twoWay(arrive, round) {
    const client = await arrive(this.#target)
    const own = `own-${++this.#unique}`
    const shared = `shared-${this.#unique % SHARED}`
    for (const channel of [own, shared]) {
      const { error } = (await client.subscribe?.(channel)) ?? (await client.call('subscribe', { channel }))
      if (error) throw new Error(`subscribe: ${error.code} ${error.message}`)
    }
    await this.#publish(own)
    await client.push('pub')
    await this.#publish(shared)
    await client.call('presence', { channel: shared })
    await client.call('history', { channel: own, limit: 10 })
    // Leaves with subscriptions, without them, politely or not.
    if (round % 2 === 0) await client.call('unsubscribe', { channel: own })
    if (client instanceof PollClient) {
      if (round % 3 === 0) await client.post('close=1')
    } else if ('socket' in client && round % 3 === 0) client.socket.terminate()
    else await client.close()
  }

  async #oneWayStream() {
    const own = `own-${++this.#unique}`
    const request = encodeURIComponent(JSON.stringify({ subs: { [own]: {} } }))
    const client = await StreamClient.open(this.#target.url, `/connection/uni_sse?cf_connect=${request}`)
    await client.next()
    await this.#publish(own)
    await client.next()
    await client.close()
  }

  async #oneWayPoll() {
    const own = `own-${++this.#unique}`
    await this.#publish(own)
    const { cursor } = await poll(this.#target, { channel: own, timeout: 0 })
    await this.#publish(own)
    await poll(this.#target, { channel: own, cursor, timeout: 0 })
  }

  /** A client that connects and says nothing. */
  async #silent() {
    const client = await RawClient.open(this.#target.ws)
    await client.close()
  }

  /** A client that is disconnected. */
  async #wrong() {
    const client = await RawClient.open(this.#target.ws)
    client.send({ id: 1, subscribe: { channel: 'x' } })
    await client.closed
  }

  /** @param {string} channel */
  async #publish(channel) {
    const key = `key-${this.#unique % KEYS}-${channel.startsWith('own') ? 'own' : 'shared'}`
    const idempotency = channel.startsWith('own') ? {} : { idempotency_key: key }
    const body = JSON.stringify({ channel, data: { n: this.#unique, text: 'x'.repeat(200) }, ...idempotency })
    if (!(await post(this.#target.api, 'publish', body))) throw new Error('a publish was refused')
  }
}
