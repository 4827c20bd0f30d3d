/** @typedef {import('./ledger.js').Books} Books */

/**
 * @typedef {object} Message
 * @property {number} at place in the books
 * @property {number} time Unix ms, when it is meant to be sent
 * @property {number} sequence 0: has none yet
 * @property {boolean} again was sent before, and may have been published
 *
 * @typedef {{code: number, message?: string, temporary?: boolean} | undefined} Fault what a command was answered
 *
 * @typedef {object} Carrier brings publications to the target
 * @property {(publications: string[], done: import('./carriers.js').Done) => void} send JSON of publish requests
 * @property {() => void} close
 */

/** Messages that wait. */
const ROOM = 1024
/** Of one request: a WebSocket message may have 65,536 bytes, if nothing else is configured. */
const BATCH = 256
const BATCH_BYTES = 56_000
/** ms */
const BACKOFF_MIN = 100
const BACKOFF_MAX = 5000
/** Answers that say something about the moment, not about the message: internal error, too many requests. */
const PASSING = [100, 111]

/**
 * Publishes messages of some subjects in order: what is due goes as one batch, and only one is under way, so that nothing overtakes
 * another one on the way to the target.
 *
 * A message that was not confirmed is published again, with its sequence and its time, until it is: marked, because it may be there
 * already. One that is refused for good gives its sequence back, unless a later one of its subject is out; then there is a hole that
 * is a true one, and both books say so: `unpublished` here, `lost` there.
 */
export class Lane {
  #books
  #carrier
  #host
  /** @type {Message[]} */
  #queue = []
  /** @type {Message[]} under way, or between two attempts */
  #batch = []
  #busy = false
  #closed = false
  #failures = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {Books} books
   * @param {Carrier} carrier
   * @param {import('./publisher.js').Publisher} host
   */
  constructor(books, carrier, host) {
    this.#books = books
    this.#carrier = carrier
    this.#host = host
  }

  get full() {
    return this.#queue.length >= ROOM
  }

  get idle() {
    return !this.#busy && this.#queue.length === 0
  }

  /** @param {number} at place in the books @param {number} time Unix ms */
  add(at, time) {
    this.#queue.push({ at, time, sequence: 0, again: false })
  }

  /** Sends what waits, if nothing is under way. */
  flush() {
    if (this.#busy || this.#queue.length === 0) return
    const { sequences } = this.#books
    const texts = []
    let bytes = 0
    while (texts.length < this.#queue.length && texts.length < BATCH) {
      const message = this.#queue[texts.length]
      const sequence = message.sequence || sequences[message.at] + 1
      const channel = this.#books.name(message.at)
      const data = this.#host.payload(message, sequence, channel)
      bytes += data.length + channel.length + 50
      if (texts.length > 0 && bytes > BATCH_BYTES) break
      if (message.sequence === 0) message.sequence = sequences[message.at] = sequence
      texts.push(`{"channel":${JSON.stringify(channel)},"data":${data}}`)
    }
    this.#busy = true
    this.#batch = this.#queue.splice(0, texts.length)
    this.#carrier.send(texts, (faults, reason) => this.#answered(faults, reason))
  }

  /**
   * @param {Fault[] | null} faults
   * @param {string} reason why there are none
   */
  #answered(faults, reason) {
    if (this.#closed) return
    /** @type {Message[]} */
    const refused = []
    /** @type {Message[]} */
    const repeat = []
    for (const [n, message] of this.#batch.entries()) {
      const fault = faults?.[n]
      message.again = true
      if (fault) reason = `${fault.code} ${fault.message ?? ''}`
      if (faults && !fault) this.#host.published(message)
      else if (!fault || fault.temporary || PASSING.includes(fault.code)) repeat.push(message)
      else {
        refused.push(message)
        this.#host.unpublished(reason, 1)
      }
    }
    this.#batch = []
    this.#giveBack(refused)
    this.#queue.unshift(...repeat)
    if (repeat.length > 0) {
      this.#host.fault(reason)
      const delay = Math.min(BACKOFF_MAX, BACKOFF_MIN * 2 ** this.#failures++)
      this.#timer = setTimeout(() => this.#free(), delay * (0.5 + Math.random() / 2))
      return
    }
    this.#failures = 0
    this.#free()
  }

  #free() {
    this.#busy = false
    this.#host.pump()
    this.flush()
  }

  /** @param {Message[]} messages that are given up */
  #giveBack(messages) {
    const { sequences } = this.#books
    for (const { at, sequence } of messages.reverse())
      if (sequences[at] === sequence && sequence > 0) sequences[at]--
  }

  /** What was not confirmed is given up. */
  close() {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#carrier.close()
    const left = [...this.#batch, ...this.#queue]
    if (left.length > 0) this.#host.unpublished('given up', left.length)
    this.#giveBack(left)
    this.#queue = this.#batch = []
  }
}
