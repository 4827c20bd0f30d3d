/** @import { Centrifuge, PublicationContext as Publication, Subscription, SubscriptionEvents } from 'centrifuge' */
/** @import { SubscriptionOptions } from 'centrifuge' */

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
export class Channel {
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
   * @param {Event} event @param {SubscriptionEvents[Event]} listener added to every future subscription
   */
  on(event, listener) {
    this.#listeners.push([event, listener])
  }

  /**
   * To be called after the previous client has disconnected, so that nothing arrives twice.
   * @param {Centrifuge} client @param {boolean} binary whether payloads are bytes
   */
  attach(client, binary) {
    const since = this.#position
    const subscription = client.newSubscription(
      this.name,
      since ? { ...this.#options, since } : this.#options,
    )
    this.#subscription = subscription
    this.#binary = binary
    subscription.on('subscribed', ({ recoverable, streamPosition }) => {
      this.#position = recoverable && streamPosition ? { ...streamPosition } : undefined
    })
    subscription.on('publication', ({ offset }) => {
      if (this.#position && offset) this.#position.offset = offset
    })
    for (const [event, listener] of this.#listeners) {
      subscription.on(event, (/** @type {any} */ context) => {
        listener(event === 'publication' ? { ...context, data: read(context.data) } : context)
      })
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

  /** @param {number} limit @returns {Promise<Publication[]>} the last ones, oldest first */
  async last(limit) {
    const { publications } = await this.#now.history({ limit, reverse: true })
    return publications.reverse().map(publication => ({ ...publication, data: read(publication.data) }))
  }

  get #now() {
    if (!this.#subscription) throw new Error('no connection')
    return this.#subscription
  }
}
