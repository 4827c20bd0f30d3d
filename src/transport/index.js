// The transports: how sessions reach their clients, over WebSocket, HTTP streams, SSE and long-poll.
// For: reading requests (origin, limits, credentials), opening sessions, carrying their messages, fan-out to those
// without
//   a WebSocket. It may import session, hub, protocol and the rooms below; drivers of sockets only through
// server/contract.js. Promises: what `send` and a followed topic bring keeps its order; a client that does not read is
// closed with 3008. To add a transport: implement the Transport contract below, add a row to the table.

import { Admission } from './admission.js'
import { Emulation } from './emulation.js'
import { Cors, createOriginCheck } from './origin.js'
import { PollEndpoint } from './poll/endpoint.js'
import { HttpStreamTransport, UniHttpStreamTransport } from './stream/http-stream.js'
import { SseTransport, UniSseTransport } from './stream/sse.js'
import { UniPollEndpoint } from './uni-poll/endpoint.js'
import { UniWebSocketTransport } from './uni-websocket.js'
import { WebSocketTransport } from './websocket.js'

/** @typedef {{bytes: number, largest: number}} Unread */

/**
 * The table of transports: a row adds one.
 * @type {readonly {enabled: (config: any) => boolean, Transport: new (parts: any) => {mount: () => void, shutDown?: () => void, backlog?: () => Unread}}[]}
 */
const transports = Object.freeze([
  { enabled: ({ websocket }) => !websocket.disabled, Transport: WebSocketTransport },
  { enabled: ({ http_stream }) => http_stream.enabled, Transport: HttpStreamTransport },
  { enabled: ({ sse }) => sse.enabled, Transport: SseTransport },
  { enabled: ({ poll }) => poll.enabled, Transport: PollEndpoint },
  { enabled: ({ uni_websocket }) => uni_websocket.enabled, Transport: UniWebSocketTransport },
  { enabled: ({ uni_sse }) => uni_sse.enabled, Transport: UniSseTransport },
  { enabled: ({ uni_http_stream }) => uni_http_stream.enabled, Transport: UniHttpStreamTransport },
  { enabled: ({ uni_poll }) => uni_poll.enabled, Transport: UniPollEndpoint },
])

/**
 * Mounts the transports that the configuration enables.
 *
 * @param {object} parts
 * @param {import('../worker/context.js').WorkerContext} parts.context
 * @param {import('../server/contract.js').SocketServer} parts.server
 * @param {import('./fanout.js').Fanout} parts.fanout
 * @param {import('./calls.js').Calls} parts.calls
 * @param {number} parts.workers that share the rate of new connections
 * @param {string} parts.cursorKey base64
 * @returns {{admission: Admission, shutDown: () => void, backlogs: {backlog: () => Unread}[]}} `admission` needs the
 *   number of connections of the other workers, `shutDown` answers waiting polls without a session, `backlogs` are
 *   unread bytes outside of sockets
 */
export function mountTransports({ context, server, fanout, calls, workers, cursorKey }) {
  const { config, sessions, clock } = context
  const { client } = config
  const admission = new Admission({
    limit: client.connection_limit,
    rate: client.connection_rate_limit / workers,
    open: () => sessions.open,
    clock,
  })
  const allowsOrigin = createOriginCheck(client.allowed_origins)
  const cors = new Cors(allowsOrigin)
  const parts = { context, server, fanout, calls, cors, admission, allowsOrigin, cursorKey }
  const mounted = transports
    .filter(({ enabled }) => enabled(config))
    .map(({ Transport }) => new Transport(parts))
  for (const transport of mounted) transport.mount()
  const { http_stream, sse, poll } = config
  if (http_stream.enabled || sse.enabled || poll.enabled) new Emulation(parts).mount()
  const shutDown = () => {
    for (const transport of mounted) transport.shutDown?.()
  }
  const backlogs = /** @type {{backlog: () => Unread}[]} */ (mounted.filter(transport => transport.backlog))
  return { admission, shutDown, backlogs }
}

// The contract of a transport. One object serves all sessions of its kind.

/**
 * @typedef {import('../session/session.js').Session} Session
 *
 * @typedef {object} Transport
 * @property {string} name in metrics and logs
 * @property {boolean} emulated whether clients send commands to the emulation endpoint: their connect reply names
 *   session and node
 * @property {import('../worker/context.js').WorkerContext} context
 * @property {import('../stats/traffic.js').TransportTraffic} traffic its counters. Sessions count commands and
 *   messages; the transport counts the rest
 * @property {(session: Session, frame: import('../protocol/contract.js').Encoded) => void} send
 * @property {(session: Session, topic: string) => void} follow joins a fan-out topic; what is published there
 *   afterwards reaches the session in order with what `send` sends
 * @property {(session: Session, topic: string) => void} unfollow also called for a session that has ended
 * @property {(session: Session) => void} framePing a ping below the protocol, if the transport has one
 * @property {(session: Session, disconnect: import('../errors.js').Disconnect, cause: Error) => void} close `cause` is
 *   the error behind the disconnect, or the disconnect itself
 * @property {(session: Session) => void} [connected] called when the session has connected and has joined its
 *   server-side subscriptions
 */

/**
 * A transport that delivers topics itself, without the socket server.
 *
 * @typedef {object} Carrier
 * @property {(members: Set<any>, message: Uint8Array, publication: import('../broker/contract.js').Publication | null) => number} deliver sends a
 *   message of a topic to its members, framed once, and counts it. `message` is valid during the call. `publication` is
 *   null for joins and leaves. Returns the number of clients
 */
