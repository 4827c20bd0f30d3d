// The contract of a socket server: HTTP routes, WebSockets and streams of one worker. Two drivers implement it: uws.js,
// node.js. It imports nothing of Halley. test/server/conformance.js tests every promise below on both drivers.
//
// A connection is the driver's own handle, opaque to others except for its `session` property, which belongs to the
// transport. There is no wrapper: at a million connections every object counts. The same holds for a stream, an HTTP
// response that goes on.

/**
 * @typedef {object} Connection one WebSocket, valid from `open` until `close` has been called
 * @property {any} session whatever the transport hangs on it; null at first
 */

/**
 * One HTTP request and its answer. `header()` MUST be called before the handler returns; everything else also
 * later. Every method is a no-op once the client has gone. A request that is pipelined behind one that is not answered
 * yet waits for its turn on node, but ends the connection on uws, whose parser has nowhere to keep it.
 *
 * @typedef {object} Exchange
 * @property {string} method upper case
 * @property {string} path without the query
 * @property {string} query the raw query string, '' if none
 * @property {(name: string) => string} header value of a request header (name in lower case), '' if absent
 * @property {() => string} remoteAddress as text
 * @property {boolean} gone whether the client has left or the answer is complete
 * @property {(limit: number, done: (body: Buffer | null) => void) => void} body collects the request's body; `null`
 *   when it is longer than `limit` bytes (the answer may still be given: the driver MUST let a 413 reach the client).
 *   Not called when the client leaves first. The Buffer is valid only until `done` returns
 * @property {(status: number, headers: Record<string, string> | null, body: string | Uint8Array) => void} reply whole
 *   answer at once
 * @property {{abandoned: () => void} | null} waiter whoever makes the client wait for its answer may put itself here:
 *   `abandoned` is called once, when the client leaves before it was answered. No closure for each of many that wait
 * @property {(status: number, headers: Record<string, string> | null, route: StreamRoute) => Stream | null} stream
 *   begins an answer that goes on (chunked); null when the client has gone, and for HEAD, which is answered with the
 *   head alone. The head leaves with the first data; before that, with the turn of the event loop, on node only (uws
 *   cannot end a head without data). May be called later than the handler, also from the `done` of `body`. From then on
 *   the exchange is `gone`
 */

/**
 * An HTTP response that goes on until one side ends it.
 *
 * @typedef {object} Stream valid until `close` of its route has been called
 * @property {any} session whatever the transport hangs on it; null at first
 */

/**
 * What the streams of one kind have in common.
 *
 * @typedef {object} StreamRoute
 * @property {number} maxBuffered bytes a client may leave unread before `overflow` is called (the driver may be late by
 *   what it cannot see of its library's and the kernel's buffers, never by more than 64 KB and the longest message)
 * @property {(stream: Stream) => void} overflow the client has more than maxBuffered bytes unread. Never called from
 *   within `write`, but soon after; the route answers with `end` or `cut`
 * @property {(stream: Stream) => void} close called exactly once for each stream, when its client has left or its end
 *   was asked for and has come about (or 5 s later). Never called from within `write`, `end` or `cut`
 */

/**
 * @typedef {object} WebSocketRoute
 * @property {number} maxMessage bytes; a longer message closes with 1009 and an empty reason
 * @property {number} maxBuffered bytes a connection may leave unread before `overflow` is called
 * @property {null | {level: number, minSize: number}} compression permessage-deflate is offered (client and server
 *   without context takeover); messages below minSize bytes go uncompressed. null: never negotiated. The longest
 *   message is also the longest decompressed one; what is longer by more than 1 MB is cut off by uws without 1009.
 *   `level` is for node, which compresses what is published once for all; uws does it for each receiver, at a level of
 *   its own
 * @property {string[]} protocols subprotocols the server knows. The first one OFFERED by the client that is known is
 *   chosen; none offered, an empty header, or only unknown ones: no subprotocol in the answer
 * @property {(exchange: Exchange, protocol: string) => number | object} upgrade an HTTP status (>= 400) refuses the
 *   upgrade with that status; an object accepts it and is handed to `open`
 * @property {(connection: Connection, accepted: any) => void} open
 * @property {(connection: Connection, data: Buffer, binary: boolean) => void} message `data` is valid only during the
 *   call
 * @property {(connection: Connection, code: number, reason: string) => void} close called exactly once for each opened
 *   connection, also for closes the server asked for (then with the code it asked for)
 * @property {(connection: Connection) => void} overflow the connection has more than maxBuffered bytes unread. Never
 *   called from within `send` or `publish`, but soon after; again if the route lets it be.
 *   The route answers with `close(connection, ...)`
 * @property {(connection: Connection) => void} pong a WebSocket pong frame came
 */

/**
 * @typedef {object} SocketServer
 * @property {'uws' | 'node'} name
 * @property {(method: string, path: string, handler: (exchange: Exchange) => void) => void} route exact path, or a
 *   prefix when it ends with `/*`. Method '*' is every method. More specific paths win, an exact method wins over '*'.
 *   No route: 404. A handler that throws is answered with 500, and nothing else happens
 * @property {(path: string, route: WebSocketRoute) => void} websocket GET without upgrade headers on this path: 400
 * @property {(host: string, port: number) => Promise<void>} listen every worker listens on the same port itself
 *   (SO_REUSEPORT, several accept queues) where the platform can; else through `cluster`. Rejects with one clear Error
 * @property {(connection: Connection, data: string | Uint8Array, binary: boolean) => void} send after everything that
 *   was published to the connection before. Never throws, also not on a closed connection
 * @property {(connection: Connection) => void} ping a WebSocket ping frame
 * @property {(connection: Connection, topic: string) => void} subscribe
 * @property {(connection: Connection, topic: string) => void} unsubscribe
 * @property {(topic: string, data: string | Uint8Array, binary: boolean) => void} publish to all subscribers of the
 *   topic, each in order with `send` and with its other topics. `data` may be reused by the caller right after the call
 * @property {(connection: Connection, work: () => void) => void} cork what `work` sends to the connection leaves in one
 *   write
 * @property {(connection: Connection) => number} buffered bytes not yet given to the kernel
 * @property {(connection: Connection, code: number, reason: string) => void} close sends what is buffered, then a close
 *   frame; a peer that does not read or does not answer is cut off after 5 s, so that no descriptor and no memory stays
 *   behind. After this call nothing more is sent, `message` and `overflow` are not called again, `close` is called
 *   once, now or later
 * @property {(connection: Connection) => void} terminate cuts the connection without a close frame
 * @property {(stream: Stream, data: string | Uint8Array) => void} write whole messages; no client sees a chunk border
 *   inside one. All that one turn of the event loop writes to a stream leaves together, in one chunk. `data` MUST NOT
 *   be changed afterwards. Never throws, also not on a stream that is over; the same data may be written to many
 *   streams, at no more than a few hundred ns each
 * @property {(stream: Stream) => void} flush what has been written to the stream leaves now, in a chunk of its own.
 *   `overflow` may be called from within
 * @property {(stream: Stream, data: string | Uint8Array) => void} end writes data ('' = nothing), then ends the
 *   response. A client that does not read is cut off after 5 s
 * @property {(stream: Stream) => void} cut ends the connection at once, unsent data is dropped
 * @property {() => {bytes: number, largest: number}} backlog what connections and streams have not taken yet, of all of
 *   them and of the one with the most. Cheap: it may be a second old, and leave out who is about to be closed
 * @property {() => void} stopListening no new connection is accepted; those there are stay
 * @property {() => void} shutdown terminates what is left and frees the port
 */

/** What clients have not taken yet, added up. */
export class Backlog {
  /** Of all of them. */
  bytes = 0
  /** Of the one with the most. */
  largest = 0

  /** @param {number} bytes of one client */
  add(bytes) {
    this.bytes += bytes
    if (bytes > this.largest) this.largest = bytes
  }
}
