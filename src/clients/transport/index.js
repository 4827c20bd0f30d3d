// The transports: WebSocket, HTTP streams, SSE and long-poll, one-way and two-way.
// For: reading requests (origin, limits, credentials), opening sessions, carrying their messages, and the fan-out to
// sessions without a WebSocket. May import session, hub, protocol and the layers below; socket drivers only through
// server/contract.js. Promises: `send` and followed topics keep their order; a client that does not read is closed with
// 3008. To add a transport: implement the Transport contract below and add a row to the table.

import { derive } from '../../config/derive.js'
import { Admission } from './admission.js'
import { Cors, createOriginCheck } from './origin.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Encoded } from '../protocol/contract.js' */
/** @import { SocketServer } from '../server/contract.js' */
/** @import { Session } from '../session/session.js' */
/** @import { Overload } from '../../metrics/overload.js' */
/** @import { TransportTraffic } from '../../metrics/traffic.js' */
/** @import { WorkerContext } from '../session/context.js' */
/** @import { Calls } from './calls.js' */
/** @import { Fanout } from './fanout.js' */

/** @typedef {{bytes: number, largest: number}} Unread */
/**
 * @typedef {object} Clients waiting clients of a worker that ends
 * @property {any[]} clients
 * @property {(client: any) => void} end lets one go
 * @property {() => number} [left] how many still wait for another worker, which may answer them
 */

/**
 * @typedef {new (parts: any) => {mount: () => void, drain?: () => Clients, reload?: () => void, backlog?: () => Unread}}
 *   TransportClass
 */

/**
 * The table of transports. Only those that are on are loaded: the rest takes a tenth of a worker's start.
 * @type {readonly {enabled: (config: Config) => boolean, load: () => Promise<TransportClass>}[]}
 */
const table = Object.freeze([
  {
    enabled: ({ websocket }) => !websocket.disabled,
    load: async () => (await import('./websocket.js')).WebSocketTransport,
  },
  {
    enabled: ({ http_stream }) => http_stream.enabled,
    load: async () => (await import('./stream/http-stream.js')).HttpStreamTransport,
  },
  { enabled: ({ sse }) => sse.enabled, load: async () => (await import('./stream/sse.js')).SseTransport },
  {
    enabled: ({ poll }) => poll.enabled,
    load: async () => (await import('./poll/endpoint.js')).PollEndpoint,
  },
  {
    enabled: ({ uni_websocket }) => uni_websocket.enabled,
    load: async () => (await import('./uni-websocket.js')).UniWebSocketTransport,
  },
  {
    enabled: ({ uni_sse }) => uni_sse.enabled,
    load: async () => (await import('./stream/sse.js')).UniSseTransport,
  },
  {
    enabled: ({ uni_http_stream }) => uni_http_stream.enabled,
    load: async () => (await import('./stream/http-stream.js')).UniHttpStreamTransport,
  },
  {
    enabled: ({ uni_poll }) => uni_poll.enabled,
    load: async () => (await import('./uni-poll/endpoint.js')).UniPollEndpoint,
  },
  {
    enabled: ({ http_stream, sse, poll }) => http_stream.enabled || sse.enabled || poll.enabled,
    load: async () => (await import('./emulation.js')).Emulation,
  },
])

/** @param {Config} config @returns {Promise<TransportClass[]>} those that it enables */
export const loadTransports = config =>
  Promise.all(table.filter(({ enabled }) => enabled(config)).map(({ load }) => load()))

/**
 * Mounts transports.
 *
 * @param {object} parts @param {readonly TransportClass[]} parts.transports of `loadTransports`
 * @param {WorkerContext} parts.context @param {SocketServer} parts.server
 * @param {Fanout} parts.fanout @param {Calls} parts.calls
 * @param {number} parts.workers that share the rate of new connections
 * @param {Pick<Overload, 'reason'>} parts.overload of this worker
 * @returns {{admission: Admission, waiting: () => Clients[], reload: () => void, backlogs: {backlog: () => Unread}[]}}
 *   `admission` needs the number of connections of the other workers, `waiting` begins the end of the worker and gives
 *   its clients without a session, `reload` uses the context's new configuration, `backlogs` count unread bytes outside
 *   of sockets
 */
export function mountTransports({ transports, context, server, fanout, calls, workers, overload }) {
  const { sessions, clock } = context
  const limits = () => {
    const { connection_limit, connection_rate_limit } = context.config.client
    return { limit: connection_limit, rate: connection_rate_limit / workers }
  }
  const admission = new Admission({
    ...limits(),
    open: () => sessions.open,
    clock,
    overload,
    refusals: context.refusals,
  })
  const originCheck = derive(
    () => context.config.client.allowed_origins,
    allowed => createOriginCheck(allowed),
  )
  const allowsOrigin = (/** @type {string} */ origin) => originCheck()(origin)
  const cors = new Cors(allowsOrigin, context.refusals)
  const parts = { context, server, fanout, calls, cors, admission }
  const mounted = transports.map(Transport => new Transport(parts))
  for (const transport of mounted) transport.mount()
  const waiting = () => mounted.flatMap(transport => transport.drain?.() ?? [])
  const reload = () => {
    admission.setLimits(limits())
    for (const transport of mounted) transport.reload?.()
  }
  const backlogs = /** @type {{backlog: () => Unread}[]} */ (mounted.filter(transport => transport.backlog))
  return { admission, waiting, reload, backlogs }
}

/**
 * @typedef {object} TransportParts argument of the constructors in the table
 * @property {WorkerContext} context
 * @property {SocketServer} server
 * @property {Fanout} fanout
 * @property {Calls} calls
 * @property {Cors} cors
 * @property {Admission} admission
 */

/**
 * A transport that delivers topics itself, without the socket server.
 *
 * @typedef {object} Carrier
 * @property {(members: Set<any>, message: Uint8Array, publication: Publication | null, pushes?: number) => number}
 *   deliver sends a message of a topic to its members, framed once, and counts it. `message` is valid during the call.
 *   `publication` is null for joins and leaves. `pushes` (1): their number in `message`. Returns the number of clients
 * @property {boolean} joins whether a message may be several pushes, joined as by the codec; then it MUST NOT use
 *   `publication`
 */
