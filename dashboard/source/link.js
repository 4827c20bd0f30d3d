import { SCHEMA_VERSION } from '../../src/metrics/schema.js'

/** @import { Hello, StatsCommand, StatsMessage } from '../../src/metrics/schema.js' */

/**
 * The source of the figures. An implementation MUST reconnect forever after `start`, MUST report a link change
 * before the messages received over it, MUST reply to each command with `done` (its own if the gateway sends none),
 * and MUST NOT keep the process alive after `close`. It MUST NOT throw, whatever the gateway sends.
 * @typedef {object} Source
 * @property {string} name path or URL, as shown
 * @property {(listener: (event: SourceEvent) => void) => void} start
 * @property {(command: StatsCommand) => void} send
 * @property {() => void} close
 *
 * @typedef {{type: 'message', message: StatsMessage} | {type: 'link', state:
 *   LinkState, text: string}} SourceEvent `text`: why the link is lost or refused, one line
 *
 * @typedef {'connecting' | 'open' | 'lost' | 'refused'} LinkState open: a hello was received; refused: needs the
 *   user (another key, a newer dashboard); it is retried all the same
 */

/** Delay before a reconnect, ms: doubles from `first` to `most`. */
const RETRY = Object.freeze({ first: 250, most: 5000, refused: 30_000 })

/**
 * Common to all sources: parses bytes into messages, and reconnects.
 *
 *   connecting --hello--> open --ended--> lost --(250 ms ... 5 s)--> (next attempt) --hello--> open
 *        |                                  ^
 *        +-- newer schema, wrong key --> refused --(30 s)--> (next attempt)
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

  /** @param {() => void} connect begins an attempt; `ended` ends it */
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
   * @param {Buffer} chunk
   * @throws {Error} not a stats stream, or an unsupported version; the caller passes it to `ended`
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

  /** @param {Hello} hello */
  #greet({ schema }) {
    if (schema > SCHEMA_VERSION) {
      throw new RefusedError(
        `the gateway's stats have version ${schema}, this dashboard supports ${SCHEMA_VERSION}: use the halley of the gateway`,
      )
    }
    this.#greeted = true
    this.#wait = RETRY.first
    this.#listener({ type: 'link', state: 'open', text: '' })
  }

  /** Ends the attempt, at any stage. @param {Error | string} reason */
  ended(reason) {
    if (this.#closed || this.#timer) return
    const refused = reason instanceof RefusedError
    const text = typeof reason === 'string' ? reason : reason.message
    const wait = refused ? (reason.wait ?? RETRY.refused) : this.#wait
    if (!refused) this.#wait = Math.min(RETRY.most, this.#wait * 2)
    this.#timer = setTimeout(() => this.#try(), wait)
    this.#listener({ type: 'link', state: refused ? 'refused' : 'lost', text })
  }

  /** Replies to a command in place of the gateway. @param {string} command @param {string | null} error */
  answer(command, error) {
    if (!this.#closed) this.#listener({ type: 'message', message: { type: 'done', command, error } })
  }
}

/** Thrown if an early retry would not help. */
export class RefusedError extends Error {
  /** @param {string} message @param {number | null} [wait] ms until the next attempt */
  constructor(message, wait = null) {
    super(message)
    this.wait = wait
  }
}

/** Bytes. A hello with the history of many workers has several megabytes. */
const MAX_LINE = 64 * 1024 * 1024

const NEWLINE = 10

/** Splits bytes into lines; buffers at most one. */
export class Lines {
  /** @type {Buffer[]} of the unfinished line */
  #parts = []
  #length = 0
  #most

  /** @param {number} [most] bytes of a line */
  constructor(most = MAX_LINE) {
    this.#most = most
  }

  /**
   * @param {Buffer} chunk @param {(line: string) => void} onLine
   * @throws {Error} the line is too long; nothing may be pushed after it
   */
  push(chunk, onLine) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end))
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
      this.#parts = []
      this.#length = 0
      start = end + 1
      if (line.length > 0) onLine(line.toString())
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** @param {Buffer} part */
  #keep(part) {
    this.#length += part.length
    if (this.#length > this.#most) throw new Error('not a Halley stats stream: a line is too long')
    this.#parts.push(part)
  }
}

/** @param {any} value */
const isObject = value => Boolean(typeof value === 'object' && value !== null)

/** @param {any} snapshot */
const isSnapshot = snapshot =>
  isObject(snapshot) &&
  typeof snapshot.time === 'number' &&
  Array.isArray(snapshot.workers) &&
  Array.isArray(snapshot.events) &&
  ['node', 'primary', 'totals', 'machine', 'capacity'].every(name => isObject(snapshot[name]))

/** @type {Record<string, (message: any) => boolean>} */
const SHAPES = {
  hello: ({ schema, node, history, events }) =>
    typeof schema === 'number' && isObject(node) && Array.isArray(history) && Array.isArray(events),
  snapshot: ({ snapshot }) => isSnapshot(snapshot),
  log: ({ line }) => typeof line === 'string',
  done: ({ command, error }) => typeof command === 'string' && (error === null || typeof error === 'string'),
}

/** @param {string} line @returns {StatsMessage | null} null: an unknown type @throws {Error} not a message */
export function readMessage(line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    throw new Error('not a Halley stats stream: a line is not JSON')
  }
  if (!isObject(message) || typeof message.type !== 'string')
    throw new Error('not a Halley stats stream: a line is not a message')
  const fits = Object.hasOwn(SHAPES, message.type) ? SHAPES[message.type] : null
  if (fits === null) return null
  if (!fits(message)) throw new Error(`not a Halley stats stream: invalid ${message.type}`)
  return message
}
