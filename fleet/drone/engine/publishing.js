import { startNumber } from './ledger.js'
import { Publisher } from './publisher.js'

/** Publishers' starts whose books are kept. */
const BOOKS = 8
/** ms for what a publisher has under way when other settings come. */
const DRAIN = 5000

/** Which publisher there is, as the settings have it, and the books of those that were. */
export class Publishing {
  #engine
  /** @type {Publisher | null} */
  #publisher = null
  #lasting = ''
  /** @type {import('./ledger.js').Books[]} */
  #books = []
  /** @type {Promise<any>} */
  #ending = Promise.resolve()

  /** @param {import('./engine.js').Engine} engine */
  constructor(engine) {
    this.#engine = engine
  }

  /** @param {import('../../schema.js').Settings} settings */
  apply(settings) {
    const { publish, publishFrom: from, targets, user } = settings
    const publishes = publish && publish.rate > 0 && from > 0
    const wanted = publishes ? { ...settings, publish } : null
    // With others of these another publisher begins, whose sequences begin with 1; of the rest this one learns.
    const lasting = publishes
      ? JSON.stringify([publish.via, publish.channels, publish.part, publish.parts, from, targets, user])
      : ''
    if (lasting !== this.#lasting) {
      this.stop(DRAIN)
      this.#lasting = lasting
      if (from > 0) this.#books = this.#books.filter(({ start }) => start >= startNumber(from))
      if (wanted) {
        this.#publisher = new Publisher(this.#engine, wanted)
        this.#books = [...this.#books.slice(1 - BOOKS), this.#publisher.books]
      }
    }
    if (wanted) this.#publisher?.change(wanted)
  }

  /** @returns {import('../../schema.js').Ledger[]} of all publishers here since publishing began */
  ledgers() {
    return this.#books.map(books => books.toLedger())
  }

  /**
   * @param {number} drain ms for what is under way
   * @returns {Promise<any>} when nothing is under way any more
   */
  stop(drain) {
    this.#ending = Promise.all([this.#ending, this.#publisher?.stop(drain)])
    this.#publisher = null
    this.#lasting = ''
    return this.#ending
  }
}
