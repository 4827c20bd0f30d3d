import { ApiCarrier, ClientCarrier } from './carriers.js'
import { startNumber } from './ledger.js'
import { Publisher } from './publisher.js'

/** @typedef {import('../../schema.js').Settings} Settings */
/** @typedef {import('../transport/dialer.js').Dialer} Dialer */

/** Publishers' starts whose books are kept. */
const BOOKS = 8
/** ms for what a publisher has under way when other settings come, and when all ends. */
const DRAIN = 5000
const LAST_DRAIN = 1000
/** ms after which a publisher asks for the gateway's time again: it has no other connections that would be told. */
const ASK_TIME = 5000

/**
 * @typedef {object} PublishingOptions
 * @property {number} machine
 * @property {string} [apiKey]
 * @property {import('./clock.js').Clock} clock
 * @property {import('./figures.js').Figures} figures
 * @property {(settings: Settings, listener: import('../transport/dialer.js').Listener) => Dialer} dialer for WebSockets
 * @property {(number: number) => object | null} token parameters of a connect request
 */

/** Which publisher there is, as the settings have it, and the books of those that were. */
export class Publishing {
  #options
  /** @type {Publisher | null} */
  #publisher = null
  #lasting = ''
  /** @type {import('./ledger.js').Books[]} */
  #books = []
  /** @type {Promise<any>} */
  #ending = Promise.resolve()
  /** @type {ClientCarrier | null} asks for the time */
  #asker = null
  #asked = 0

  /** @param {PublishingOptions} options */
  constructor(options) {
    this.#options = options
  }

  /** @param {Settings} settings */
  apply(settings) {
    const { publish, publishFrom: from, targets, user, total } = settings
    const wanted = publish && publish.rate > 0 && from > 0 ? publish : null
    // With others of these another publisher begins, whose sequences begin with 1; of the rest this one learns.
    const lasting = wanted
      ? JSON.stringify([wanted.via, wanted.channels, wanted.part, wanted.parts, from, targets, user])
      : ''
    if (lasting === this.#lasting) {
      if (wanted) this.#publisher?.change(wanted, total)
      return
    }
    this.#end(DRAIN)
    this.#lasting = lasting
    if (from > 0) this.#books = this.#books.filter(({ start }) => start >= startNumber(from))
    if (!wanted) return
    const carrier = this.#carriers(settings, wanted)
    this.#publisher = new Publisher({ ...this.#options, publish: wanted, from, total, carrier })
    this.#books = [...this.#books.slice(1 - BOOKS), this.#publisher.books]
  }

  /** @param {number} drain */
  #end(drain) {
    this.#ending = Promise.all([this.#ending, this.#publisher?.stop(drain)])
    this.#publisher = null
    this.#lasting = ''
    this.#asker?.close()
    this.#asker = null
  }

  /**
   * @param {Settings} settings
   * @param {import('../../schema.js').Publish} publish
   * @returns {(lane: number) => import('./lane.js').Carrier}
   */
  #carriers(settings, { via, part }) {
    const { clock, apiKey = '', token } = this.#options
    /** @type {ClientCarrier[]} */
    const carriers = []
    const dialer = this.#options.dialer(settings, {
      message: ({ slot }, buffer, start, end) =>
        carriers[slot].message(JSON.parse(buffer.toString('utf8', start, end))),
      closed: (connection, code, reason) => carriers[connection.slot].closed(connection, reason || `${code}`),
    })
    const client = (/** @type {number} */ slot) => {
      let dialled = 0
      carriers[slot] = new ClientCarrier(
        () => {
          dialled = clock.now()
          return dialer.dial(slot, part + slot, { ...token(part + slot) })
        },
        time => clock.learn(time, dialled, clock.now()),
      )
      return carriers[slot]
    }
    this.#asker = client(0)
    return lane =>
      via === 'api' ? new ApiCarrier(dialer, settings.targets, part + lane, apiKey) : client(lane + 1)
  }

  /** @param {number} now */
  tick(now) {
    if (this.#asker === null || now - this.#asked < ASK_TIME) return
    this.#asked = now
    this.#asker.close()
    this.#asker.open()
  }

  /** @returns {import('../../schema.js').Ledger[]} of all publishers here since publishing began */
  ledgers() {
    return this.#books.map(books => books.toLedger())
  }

  /** @returns {Promise<any>} when nothing is under way any more */
  stop() {
    this.#end(LAST_DRAIN)
    return this.#ending
  }
}
