// The contract of a socket server: HTTP routes, WebSockets and streams of one worker. Two drivers implement it: uws.js
// and node.js. May import nothing of Halley. test/clients/server/conformance.js tests every promise below on both drivers.
//
// A connection or stream (an HTTP response that continues) is the driver's own handle, opaque to others except for its
// `session` property, which belongs to the transport. There is no wrapper: with a million connections objects count.
//
// Text that goes out (bodies, messages, values of headers, close reasons) is sent as UTF-8; half a surrogate pair is sent
// as U+FFFD. A header that HTTP cannot carry is logged, and the answer is 500 without a body. Values of request headers
// have a character for each byte, as in node:http: they can be sent on unchanged, and `fromBytes` decodes UTF-8. uws on
// x64 drops bytes beyond ASCII at both ends of a value. node refuses a request target with bytes beyond ASCII, uws
// decodes it as UTF-8.

/**
 * @typedef {object} Connection one WebSocket, valid from `open` until `close` has been called
 * @property {any} session for the transport; null at first
 */

/**
 * One HTTP request and its answer. `header()`, `headers()` and `query` MUST be read before the handler returns;
 * everything else also later.
 * Every method is a no-op once the client has left. A request pipelined behind an unanswered one waits on node until
 * the kernel has taken that answer, but ends the connection on uws, whose parser cannot keep it.
 * @typedef {object} Exchange
 * @property {string} method upper case
 * @property {string} path without the query
 * @property {string} query the raw query string, '' if none
 * @property {(name: string) => string} header value of a request header (name in lower case), '' if absent
 * @property {() => string[]} headers all of the request, as sent: name (in lower case), value, name, value ...
 * @property {() => string} remoteAddress as text
 * @property {boolean} gone whether the client has left or the answer is complete
 * @property {(limit: number, done: (body: Buffer | null) => void) => void} body collects the request's body; `null`
 *   if it exceeds `limit` bytes (an answer may still be sent: the driver MUST let a 413 reach the client).
 *   Not called when the client leaves first. The Buffer is valid only until `done` returns
 * @property {(status: number, headers: Record<string, string> | null, body: string | Uint8Array) => void} reply sends
 *   the complete answer. A client that reads nothing of a large one for some 10 s is cut, on node also of small ones. On
 *   uws, one that pipelines requests and does not read is cut once the kernel takes no more, on average with 1 MB unread
 *   besides (`UnreadChecks`)
 * @property {{abandoned: () => void} | null} waiter may be set while the client waits for its answer: `abandoned` is
 *   called once if the client leaves before the answer. An object, because many waiting closures need more memory
 * @property {(status: number, headers: Record<string, string> | null, route: StreamRoute) => Stream | null} stream
 *   begins a chunked answer; null if the client has left, and for HEAD, which is answered with the head alone. The head
 *   leaves with the first data; on node only, it leaves at the end of this turn of the event loop at the latest (uws
 *   cannot end a head without data). May be called after the handler has returned, also from the `done` of `body`. From
 *   then on the exchange is `gone`
 */

/**
 * @typedef {object} Stream an HTTP response that continues, valid until `close` of its route has been called
 * @property {any} session for the transport; null at first
 */

/**
 * @typedef {object} StreamRoute shared by the streams of one kind
 * @property {number} maxBuffered unread bytes of a client before `overflow` is called (the driver may be late by
 *   what it cannot see of its library's and the kernel's buffers: at most 64 KB and the longest message). A message
 *   that was written when nothing was unread does not count, however long it is
 * @property {(stream: Stream) => void} overflow the client has more than maxBuffered bytes unread. Never called from
 *   within `write`, but soon after; the route answers with `end` or `cut`
 * @property {(stream: Stream) => void} close called exactly once for each stream, after its client has left or its
 *   requested end is complete (or 5 s later). Never called from within `write`, `end` or `cut`
 */

/**
 * @typedef {object} WebSocketRoute
 * @property {number} maxMessage bytes; a longer message, also in fragments, closes with 1009 and an empty reason. At most
 *   four times as much is kept of an unfinished message. uws cannot send a close frame at the header of a message: it
 *   reads up to four times maxMessage for that, and cuts the connection of a longer one. Both call `close` with 1009
 * @property {number} maxBuffered unread bytes of a connection before `overflow` is called
 * @property {null | {level: number, minSize: number}} compression permessage-deflate is offered (client and server
 *   without context takeover); messages below minSize bytes are not compressed. null: never negotiated. maxMessage also
 *   limits the decompressed size.
 *   `level` is for node, which compresses a publication once; uws compresses for each receiver, at its own level
 * @property {string[]} protocols known subprotocols. The first known one OFFERED by the client is chosen; nothing
 *   offered, an empty header, or only unknown ones: no subprotocol in the answer
 * @property {(exchange: Exchange, protocol: string) => number | object} upgrade an HTTP status (>= 400) refuses the
 *   upgrade with that status, 503 with `Retry-After`; an UpgradeRefusal refuses it with a body; any other object
 *   accepts it and is passed to `open`
 * @property {(connection: Connection, accepted: any) => void} open
 * @property {(connection: Connection, data: Buffer, binary: boolean) => void} message `data` is valid only during the
 *   call
 * @property {(connection: Connection, code: number, reason: string) => void} close called exactly once for each opened
 *   connection, also after a close by the server (then with the server's code)
 * @property {(connection: Connection) => void} overflow the connection has more than maxBuffered bytes unread. Never
 *   called from within `send` or `publish`, but soon after, repeatedly until the route answers with
 *   `close(connection, ...)`
 * @property {(connection: Connection) => void} pong a WebSocket pong frame arrived
 */

/**
 * @typedef {object} SocketServer
 * @property {'uws' | 'node'} name
 * @property {string} fallback why it is node although uws was wanted: a sentence with the cure; '' if it was not
 * @property {(method: string, path: string, handler: (exchange: Exchange) => void) => void} route exact path, or a
 *   prefix when it ends with `/*`. Method '*' is every method. More specific paths win, an exact method wins over '*'.
 *   No route: 404. A handler that throws is answered with 500, and nothing else happens
 * @property {(path: string, route: WebSocketRoute) => void} websocket GET without upgrade headers on this path: 400
 * @property {(tls: import('./tls.js').ServerTls) => () => void} prepareTls of a server with TLS: reads another
 *   certificate. The returned function uses it for new connections; those that are open go on. uws cannot: there it
 *   shows only that a new server can use it. Throws one clear Error
 * @property {(host: string, port: number) => Promise<void>} listen every worker listens on the same port: uws
 *   with sockets of its own (SO_REUSEPORT, several accept queues), node with one that `cluster` shares among the workers.
 *   Rejects with one clear Error. May be called again after `stopListening`
 * @property {(connection: Connection, data: string | Uint8Array, binary: boolean) => void} send in order with earlier
 *   publications to the connection. Never throws, also not on a closed connection
 * @property {(connection: Connection) => void} ping a WebSocket ping frame
 * @property {(connection: Connection, topic: string) => void} subscribe
 * @property {(connection: Connection, topic: string) => void} unsubscribe
 * @property {(topic: string, data: string | Uint8Array, binary: boolean) => void} publish to all subscribers of the
 *   topic, each in order with `send` and with its other topics. `data` may be reused by the caller right after the call
 * @property {(connection: Connection, work: () => void) => void} cork sends all messages of `work` to the connection in
 *   one write
 * @property {(connection: Connection) => number} buffered bytes not yet given to the kernel
 * @property {(connection: Connection, code: number, reason: string) => void} close sends what is buffered, then a close
 *   frame, whose reason is cut to 123 bytes between two characters; a peer that does not read or answer is cut after 5 s, so that no descriptor and no memory remain. After that
 *   call nothing more is sent, `message` and `overflow` are not called again, and `close` is called once, now or later
 * @property {(connection: Connection) => void} terminate cuts the connection without a close frame
 * @property {(client: Connection | Stream) => string} remoteAddress of an open connection or stream, as text; '' after
 *   its end
 * @property {(stream: Stream, data: string | Uint8Array) => void} write whole messages; no chunk border is inside a
 *   message. All writes to a stream in one turn of the event loop leave together, in one chunk. `data` MUST NOT be
 *   changed afterwards. Never throws, also not on a closed stream. The same data may be written to many streams, at no
 *   more than a few hundred ns each
 * @property {(stream: Stream) => void} flush sends the data written to the stream now, in a chunk of its own.
 *   `overflow` may be called from within
 * @property {(stream: Stream, data: string | Uint8Array) => void} end writes data ('' = nothing), then ends the
 *   response. A client that does not read is cut after 5 s
 * @property {(stream: Stream) => number} unread bytes not yet given to the kernel, as far as the driver knows
 * @property {(stream: Stream) => void} cut ends the connection at once and drops unsent data
 * @property {() => {bytes: number, largest: number}} backlog unread bytes of all connections and streams, and of the
 *   one with the most. Cheap: it may be a second old, and omit clients that are being closed
 * @property {() => void} stopListening accepts no new connections; existing ones stay
 * @property {() => void} drain stops listening for good, soon after the call. Existing connections stay, but every
 *   answer from now on ends its connection (`Connection: close`)
 * @property {number} unanswered HTTP requests without an answer, except those with a `waiter`; read only
 * @property {() => void} shutdown terminates what is left and frees the port
 */

/** Seconds after which a refused client should try again, at least and at most: not all of them at the same moment. */
const RETRY_AFTER = { least: 2, most: 8 }

/** @returns {Record<string, string>} a header of answers with status 503 */
export function retryAfter() {
  const { least, most } = RETRY_AFTER
  return { 'Retry-After': String(least + Math.floor(Math.random() * (most - least + 1))) }
}

/** The refusal of a WebSocket upgrade with a body. */
export class UpgradeRefusal {
  /** @param {number} status >= 400 @param {Readonly<Record<string, string>>} headers @param {string} body */
  constructor(status, headers, body) {
    this.status = status
    this.headers = headers
    this.body = body
  }
}

/** Sum of unread bytes. */
export class Backlog {
  /** Of all clients. */
  bytes = 0
  /** Of the client with the most. */
  largest = 0

  /** @param {number} bytes of one client */
  add(bytes) {
    this.bytes += bytes
    if (bytes > this.largest) this.largest = bytes
  }
}
