// The contract of a socket server: HTTP routes, WebSockets and streams of one worker. The drivers are uws.js and
// node.js, tested by test/clients/server/conformance.js. Must not import other Halley modules.
//
// Connections and streams are driver handles, opaque except for `session`: wrapper objects would use memory.
//
// Text is sent as UTF-8, a lone surrogate as U+FFFD. An invalid HTTP header is logged, and the response is 500 without
// a body. Request header values have one character per byte, as in node:http (see `fromBytes`). uws on x64 drops
// non-ASCII bytes at both ends of a value. node rejects a non-ASCII request target, uws decodes it.

/**
 * @typedef {object} Connection one WebSocket, valid from `open` until its route's `close` is called
 * @property {any} session of the transport; null at first
 *
 * @typedef {object} Stream a streaming HTTP response, valid until its route's `close` is called
 * @property {any} session of the transport; null at first
 */

/**
 * One HTTP request and its response. `header()`, `headers()` and `query` MUST be read before the handler returns. All
 * methods are no-ops once the client has disconnected. On node, a pipelined request waits until the kernel has accepted
 * the previous response; on uws it ends the connection.
 * @typedef {object} Exchange
 * @property {string} method upper case
 * @property {string} path without the query
 * @property {string} query raw, '' if none
 * @property {(name: string) => string} header value of a request header (name in lower case), '' if absent
 * @property {() => string[]} headers as sent: name (in lower case), value, name, value ...
 * @property {() => string} remoteAddress
 * @property {boolean} gone the client disconnected, or the response is complete
 * @property {(limit: number, done: (body: Buffer | null) => void) => void} body collects the body, valid until `done`
 *   returns; null above `limit` bytes (a 413 MUST reach the client). Not called if the client disconnects first
 * @property {(status: number, headers: Record<string, string> | null, body: string | Uint8Array) => void} reply sends
 *   the complete response. Cuts a client that reads nothing of a large response for some 10 s (node: also of a small
 *   one). uws cuts a pipelining client that does not read, after 1 MB on average (`UnreadChecks`)
 * @property {{abandoned: () => void} | null} waiter `abandoned` is called once if a waiting client disconnects before
 *   the response. An object uses less memory than closures
 * @property {(status: number, headers: Record<string, string> | null, route: StreamRoute) => Stream | null} stream
 *   starts a chunked response, also after the handler has returned; null for HEAD or a disconnected client. The head is
 *   sent with the first data, on node no later than the end of this turn. Then the exchange is `gone`
 */

/**
 * @typedef {object} StreamRoute shared by the streams of one kind
 * @property {number} maxBuffered unread bytes of a client before `overflow` (exceeded by at most 64 KB plus the longest
 *   message). Excludes a message written when nothing was unread
 * @property {(stream: Stream) => void} overflow called soon after a `write`, never within; MUST call `end` or `cut`
 * @property {(stream: Stream) => void} close called once, after a disconnect or the requested end (or 5 s later). Never
 *   called within `write`, `end` or `cut`
 */

/**
 * @typedef {object} WebSocketRoute
 * @property {number} maxMessage bytes; a longer message, also in fragments, closes with 1009 and an empty reason. At
 *   most four times as much is buffered. uws reads up to that to send the close frame, and cuts above it
 * @property {number} maxBuffered unread bytes of a connection before `overflow` is called
 * @property {null | {level: number, minSize: number}} compression permessage-deflate without context takeover, from
 *   minSize bytes; null: never negotiated. maxMessage also limits the decompressed size. `level` is for node, which
 *   compresses a publication once; uws compresses per receiver at a fixed level
 * @property {string[]} protocols known subprotocols; the first one OFFERED by the client is selected
 * @property {(exchange: Exchange, protocol: string) => number | object} upgrade returns an HTTP status (>= 400; 503
 *   with `Retry-After`) or an UpgradeRefusal to refuse; any other object accepts, and is passed to `open`
 * @property {(connection: Connection, accepted: any) => void} open
 * @property {(connection: Connection, data: Buffer, binary: boolean) => void} message `data` is valid during the call
 * @property {(connection: Connection, code: number, reason: string) => void} close called once, also on server closes
 * @property {(connection: Connection) => void} overflow more than maxBuffered bytes are unread. Called soon after
 *   `send` or `publish`, never within, repeatedly until the route calls `close(connection, ...)`
 * @property {(connection: Connection) => void} pong a pong frame arrived
 */

/**
 * @typedef {object} SocketServer
 * @property {'uws' | 'node'} name
 * @property {string} fallback reason and fix if node replaces a configured uws, else ''
 * @property {(method: string, path: string, handler: (exchange: Exchange) => void) => void} route exact path, or a
 *   prefix ending with `/*`; method '*' is any method. More specific paths win, then exact methods. A handler that
 *   throws causes a 500
 * @property {(path: string, route: WebSocketRoute) => void} websocket GET without upgrade headers on this path: 400
 * @property {(tls: import('./tls.js').ServerTls) => () => void} prepareTls reads a new certificate; the returned
 *   function applies it to new connections. uws only checks that it is valid. Throws one Error
 * @property {(host: string, port: number) => Promise<void>} listen all workers on the same port: uws with one socket
 *   each (SO_REUSEPORT), node with one shared by `cluster`. Rejects with one Error. Repeatable after `stopListening`
 * @property {(connection: Connection, data: string | Uint8Array, binary: boolean) => void} send in order with earlier
 *   publications. Never throws, even on a closed connection
 * @property {(connection: Connection) => void} ping
 * @property {(connection: Connection, topic: string) => void} subscribe
 * @property {(connection: Connection, topic: string) => void} unsubscribe
 * @property {(topic: string, data: string | Uint8Array, binary: boolean) => void} publish to all subscribers, in order
 *   with `send` and other topics. `data` may be reused right after the call
 * @property {(connection: Connection, work: () => void) => void} cork sends all messages of `work` in one write
 * @property {(connection: Connection) => number} buffered bytes not yet passed to the kernel
 * @property {(connection: Connection, code: number, reason: string) => void} close sends buffered data, then a close
 *   frame with at most 123 bytes of reason; cuts a peer that does not respond within 5 s. Afterwards only the route's
 *   `close` is called, once, now or later
 * @property {(connection: Connection) => void} terminate cuts the connection without a close frame
 * @property {(client: Connection | Stream) => string} remoteAddress '' after the close
 * @property {(stream: Stream, data: string | Uint8Array) => void} write whole messages, never split between chunks.
 *   All writes of a turn are sent in one chunk. `data` MUST NOT change afterwards. Never throws. Writing the same data
 *   to many streams takes at most a few hundred ns each
 * @property {(stream: Stream) => void} flush sends the written data now, in one chunk; may call `overflow` within
 * @property {(stream: Stream, data: string | Uint8Array) => void} end cuts a client that does not read within 5 s
 * @property {(stream: Stream) => number} unread bytes not yet passed to the kernel, as far as the driver knows
 * @property {(stream: Stream) => void} cut ends the connection immediately and drops unsent data
 * @property {() => {bytes: number, largest: number}} backlog unread bytes: the sum and maximum of all clients. May be a
 *   second old, and omit closing clients
 * @property {() => void} stopListening accepts no new connections; existing ones stay open
 * @property {() => void} drain stops listening soon, permanently; every response ends its connection
 * @property {number} unanswered HTTP requests without a response or a `waiter`; read only
 * @property {() => void} shutdown terminates remaining connections and frees the port
 */

/** Retry delay of refused clients, s; random, to spread the retries. */
const RETRY_AFTER = { min: 2, max: 8 }

/** @returns {Record<string, string>} a header of responses with status 503 */
export function retryAfter() {
  const { min, max } = RETRY_AFTER
  return { 'Retry-After': String(min + Math.floor(Math.random() * (max - min + 1))) }
}

export class UpgradeRefusal {
  /** @param {number} status >= 400 @param {Readonly<Record<string, string>>} headers @param {string} body */
  constructor(status, headers, body) {
    this.status = status
    this.headers = headers
    this.body = body
  }
}

/** Unread bytes: the sum and maximum of all clients. */
export class Backlog {
  bytes = 0
  largest = 0

  /** @param {number} bytes */
  add(bytes) {
    this.bytes += bytes
    if (bytes > this.largest) this.largest = bytes
  }
}
