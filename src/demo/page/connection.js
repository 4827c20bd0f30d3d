import { Channel } from './channel.js'
import { Meter } from './meter.js'

/**
 * @typedef {import('./transports.js').Transport} Transport
 * @typedef {import('centrifuge').ClientEvents} ClientEvents
 */

/**
 * The page's connection: an SDK client, and after each change of the transport another one. Listeners and channels stay.
 */
export class Connection {
  /** @type {import('centrifuge').Centrifuge | undefined} */
  #client
  /** @type {Map<string, Channel>} */
  #channels = new Map()
  /** @type {[keyof ClientEvents, (context: any) => void][]} */
  #listeners = []
  #wanted = true
  #uses = 0
  /** @type {() => void} */
  onTraffic = () => {}
  /** What the client in use has brought in. */
  meter = new Meter(() => {})

  get state() {
    return this.#client?.state ?? 'disconnected'
  }

  /**
   * @template {keyof ClientEvents} Event
   * @param {Event} event
   * @param {ClientEvents[Event]} listener of every client that is yet to be made
   */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /**
   * @param {string} name
   * @param {import('centrifuge').SubscriptionOptions} [options]
   * @returns {Channel} subscribed when there is a client; to be asked for before the first one
   */
  channel(name, options = {}) {
    const channel = new Channel(name, options)
    this.#channels.set(name, channel)
    return channel
  }

  connect() {
    this.#wanted = true
    this.#client?.connect()
  }

  disconnect() {
    this.#wanted = false
    this.#client?.disconnect()
  }

  /**
   * Goes another way, if it was not told to stay offline: then it goes that way when it comes back.
   * @param {Transport} transport
   * @returns {Promise<boolean>} false: another one was chosen meanwhile
   * @throws {Error} when something that it takes cannot be loaded; everything stays as it was
   */
  async use(transport) {
    const use = ++this.#uses
    // Everything is at hand before the old connection ends, so that the gap is short.
    const makeClient = await transport.load().catch(error => {
      if (use === this.#uses) throw error
      return undefined
    })
    if (!makeClient || use !== this.#uses) return false
    const old = this.#client
    // It has nothing to say any more, not even that it disconnects.
    this.#client = undefined
    old?.disconnect()
    const meter = new Meter(() => this.meter === meter && this.onTraffic())
    const client = makeClient(meter)
    this.meter = meter
    this.#client = client
    for (const [event, listener] of this.#listeners) {
      client.on(event, (/** @type {any} */ context) => {
        if (client === this.#client) listener(context)
      })
    }
    for (const channel of this.#channels.values()) channel.attach(client, transport.codec === 'Protobuf')
    if (this.#wanted) client.connect()
    return true
  }
}
