import { SCHEMA_VERSION } from '../../src/stats/schema.js'
import { Lines } from './lines.js'
import { readMessage } from './message.js'
import { RETRY } from './source.js'

/**
 * @typedef {import('./source.js').SourceEvent} SourceEvent
 */

/**
 * What all sources share: bytes become messages, and what ends is begun again.
 *
 *   connecting --hello--> open --ended--> lost --(250 ms ... 5 s)--> (another try) --hello--> open
 *        |                                  ^
 *        +-- newer schema, wrong key --> refused --(30 s)--> (another try)
 */
export class Link {
  /** @type {(event: SourceEvent) => void} */
  #listener = () => {}
  /** @type {NodeJS.Timeout | null} */
  #timer = null
  #lines = new Lines()
  /** ms @type {number} */
  #wait = RETRY.first
  #greeted = false
  #closed = true
  #connect

  /** @param {() => void} connect begins a try; `ended` or `refused` end it */
  constructor(connect) {
    this.#connect = connect
  }

  get closed() {
    return this.#closed
  }

  /** @param {(event: SourceEvent) => void} listener */
  start(listener) {
    this.#listener = listener
    this.#closed = false
    listener({ type: 'link', state: 'connecting', text: '' })
    this.#try()
  }

  close() {
    this.#closed = true
    if (this.#timer) clearTimeout(this.#timer)
  }

  #try() {
    this.#timer = null
    this.#lines = new Lines()
    this.#greeted = false
    this.#connect()
  }

  /**
   * @param {Buffer} chunk of the stream
   * @throws {Error} when it is no stream of statistics, or not one that we understand; the try is to be ended with its message
   */
  data(chunk) {
    this.#lines.push(chunk, line => {
      if (this.#closed) return
      const message = readMessage(line)
      if (message?.type === 'hello') this.#greet(message)
      if (message !== null && (this.#greeted || message.type === 'done'))
        this.#listener({ type: 'message', message })
    })
  }

  /** @param {import('../../src/stats/schema.js').Hello} hello */
  #greet({ schema }) {
    if (schema > SCHEMA_VERSION) {
      throw new RefusedError(
        `the gateway speaks version ${schema} of the statistics, this dashboard knows ${SCHEMA_VERSION}: it needs the gateway's own halley`,
      )
    }
    this.#greeted = true
    this.#wait = RETRY.first
    this.#listener({ type: 'link', state: 'open', text: '' })
  }

  /**
   * The try has ended, however far it had come.
   * @param {Error | string} reason
   */
  ended(reason) {
    if (this.#closed || this.#timer) return
    const refused = reason instanceof RefusedError
    const text = typeof reason === 'string' ? reason : reason.message
    const wait = refused ? (reason.wait ?? RETRY.refused) : this.#wait
    if (!refused) this.#wait = Math.min(RETRY.most, this.#wait * 2)
    this.#timer = setTimeout(() => this.#try(), wait)
    this.#listener({ type: 'link', state: refused ? 'refused' : 'lost', text })
  }

  /**
   * Answers a command in the gateway's place.
   * @param {string} command
   * @param {string | null} error
   */
  answer(command, error) {
    if (!this.#closed) this.#listener({ type: 'message', message: { type: 'done', command, error } })
  }
}

/** Trying again soon would not help. */
export class RefusedError extends Error {
  /**
   * @param {string} message
   * @param {number | null} [wait] ms until the next try
   */
  constructor(message, wait = null) {
    super(message)
    this.wait = wait
  }
}
