// The official SDK over many edits: it reconstructs the published payloads.

import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import WebSocket from 'ws'
import { until } from '../../kit/wait.js'
import { chance } from './chance.js'
import { TestDocument } from './document.js'

/** Publications of one request. */
const MAX_BATCH = 8

const open = {
  allow_subscribe_for_client: true,
  allow_subscribe_for_anonymous: true,
  allowed_delta_types: ['fossil'],
}
export const config = {
  client: { allow_anonymous_connect_without_token: true, queue_max_size: 16 * 1024 * 1024 },
  channel: {
    without_namespace: open,
    namespaces: [
      { name: 'doc', ...open, history_size: 8, history_ttl: '60s', force_recovery: true },
      { name: 'passing', ...open, delta_publish: true },
      { name: 'latest', ...open, keep_latest_publication: true },
      {
        ...{ name: 'bytes', ...open, history_size: 8, history_ttl: '60s', force_recovery: true },
        ...{ delta_publish: true, publication_data_format: 'binary' },
      },
    ],
  },
}

/** @typedef {{text: string, kept: boolean}[]} Published text of each payload, and whether it is in history */

/** A subscriber that compares its publications with the published ones. */
class Reader {
  faults = []
  /** Number of the last publication. */
  last = -1
  got = 0
  recoveries = { done: 0, failed: 0 }
  bytes = 0
  /** Allowed gap before the next one: 'nothing', 'passing' (not in history), 'anything'. */
  #gap = 'anything'
  /** Publications are recovered: the SDK emits them with the event `subscribed`. */
  #recovering = false
  #published

  /**
   * @param {string} url @param {string} channel @param {Published} published
   * @param {{protobuf: boolean, delta: boolean}} way
   */
  constructor(url, channel, published, { protobuf, delta }) {
    this.#published = published
    const reader = this
    class CountingSocket extends WebSocket {
      constructor(address, protocols) {
        super(address, protocols, { perMessageDeflate: false })
        this.on('message', data => {
          reader.bytes += /** @type {Buffer} */ (data).length
        })
      }
    }
    const Client = protobuf ? ProtobufCentrifuge : Centrifuge
    this.client = new Client(url, { websocket: CountingSocket, minReconnectDelay: 1, maxReconnectDelay: 5 })
    this.subscription = this.client.newSubscription(channel, {
      minResubscribeDelay: 1,
      maxResubscribeDelay: 5,
      ...(delta ? { delta: 'fossil' } : null),
    })
    this.subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      // A gap remains when the next recovery, from behind it, succeeds before a message.
      this.#gap = recovered && this.#gap !== 'anything' ? 'passing' : 'anything'
      this.#recovering = true
      queueMicrotask(() => {
        this.#recovering = false
      })
      if (wasRecovering) this.recoveries[recovered ? 'done' : 'failed']++
    })
    this.subscription.on('publication', ({ data }) =>
      this.#take(protobuf ? JSON.parse(Buffer.from(data).toString()) : data),
    )
    this.subscription.on('error', ({ error }) => this.faults.push(`subscription: ${error.message}`))
    this.client.on('disconnected', ({ code, reason }) => {
      if (code !== 0) this.faults.push(`ended with ${code} ${reason}`)
    })
    this.subscription.subscribe()
    this.client.connect()
  }

  #take(data) {
    const n = typeof data === 'number' ? data : data.n
    const published = this.#published
    if (JSON.stringify(data) !== published[n]?.text) this.faults.push(`${n} is not what was published`)
    const missing = published.slice(this.last + 1, n)
    if (n <= this.last) this.faults.push(`${n} after ${this.last}`)
    else if (this.#gap === 'nothing' && missing.length > 0) this.faults.push(`${n} after ${this.last}`)
    else if (this.#gap === 'passing' && missing.some(({ kept }) => kept)) {
      this.faults.push(`${n} after ${this.last}, recovered`)
    }
    if (!this.#recovering) this.#gap = 'nothing'
    this.last = n
    this.got++
  }

  /** Waits for a publication, or for a fault. */
  async until(n) {
    await until(
      () => this.last >= n || this.faults.length > 0,
      () => `publication ${n}, is at ${this.last}`,
    )
  }
}

/**
 * Subscribers disconnect and reconnect while a document is edited.
 * @param {any} t @param {any} gateway with this configuration @param {'doc' | 'passing' | 'latest'} namespace
 * @param {{publications: number, seed: number, long?: boolean}} options `long`: some recoveries succeed and some fail
 */
export async function testEdits(t, gateway, namespace, { publications, seed, long = false }) {
  const random = chance(seed)
  const channel = `${namespace}:edits`
  /** @type {Published} */
  const published = []
  const ways = [
    { protobuf: false, delta: true },
    { protobuf: false, delta: true },
    { protobuf: false, delta: false },
    { protobuf: true, delta: true },
    { protobuf: true, delta: false },
  ]
  const readers = ways.map(way => new Reader(gateway.ws, channel, published, way))
  // These stay connected: their bytes are compared.
  const [steady, steadyPlain] = [readers[0], readers[2]]
  t.teardown(() => {
    for (const { client } of readers) client.disconnect()
  })
  await Promise.all(readers.map(({ subscription }) => subscription.ready()))

  const gone = new Set()
  const document = new TestDocument(random)
  while (published.length < publications) {
    const commands = []
    for (let left = 1 + random.below(MAX_BATCH); left > 0; left--) {
      const n = published.length
      const data = document.edited(n)
      const skip_history = random.hit(0.05)
      const tags = random.hit(0.1) ? { some: 'tag' } : undefined
      published.push({ text: JSON.stringify(data), kept: namespace === 'doc' && !skip_history })
      commands.push({ publish: { channel, data, skip_history, tags, delta: random.hit(0.9) } })
    }
    const { replies } = await gateway.api('batch', { commands })
    if (replies.some(({ error }) => error)) throw new Error('a publish failed')
    if (!random.hit(0.2)) continue
    const reader = random.pick(readers)
    if (reader === steady || reader === steadyPlain) continue
    // For a moment, or for longer than the history lasts.
    if (reader.client.state !== 'disconnected') {
      // A permanently connected client receives everything, possibly late.
      if (!gone.has(reader)) await reader.until(published.length - 1)
      gone.add(reader)
      reader.client.disconnect()
      if (random.hit(0.5)) reader.client.connect()
    } else {
      reader.client.connect()
    }
  }
  for (const { client } of readers) client.connect()
  await Promise.all(readers.map(({ subscription }) => subscription.ready()))
  const n = published.length
  published.push({ text: JSON.stringify({ n }), kept: true })
  await gateway.api('publish', { channel, data: { n } })
  await Promise.all(readers.map(reader => reader.until(n)))

  for (const [index, { faults, got }] of readers.entries()) {
    t.strictSame(faults, [], `reader ${index}`)
    t.ok(got > n / 10, `reader ${index} got ${got}`)
  }
  t.equal(steady.got, n + 1)
  if (namespace === 'passing') return
  const { numDeltaPayloads, numFullPayloads } = steady.subscription.deltaStats()
  t.ok(numDeltaPayloads > numFullPayloads, `${numDeltaPayloads} deltas, ${numFullPayloads} full`)
  if (!long) return
  t.ok(steady.bytes < steadyPlain.bytes / 3, `${steady.bytes} bytes for ${steadyPlain.bytes}`)
  const recoveries = readers.map(({ recoveries }) => recoveries)
  const sum = kind => recoveries.reduce((sum, recovery) => sum + recovery[kind], 0)
  t.ok(sum('done') > 0 && sum('failed') > 0, `${sum('done')} recoveries, ${sum('failed')} that failed`)
}
