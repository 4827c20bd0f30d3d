/** @import { Centrifuge, ClientEvents, MapSubscriptionEvents } from 'centrifuge' */
/** @import { Traffic, Transport } from './transports.js' */
/** @typedef {'newSubscription' | 'newMapSubscription'} Make */

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** @param {unknown} data of the SDK: bytes with Protobuf @returns {any} undefined if the bytes are not JSON */
function read(data) {
  if (!(data instanceof Uint8Array)) return data
  try {
    return JSON.parse(decoder.decode(data))
  } catch {
    return undefined
  }
}

/** @param {any} context of an event, or an entry of a map @returns {any} with decoded data */
const decoded = context => ({ ...context, data: read(context.data), entries: context.entries?.map(decoded) })

/** A subscription that outlives its client: the next client, on another transport, continues at its position. */
class Channel {
  #options
  #make
  /** @type {any} of a stream or a map */
  #subscription
  #binary = false
  /** @type {{offset: number, epoch: string} | undefined} of the last publication; undefined: unrecoverable */
  #position
  /** @type {[string, (context: any) => void][]} */
  #listeners = []

  /** @param {string} name @param {{delta?: 'fossil'}} options @param {Make} make */
  constructor(name, options, make) {
    this.name = name
    this.#options = options
    this.#make = make
  }

  get state() {
    return this.#subscription?.state ?? 'unsubscribed'
  }

  /** @template {keyof MapSubscriptionEvents} E @param {E} event @param {MapSubscriptionEvents[E]} listener */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /** After the previous client has disconnected. @param {Centrifuge} client @param {boolean} binary payloads */
  attach(client, binary) {
    this.#subscription = client[this.#make](this.name, { ...this.#options, since: this.#position })
    this.#binary = binary
    this.#subscription.on('subscribed', (/** @type {any} */ { recoverable, streamPosition }) => {
      this.#position = recoverable && streamPosition ? { ...streamPosition } : undefined
    })
    this.#subscription.on('publication', (/** @type {any} */ { offset }) => {
      if (this.#position && offset) this.#position.offset = offset
    })
    for (const [event, listener] of this.#listeners) {
      this.#subscription.on(event, (/** @type {any} */ context) => listener(decoded(context)))
    }
    this.#subscription.subscribe()
  }

  /** @param {unknown} data @param {string[]} key of a map @returns {Promise<unknown>} */
  publish(data, ...key) {
    return this.#now.publish(...key, this.#binary ? encoder.encode(JSON.stringify(data)) : data)
  }

  presence() {
    return this.#now.presence()
  }

  /** @param {number} limit @returns {Promise<import('centrifuge').PublicationContext[]>} oldest first */
  async last(limit) {
    const { publications } = await this.#now.history({ limit, reverse: true })
    return publications.reverse().map(decoded)
  }

  get #now() {
    if (!this.#subscription) throw new Error('no connection')
    return this.#subscription
  }
}

/** The page's connection: a new SDK client per transport change. Keeps listeners and channels. */
export class Connection {
  /** @type {Centrifuge | undefined} */
  #client
  /** @type {Channel[]} */
  #channels = []
  /** @type {[keyof ClientEvents, (context: any) => void][]} */
  #listeners = []
  #wanted = true
  #uses = 0
  /** Data received by the current client. @type {Traffic} */
  traffic = { count: 0, bytes: 0 }

  get state() {
    return this.#client?.state ?? 'disconnected'
  }

  /** For all future clients. @template {keyof ClientEvents} E @param {E} event @param {ClientEvents[E]} listener */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /** Before the first client. @param {string} name @param {{delta?: 'fossil'}} [options] @param {Make} [make] */
  channel(name, options = {}, make = 'newSubscription') {
    const channel = new Channel(name, options, make)
    this.#channels.push(channel)
    return channel
  }

  /** Connects a disconnected client, and disconnects any other. */
  toggle() {
    this.#wanted = this.state === 'disconnected'
    if (this.#wanted) this.#client?.connect()
    else this.#client?.disconnect()
  }

  /**
   * Switches the transport: now, or at the next connect if the user is offline.
   * @param {Transport} transport
   * @returns {Promise<boolean>} false: another one was chosen meanwhile
   * @throws {Error} if its code cannot be loaded; nothing changes
   */
  async use(transport) {
    const use = ++this.#uses
    // Load everything before the old connection ends, to keep the gap short.
    const makeClient = await transport.load().catch(error => {
      if (use === this.#uses) throw error
    })
    if (!makeClient || use !== this.#uses) return false
    const old = this.#client
    // Ignores further events of the old client, including its disconnect.
    this.#client = undefined
    old?.disconnect()
    this.traffic = { count: 0, bytes: 0 }
    const client = makeClient(this.traffic)
    this.#client = client
    for (const [event, listener] of this.#listeners) {
      client.on(event, (/** @type {any} */ context) => client === this.#client && listener(context))
    }
    for (const channel of this.#channels) channel.attach(client, transport.codec === 'Protobuf')
    if (this.#wanted) client.connect()
    return true
  }
}
