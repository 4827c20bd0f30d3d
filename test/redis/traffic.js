// Publishers and listeners who keep books: what was acknowledged, what came, and whether the one is the other.

import { Centrifuge } from 'centrifuge'
import WebSocket from 'ws'
import { until, within } from './waiting.js'

export { Load } from './load.js'

const AGAIN_AFTER = 20

/** What one subscriber has got of one channel. */
export class Track {
  epoch = ''
  offset = 0
  /** Times that it was told that something is missing. */
  told = 0
  /** @type {Map<string, string>} position -> id */
  got = new Map()
  /** @type {Set<string>} */
  #ids = new Set()
  /** @type {{epoch: string, after: number, until: number}[]} runs without a gap */
  #runs = []
  /** @type {string[]} */
  faults
  /** @type {(() => void) | null} */
  #wake = null

  /**
   * @param {string} channel
   * @param {string[]} faults
   */
  constructor(channel, faults) {
    this.channel = channel
    this.faults = faults
  }

  get began() {
    return this.#runs.length > 0
  }

  /** @param {{epoch: string, offset: number}} position from which on it gets everything */
  begins({ epoch, offset }) {
    if (this.began) this.told++
    this.epoch = epoch
    this.offset = offset
    this.#runs.push({ epoch, after: offset, until: offset })
    this.#wake?.()
  }

  /**
   * @param {number} offset
   * @param {{id: string}} data
   */
  took(offset, { id }) {
    if (offset !== this.offset + 1)
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
   * @returns {Promise<void>} when it has come so far
   */
  reaches({ epoch, offset }) {
    const there = async () => {
      while (this.epoch !== epoch || this.offset < offset)
        await new Promise(resolve => {
          this.#wake = () => resolve(undefined)
        })
    }
    const { channel } = this
    return within(there(), () => `${channel} ${epoch}:${offset}, is at ${this.epoch}:${this.offset}`)
  }

  /**
   * Compares with what was acknowledged.
   * @param {Map<string, string>} acknowledged position -> id
   * @returns {string[]} what is wrong
   */
  compared(acknowledged) {
    const faults = []
    for (const [position, id] of acknowledged) {
      const got = this.got.get(position)
      if (got === id) continue
      if (got !== undefined)
        faults.push(`${this.channel}: ${position} is ${got} here, and was acknowledged as ${id}`)
      else if (!this.#excuses(position)) faults.push(`${this.channel}: ${position} (${id}) is missing`)
    }
    return faults
  }

  /** @param {string} position whether it was told that this one might be missing, or came later than this one */
  #excuses(position) {
    const [epoch, offset] = position.split(':')
    const first = this.#runs[0]
    if (epoch === first?.epoch && Number(offset) <= first.after) return true
    return (
      this.told > 0 &&
      !this.#runs.some(
        run => epoch === run.epoch && run.after < Number(offset) && Number(offset) <= run.until,
      )
    )
  }
}

/**
 * A client over a raw WebSocket.
 *
 * One that stays takes it for a fault when it is disconnected or loses a subscription; another one comes back with its
 * positions at once.
 */
export class Listener {
  /** @type {string[]} */
  faults = []
  /** @type {Map<string, Track>} */
  tracks = new Map()
  /** Times that it had to connect or subscribe again. */
  returns = 0
  /** @type {{channel: string, code: number}[]} what it was told when a subscription ended */
  unsubscribed = []
  /** @type {number[]} how its connections ended */
  closed = []
  client = ''
  #url
  #stays
  #stopped = false
  /** @type {WebSocket | null} */
  #socket = null
  /** @type {Map<number, Track>} subscribe command -> channel */
  #asked = new Map()
  #lastId = 1
  /** @type {() => void} */
  #ready = () => {}

  /**
   * @param {() => string} url of the endpoint to connect to
   * @param {string[]} channels
   * @param {{stays?: boolean}} [options]
   */
  constructor(url, channels, { stays = false } = {}) {
    this.#url = url
    this.#stays = stays
    for (const channel of channels) this.tracks.set(channel, new Track(channel, this.faults))
    /** @type {Promise<void>} when it has all its subscriptions */
    this.ready = new Promise(resolve => {
      this.#ready = resolve
    })
    this.#open()
  }

  #open() {
    if (this.#stopped) return
    const socket = new WebSocket(this.#url(), { perMessageDeflate: false })
    this.#socket = socket
    this.#asked.clear()
    socket.on('open', () => socket.send('{"id":1,"connect":{}}'))
    socket.on('error', () => {})
    socket.on('message', data => {
      for (const line of data.toString().split('\n')) this.#message(JSON.parse(line))
    })
    socket.on('close', code => {
      if (this.#stopped) return
      this.closed.push(code)
      this.returns++
      if (this.#stays) this.faults.push(`disconnected with ${code}`)
      setTimeout(() => this.#open(), AGAIN_AFTER)
    })
  }

  /** @param {Track} track */
  #subscribe(track) {
    const id = ++this.#lastId
    this.#asked.set(id, track)
    const position = track.began ? { recover: true, epoch: track.epoch, offset: track.offset } : {}
    const subscribe = { channel: track.channel, recoverable: true, ...position }
    this.#socket?.send(JSON.stringify({ id, subscribe }))
  }

  /** @param {any} message */
  #message(message) {
    const { id, push, error } = message
    if (push?.pub) this.tracks.get(push.channel)?.took(push.pub.offset, push.pub.data)
    else if (push?.unsubscribe) this.#lost(push.channel, push.unsubscribe.code)
    else if (id === 1) this.#connected(message)
    else if (id) this.#subscribed(/** @type {Track} */ (this.#asked.get(id)), error, message.subscribe)
    else if (!push) this.#socket?.send('{}')
  }

  /** @param {any} reply */
  #connected({ connect }) {
    // Whoever is refused for the moment tries again.
    if (!connect) return this.#socket?.close()
    this.client = connect.client
    for (const track of this.tracks.values()) this.#subscribe(track)
  }

  /**
   * @param {string} channel
   * @param {number} code
   */
  #lost(channel, code) {
    const track = this.tracks.get(channel)
    if (!track) return
    this.returns++
    this.unsubscribed.push({ channel, code })
    if (this.#stays) this.faults.push(`${channel}: unsubscribed with ${code}`)
    this.#subscribe(track)
  }

  /**
   * @param {Track} track
   * @param {any} error
   * @param {any} result
   */
  #subscribed(track, error, result) {
    if (error) {
      if (!error.temporary && error.code !== 100) this.faults.push(`${track.channel}: error ${error.code}`)
      const socket = this.#socket
      setTimeout(() => {
        if (socket === this.#socket && socket?.readyState === WebSocket.OPEN) this.#subscribe(track)
      }, AGAIN_AFTER)
      return
    }
    const { epoch, offset = 0, was_recovering, recovered, publications = [] } = result
    if (!was_recovering || !recovered) track.begins({ epoch, offset })
    else if (epoch !== track.epoch)
      this.faults.push(`${track.channel}: recovered from ${track.epoch} to ${epoch}`)
    for (const publication of publications) track.took(publication.offset ?? 0, publication.data)
    if ([...this.tracks.values()].every(({ began }) => began)) this.#ready()
  }

  stop() {
    this.#stopped = true
    this.#socket?.terminate()
  }
}

/**
 * The same with the official SDK, on whichever gateway is there.
 */
export class SdkListener {
  /** @type {string[]} */
  faults = []
  /** @type {Map<string, Track>} */
  tracks = new Map()
  returns = -1
  #client

  /**
   * @param {() => string} url
   * @param {string[]} channels
   * @param {{stays?: boolean}} [options]
   */
  constructor(url, channels, { stays = false } = {}) {
    class Roaming extends WebSocket {
      constructor() {
        super(url(), { perMessageDeflate: false })
      }
    }
    const client = new Centrifuge(url(), {
      websocket: Roaming,
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
          track.begins({ epoch: streamPosition?.epoch ?? '', offset: streamPosition?.offset ?? 0 })
      })
      subscription.on('subscribing', ({ code, reason }) => {
        if (stays && code !== 0) this.faults.push(`${channel}: unsubscribed with ${code} ${reason}`)
      })
      subscription.on('unsubscribed', ({ code, reason }) => {
        if (code !== 0) this.faults.push(`${channel}: unsubscribed for good with ${code} ${reason}`)
      })
      subscription.on('publication', ({ offset = 0, data }) => track.took(offset, data))
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
 * @param {any} t
 * @param {(Listener | SdkListener)[]} listeners stopped with the test
 * @returns {Promise<void>} when they have all their subscriptions
 */
export async function begin(t, listeners) {
  t.teardown(() => {
    for (const listener of listeners) listener.stop()
  })
  await within(Promise.all(listeners.map(({ ready }) => ready)), () => 'the subscriptions of listeners')
}

/**
 * @param {(Listener | SdkListener)[]} listeners
 * @returns {number[]} for each and each channel: how often it was told that something is missing
 */
export const timesTold = listeners =>
  listeners.flatMap(({ tracks }) => [...tracks.values()].map(({ told }) => told))

/**
 * @param {(Listener | SdkListener)[]} listeners
 * @param {string} channel
 * @param {{epoch: string, offset: number}} position
 * @returns {Promise<unknown>} when all that follow the channel have come so far
 */
export const reachedBy = (listeners, channel, position) =>
  Promise.all(listeners.map(({ tracks }) => tracks.get(channel)?.reaches(position)))

/**
 * Waits until everybody has come to the ends of their channels, and compares the books.
 *
 * @param {any} t
 * @param {import('./load.js').Load} load that has stopped
 * @param {(Listener | SdkListener)[]} listeners
 * @param {import('../gateway.js').TestGateway} gateway to be asked where the channels end
 */
export async function audit(t, load, listeners, gateway) {
  const channels = new Set(listeners.flatMap(({ tracks }) => [...tracks.keys()]))
  for (const channel of channels) {
    // A worker whom nobody has asked for this channel may find out only now that it is elsewhere.
    const result = await until(async () => (await gateway.api('history', { channel, limit: 0 })).result)
    await reachedBy(listeners, channel, result)
  }
  const faults = listeners.flatMap(({ faults, tracks }) => [
    ...faults,
    ...[...tracks.values()].flatMap(track =>
      track.compared(load.acknowledged.get(track.channel) ?? new Map()),
    ),
  ])
  t.same(
    [...load.faults, ...faults].slice(0, 10),
    [],
    'everything that was acknowledged came once and in order',
  )
  t.same(
    [...load.errors.keys()].filter(code => code !== 100),
    [],
    'what fails is said to be temporary',
  )
}
