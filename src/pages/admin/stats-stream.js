import { JSON_HEADERS, replyError } from './answers.js'

/** @import { Exchange, SocketServer, Stream, StreamRoute } from '../../clients/server/contract.js' */
/** @import { Hello, StatsMessage } from '../../metrics/schema.js' */
/** @import { StatsView } from './index.js' */

/** @typedef {{stop: () => void, timer: NodeJS.Timeout | undefined}} Reader the `session` of a stream */

/** Concurrent readers of one worker. */
const MAX_READERS = 16
/** Unread bytes of a reader. */
const MAX_BUFFERED = 16 * 1024 * 1024
/** Maximum bytes of the first line; bounds its history. */
const MAX_HELLO = 4 * 1024 * 1024
const STREAM_HEADERS = Object.freeze({
  ...JSON_HEADERS,
  'Content-Type': 'application/x-ndjson',
  // Buffering proxies would delay the lines.
  'X-Accel-Buffering': 'no',
})

/** @param {Hello} hello @returns {string} with the latest history that fits */
function helloText({ history, ...rest }) {
  const texts = []
  let bytes = 0
  for (let at = history.length - 1; at >= 0; at--) {
    const text = JSON.stringify(history[at])
    bytes += text.length
    if (bytes > MAX_HELLO) break
    texts.push(text)
  }
  const head = JSON.stringify(rest)
  return `${head.slice(0, -1)},"history":[${texts.reverse().join(',')}]}`
}

/** @param {StatsMessage} message */
const textOf = message => (message.type === 'hello' ? helloText(message) : JSON.stringify(message))

/** The stats stream over HTTP: JSON lines, until the token expires. */
export class StatsStream {
  #view
  #server
  #clock
  #readers = 0
  /** @type {StreamRoute} */
  #route = {
    maxBuffered: MAX_BUFFERED,
    overflow: stream => this.#server.cut(stream),
    close: ({ session }) => {
      this.#readers--
      if (session === null) return
      session.stop()
      clearTimeout(session.timer)
    },
  }

  /** @param {{view: StatsView, server: SocketServer, clock: () => number}} parts clock: ms */
  constructor({ view, server, clock }) {
    this.#view = view
    this.#server = server
    this.#clock = clock
  }

  /** @param {Exchange} exchange @param {number} expires unix ms */
  open(exchange, expires) {
    if (this.#readers >= MAX_READERS) {
      return replyError(exchange, 503, 'too many stats clients', { 'Retry-After': '5' })
    }
    const stream = exchange.stream(200, STREAM_HEADERS, this.#route)
    if (stream === null) return
    this.#readers++
    const stop = this.#view.watch(message => this.#server.write(stream, `${textOf(message)}\n`))
    const timer = setTimeout(() => this.#server.end(stream, ''), expires - this.#clock())
    stream.session = /** @type {Reader} */ ({ stop, timer })
  }
}
