// Clients that record every publication they receive, and the comparison with what publishers (load.js) had
// acknowledged. A position is the text `<epoch>:<offset>`.

import { Centrifuge } from 'centrifuge'
import WebSocket from 'ws'
import { until, within } from '../../../kit/wait.js'

export { Load } from './load.js'

/** The first offset after a failover or restart of Redis is higher by at least this. */
const LEAP = 1_000_000

/** ms before a client connects or subscribes again. */
const RETRY_DELAY = 20

/** Everything that one client has received in one channel. */
export class Track {
  epoch = ''
  offset = 0
  /** Replies without recovery after the first subscribe: publications may be missing. */
  unrecovered = 0
  /** @type {Map<string, string>} position -> id */
  got = new Map()
  /** @type {Set<string>} */
  #ids = new Set()
  /** @type {{epoch: string, after: number, until: number}[]} offsets above `after`, up to `until`, without a gap */
  #runs = []
  /** @type {string[]} */
  faults
  /** @type {(() => void) | null} */
  #wake = null

  /** @param {string} channel @param {string[]} faults of the client, shared by its tracks */
  constructor(channel, faults) {
    this.channel = channel
    this.faults = faults
  }

  /** Whether it was ever subscribed. */
  get began() {
    return this.#runs.length > 0
  }

  /** @param {{epoch: string, offset: number}} position everything after it is expected */
  begin({ epoch, offset }) {
    if (this.began) this.unrecovered++
    this.epoch = epoch
    this.offset = offset
    this.#runs.push({ epoch, after: offset, until: offset })
    this.#wake?.()
  }

  /** @param {number} offset @param {{id: string}} data */
  receive(offset, { id }) {
    if (offset !== this.offset + 1 && offset < this.offset + LEAP)
      this.faults.push(`${this.channel}: ${offset} (${id}) after ${this.offset} of ${this.epoch}`)
    if (this.#ids.has(id)) this.faults.push(`${this.channel}: ${id} twice`)
    this.#ids.add(id)
    this.offset = offset
    this.got.set(`${this.epoch}:${offset}`, id)
    const run = this.#runs[this.#runs.length - 1]
    run.until = Math.max(run.until, offset)
    this.#wake?.()
  }

  /**
   * @param {{epoch: string, offset: number}} position
   * @returns {Promise<void>} resolves when the client has received everything up to it
   */
  reaches({ epoch, offset }) {
    const reached = async () => {
      while (this.epoch !== epoch || this.offset < offset)
        await new Promise(resolve => {
          this.#wake = () => resolve(undefined)
        })
    }
    const { channel } = this
    return within(reached(), () => `${channel} ${epoch}:${offset}, is at ${this.epoch}:${this.offset}`)
  }

  /**
   * Compares the acknowledged publications with those received.
   * @param {Map<string, string>} acknowledged position -> id @returns {string[]} faults
   */
  compare(acknowledged) {
    const faults = []
    for (const [position, id] of acknowledged) {
      const got = this.got.get(position)
      if (got === id) continue
      if (got !== undefined)
        faults.push(`${this.channel}: ${position} is ${got} here, and was acknowledged as ${id}`)
      else if (!this.#mayMiss(position)) faults.push(`${this.channel}: ${position} (${id}) is missing`)
    }
    return faults
  }

  /**
   * Whether it is from before the first subscribe, or in a gap that a reply without recovery announced.
   * @param {string} position
   */
  #mayMiss(position) {
    const [epoch, offset] = position.split(':')
    const first = this.#runs[0]
    if (epoch === first?.epoch && Number(offset) <= first.after) return true
    return (
      this.unrecovered > 0 &&
      !this.#runs.some(
        run => epoch === run.epoch && run.after < Number(offset) && Number(offset) <= run.until,
      )
    )
  }
}

/**
 * A client over a raw WebSocket. It reconnects and resubscribes with its positions. With `stays` each disconnect and
 * each unsubscribe is a fault.
 */
export class Listener {
  /** @type {string[]} */
  faults = []
  /** @type {Map<string, Track>} */
  tracks = new Map()
  /** Disconnects and unsubscribes by the gateway. */
  returns = 0
  /** @type {{channel: string, code: number}[]} unsubscribe pushes */
  unsubscribed = []
  /** @type {number[]} close codes of its connections */
  closed = []
  client = ''
  #url
  #stays
  #stopped = false
  /** @type {WebSocket | null} */
  #socket = null
  /** @type {Map<number, Track>} id of a subscribe command -> track of its channel */
  #subscribing = new Map()
  #lastId = 1
  /** @type {() => void} */
  #ready = () => {}

  /**
   * @param {() => string} url of the endpoint to connect to @param {string[]} channels
   * @param {{stays?: boolean}} [options]
   */
  constructor(url, channels, { stays = false } = {}) {
    this.#url = url
    this.#stays = stays
    for (const channel of channels) this.tracks.set(channel, new Track(channel, this.faults))
    /** @type {Promise<void>} resolves when all channels are subscribed */
    this.ready = new Promise(resolve => {
      this.#ready = resolve
    })
    this.#open()
  }

  #open() {
    if (this.#stopped) return
    const socket = new WebSocket(this.#url(), { perMessageDeflate: false })
    this.#socket = socket
    this.#subscribing.clear()
    socket.on('open', () => socket.send('{"id":1,"connect":{}}'))
    socket.on('error', () => {})
    socket.on('message', data => {
      for (const line of data.toString().split('\n')) this.#receive(JSON.parse(line))
    })
    socket.on('close', code => {
      if (this.#stopped) return
      this.closed.push(code)
      this.returns++
      if (this.#stays) this.faults.push(`disconnected with ${code}`)
      setTimeout(() => this.#open(), RETRY_DELAY)
    })
  }

  /** @param {Track} track */
  #subscribe(track) {
    const id = ++this.#lastId
    this.#subscribing.set(id, track)
    const position = track.began ? { recover: true, epoch: track.epoch, offset: track.offset } : {}
    const subscribe = { channel: track.channel, recoverable: true, ...position }
    this.#socket?.send(JSON.stringify({ id, subscribe }))
  }

  #receive(message) {
    const { id, push, error } = message
    if (push?.pub) this.tracks.get(push.channel)?.receive(push.pub.offset, push.pub.data)
    else if (push?.unsubscribe) this.#unsubscribed(push.channel, push.unsubscribe.code)
    else if (id === 1) this.#connected(message)
    else if (id) this.#subscribed(/** @type {Track} */ (this.#subscribing.get(id)), error, message.subscribe)
    else if (!push) this.#socket?.send('{}')
  }

  #connected({ connect }) {
    // A temporary error: connect again.
    if (!connect) return this.#socket?.close()
    this.client = connect.client
    for (const track of this.tracks.values()) this.#subscribe(track)
  }

  /** @param {string} channel @param {number} code */
  #unsubscribed(channel, code) {
    const track = this.tracks.get(channel)
    if (!track) return
    this.returns++
    this.unsubscribed.push({ channel, code })
    if (this.#stays) this.faults.push(`${channel}: unsubscribed with ${code}`)
    this.#subscribe(track)
  }

  /** @param {Track} track @param {any} error @param {any} result */
  #subscribed(track, error, result) {
    if (error) {
      if (!error.temporary && error.code !== 100) this.faults.push(`${track.channel}: error ${error.code}`)
      const socket = this.#socket
      setTimeout(() => {
        if (socket === this.#socket && socket?.readyState === WebSocket.OPEN) this.#subscribe(track)
      }, RETRY_DELAY)
      return
    }
    const { epoch, offset = 0, was_recovering, recovered, publications = [] } = result
    if (!was_recovering || !recovered) track.begin({ epoch, offset })
    else if (epoch !== track.epoch)
      this.faults.push(`${track.channel}: recovered from ${track.epoch} to ${epoch}`)
    for (const publication of publications) track.receive(publication.offset ?? 0, publication.data)
    if ([...this.tracks.values()].every(({ began }) => began)) this.#ready()
  }

  stop() {
    this.#stopped = true
    this.#socket?.terminate()
  }
}

/** The same with the official SDK. */
export class SdkListener {
  /** @type {string[]} */
  faults = []
  /** @type {Map<string, Track>} */
  tracks = new Map()
  /** Reconnects; the first connect makes it 0. */
  returns = -1
  #client

  /** @param {() => string} url @param {string[]} channels @param {{stays?: boolean}} [options] */
  constructor(url, channels, { stays = false } = {}) {
    // Each reconnect reads `url` again: it may name another gateway.
    class RoamingSocket extends WebSocket {
      constructor() {
        super(url(), { perMessageDeflate: false })
      }
    }
    const client = new Centrifuge(url(), {
      websocket: RoamingSocket,
      minReconnectDelay: 20,
      maxReconnectDelay: 200,
      timeout: 5000,
    })
    this.#client = client
    client.on('connected', () => this.returns++)
    client.on('connecting', ({ code, reason }) => {
      if (stays && code !== 0) this.faults.push(`disconnected with ${code} ${reason}`)
    })
    client.on('disconnected', ({ code, reason }) => {
      if (code !== 0) this.faults.push(`disconnected for good with ${code} ${reason}`)
    })
    const ready = channels.map(channel => {
      const track = new Track(channel, this.faults)
      this.tracks.set(channel, track)
      const subscription = client.newSubscription(channel, {
        recoverable: true,
        minResubscribeDelay: 20,
        maxResubscribeDelay: 200,
      })
      subscription.on('subscribed', ({ wasRecovering, recovered, streamPosition }) => {
        if (!wasRecovering || !recovered)
          track.begin({ epoch: streamPosition?.epoch ?? '', offset: streamPosition?.offset ?? 0 })
      })
      subscription.on('subscribing', ({ code, reason }) => {
        if (stays && code !== 0) this.faults.push(`${channel}: unsubscribed with ${code} ${reason}`)
      })
      subscription.on('unsubscribed', ({ code, reason }) => {
        if (code !== 0) this.faults.push(`${channel}: unsubscribed for good with ${code} ${reason}`)
      })
      subscription.on('publication', ({ offset = 0, data }) => track.receive(offset, data))
      const subscribed = new Promise(resolve => subscription.once('subscribed', resolve))
      subscription.subscribe()
      return subscribed
    })
    /** @type {Promise<unknown>} */
    this.ready = Promise.all(ready)
    client.connect()
  }

  stop() {
    this.#client.disconnect()
  }
}

/**
 * @param {any} t @param {(Listener | SdkListener)[]} listeners stopped with the test
 * @returns {Promise<void>} resolves when all their channels are subscribed
 */
export async function begin(t, listeners) {
  t.teardown(() => {
    for (const listener of listeners) listener.stop()
  })
  await within(Promise.all(listeners.map(({ ready }) => ready)), () => 'the subscriptions of listeners')
}

/**
 * @param {(Listener | SdkListener)[]} listeners
 * @returns {number[]} replies without recovery, for each channel of each listener
 */
export const unrecoveredCounts = listeners =>
  listeners.flatMap(({ tracks }) => [...tracks.values()].map(({ unrecovered }) => unrecovered))

/**
 * @param {(Listener | SdkListener)[]} listeners @param {string} channel
 * @param {{epoch: string, offset: number}} position
 * @returns {Promise<unknown>} resolves when all subscribers of the channel have received everything up to it
 */
export const reachedBy = (listeners, channel, position) =>
  Promise.all(listeners.map(({ tracks }) => tracks.get(channel)?.reaches(position)))

/**
 * Waits until all listeners have reached the ends of their channels, and compares their records with the publishers'.
 * @param {any} t @param {import('./load.js').Load} load that has stopped @param {(Listener | SdkListener)[]} listeners
 * @param {import('../../../kit/gateway.js').TestGateway} gateway that answers where the channels end
 */
export async function audit(t, load, listeners, gateway) {
  const channels = new Set(listeners.flatMap(({ tracks }) => [...tracks.keys()]))
  for (const channel of channels) {
    // A worker that has not used the channel may detect only now that its slot has moved.
    const result = await until(async () => (await gateway.api('history', { channel, limit: 0 })).result)
    await reachedBy(listeners, channel, result)
  }
  const faults = listeners.flatMap(({ faults, tracks }) => [
    ...faults,
    ...[...tracks.values()].flatMap(track =>
      track.compare(load.acknowledged.get(track.channel) ?? new Map()),
    ),
  ])
  const all = [...load.faults, ...faults].slice(0, 10)
  t.same(all, [], 'everything acknowledged was received once and in order')
  const codes = [...load.errors.keys()].filter(code => code !== 100)
  t.same(codes, [], 'publishes fail only with a temporary error')
}
