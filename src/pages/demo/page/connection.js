import { Channel } from './channel.js'
import { Meter } from './meter.js'

/** @import { Centrifuge, ClientEvents, SubscriptionOptions } from 'centrifuge' */
/** @import { Transport } from './transports.js' */

/** The page's connection: one SDK client after another, one per change of transport. Listeners and channels stay. */
export class Connection {
  /** @type {Centrifuge | undefined} */
  #client
  /** @type {Map<string, Channel>} */
  #channels = new Map()
  /** @type {[keyof ClientEvents, (context: any) => void][]} */
  #listeners = []
  #wanted = true
  #uses = 0
  /** @type {() => void} */
  onTraffic = () => {}
  /** Counts what the current client receives. */
  meter = new Meter(() => {})

  get state() {
    return this.#client?.state ?? 'disconnected'
  }

  /**
   * @template {keyof ClientEvents} Event
   * @param {Event} event @param {ClientEvents[Event]} listener added to every future client
   */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /**
   * @param {string} name @param {SubscriptionOptions} [options]
   * @returns {Channel} subscribed once there is a client; create it before the first
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
   * Switches the transport: now, or at the next connect if the user is offline.
   * @param {Transport} transport @returns {Promise<boolean>} false: another one was chosen meanwhile
   * @throws {Error} if its code cannot be loaded; nothing changes then
   */
  async use(transport) {
    const use = ++this.#uses
    // Load everything before the old connection ends, to keep the gap short.
    const makeClient = await transport.load().catch(error => {
      if (use === this.#uses) throw error
      return undefined
    })
    if (!makeClient || use !== this.#uses) return false
    const old = this.#client
    // Ignore all further events of the old client, also its disconnect.
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
