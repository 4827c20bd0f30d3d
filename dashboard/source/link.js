import { SCHEMA_VERSION } from '../../src/stats/schema.js'

/**
 * Where the figures come from. An implementation MUST connect again for ever after `start`, MUST tell a change of its link
 * before what came over it, MUST answer each command by a `done` message, its own if need be, and MUST NOT hold the process
 * open after `close`. It MUST NOT throw at its listener for anything that the other side does.
 *
 * @typedef {object} Source
 * @property {string} name path or URL, for people
 * @property {(listener: (event: SourceEvent) => void) => void} start
 * @property {(command: import('../../src/stats/schema.js').StatsCommand) => void} send
 * @property {() => void} close
 *
 * @typedef {{type: 'message', message: import('../../src/stats/schema.js').StatsMessage}
 *   | {type: 'link', state: LinkState, text: string}} SourceEvent `text`: why it is lost or refused, one line
 *
 * @typedef {'connecting' | 'open' | 'lost' | 'refused'} LinkState open: a hello has come; refused: trying again may help, but
 *   somebody should do something (another key, a newer dashboard)
 */

/** ms until the first try again, and at most; it doubles in between. */
const RETRY = Object.freeze({ first: 250, most: 5000, refused: 30_000 })

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

/** A hello with the history of many workers is some megabytes. */
const MAX_LINE = 64 * 1024 * 1024

const NEWLINE = 10

/**
 * Bytes in, lines out, without ever keeping more than one line.
 */
export class Lines {
  /** @type {Buffer[]} of the line that has not ended yet */
  #parts = []
  #length = 0
  #most

  /** @param {number} [most] bytes of a line */
  constructor(most = MAX_LINE) {
    this.#most = most
  }

  /**
   * @param {Buffer} chunk
   * @param {(line: string) => void} take
   * @throws {Error} for a line that is too long; nothing may be pushed after it
   */
  push(chunk, take) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end))
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
      this.#parts = []
      this.#length = 0
      start = end + 1
      if (line.length > 0) take(line.toString())
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
  }

  /** @param {Buffer} part */
  #keep(part) {
    this.#length += part.length
    if (this.#length > this.#most) throw new Error('this is no stream of statistics: a line is too long')
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

/**
 * @param {string} line
 * @returns {import('../../src/stats/schema.js').StatsMessage | null} null: of a kind that this dashboard does not know
 * @throws {Error} when it is no message at all
 */
export function readMessage(line) {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    throw new Error('this is no stream of statistics: a line is not JSON')
  }
  if (!isObject(message) || typeof message.type !== 'string')
    throw new Error('this is no stream of statistics: a line is no message')
  const fits = Object.hasOwn(SHAPES, message.type) ? SHAPES[message.type] : null
  if (fits === null) return null
  if (!fits(message)) throw new Error(`this is no stream of statistics: a strange ${message.type}`)
  return message
}
