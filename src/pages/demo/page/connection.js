/** @import { Centrifuge, ClientEvents, Subscription, SubscriptionEvents, SubscriptionOptions } from 'centrifuge' */
/** @import { Traffic, Transport } from './transports.js' */

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

/** A subscription that outlives its client: the next client, over another transport, continues at its position. */
class Channel {
  #options
  /** @type {Subscription | undefined} */
  #subscription
  #binary = false
  /** @type {{offset: number, epoch: string} | undefined} of the last publication; undefined: unrecoverable */
  #position
  /** @type {[keyof SubscriptionEvents, (context: any) => void][]} */
  #listeners = []

  /** @param {string} name @param {SubscriptionOptions} options */
  constructor(name, options) {
    this.name = name
    this.#options = options
  }

  get state() {
    return this.#subscription?.state ?? 'unsubscribed'
  }

  /**
   * @template {keyof SubscriptionEvents} Event
   * @param {Event} event
   * @param {SubscriptionEvents[Event]} listener added to every future subscription
   */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /**
   * Call it after the previous client has disconnected, so that nothing arrives twice.
   * @param {Centrifuge} client
   * @param {boolean} binary whether payloads are bytes
   */
  attach(client, binary) {
    const since = this.#position
    const subscription = client.newSubscription(this.name, { ...this.#options, ...(since && { since }) })
    this.#subscription = subscription
    this.#binary = binary
    subscription.on('subscribed', ({ recoverable, streamPosition }) => {
      this.#position = recoverable && streamPosition ? { ...streamPosition } : undefined
    })
    subscription.on('publication', ({ offset }) => {
      if (this.#position && offset) this.#position.offset = offset
    })
    for (const [event, listener] of this.#listeners) {
      subscription.on(event, (/** @type {any} */ context) =>
        listener(event === 'publication' ? { ...context, data: read(context.data) } : context),
      )
    }
    subscription.subscribe()
  }

  /** @param {unknown} data */
  publish(data) {
    return this.#now.publish(this.#binary ? encoder.encode(JSON.stringify(data)) : data)
  }

  presence() {
    return this.#now.presence()
  }

  /** @param {number} limit @returns {Promise<import('centrifuge').PublicationContext[]>} oldest first */
  async last(limit) {
    const { publications } = await this.#now.history({ limit, reverse: true })
    return publications.reverse().map(publication => ({ ...publication, data: read(publication.data) }))
  }

  get #now() {
    if (!this.#subscription) throw new Error('no connection')
    return this.#subscription
  }
}

/** The page's connection: one SDK client after another, one per change of transport. Listeners and channels stay. */
export class Connection {
  /** @type {Centrifuge | undefined} */
  #client
  /** @type {Channel[]} */
  #channels = []
  /** @type {[keyof ClientEvents, (context: any) => void][]} */
  #listeners = []
  #wanted = true
  #uses = 0
  /** What the current client has received. @type {Traffic} */
  traffic = { count: 0, bytes: 0 }

  get state() {
    return this.#client?.state ?? 'disconnected'
  }

  /**
   * @template {keyof ClientEvents} Event
   * @param {Event} event
   * @param {ClientEvents[Event]} listener added to every future client
   */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /**
   * @param {string} name
   * @param {SubscriptionOptions} [options]
   * @returns {Channel} subscribed once there is a client; create it before the first
   */
  channel(name, options = {}) {
    const channel = new Channel(name, options)
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
   * @throws {Error} if its code cannot be loaded; nothing changes then
   */
  async use(transport) {
    const use = ++this.#uses
    // Load everything before the old connection ends, to keep the gap short.
    const makeClient = await transport.load().catch(error => {
      if (use === this.#uses) throw error
    })
    if (!makeClient || use !== this.#uses) return false
    const old = this.#client
    // Ignore all further events of the old client, also its disconnect.
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
