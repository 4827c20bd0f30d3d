// The transports: WebSocket, HTTP streams, SSE and long-poll, one-way and two-way.
// May import session, hub, protocol and the layers below; socket drivers only through server/contract.js.
// Guarantees: `send` and followed topics keep their order; clients that do not read are closed with 3008.
// To add a transport: implement Transport (session.js) and add a row to the table.

import { derive } from '../../config/derive.js'
import { Admission } from './admission.js'
import { Cors, createOriginCheck } from './origin.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { SocketServer } from '../server/contract.js' */
/** @import { Overload } from '../../metrics/overload.js' */
/** @import { WorkerContext } from '../session/context.js' */
/** @import { Calls } from './calls.js' */
/** @import { Fanout } from './fanout.js' */

/** @typedef {{bytes: number, largest: number}} Unread */
/** @typedef {{clients: any[], end: (client: any) => void, left?: () => number}} Clients waiting at shutdown */

/**
 * `denied`: the denylist refuses more clients; for those without a session.
 * @typedef {new (parts: any) => {mount: () => void, drain?: () => Clients, reload?: () => void, denied?: () => void,
 *   backlog?: () => Unread}} TransportClass
 */

/**
 * Transports by option. Only enabled ones are loaded: the others take a tenth of a worker's start.
 * @satisfies {Record<string, () => Promise<TransportClass>>}
 */
const table = Object.freeze({
  websocket: async () => (await import('./websocket.js')).WebSocketTransport,
  http_stream: async () => (await import('./stream/http-stream.js')).HttpStreamTransport,
  sse: async () => (await import('./stream/sse.js')).SseTransport,
  poll: async () => (await import('./poll/endpoint.js')).PollEndpoint,
  uni_websocket: async () => (await import('./uni-websocket.js')).UniWebSocketTransport,
  uni_sse: async () => (await import('./stream/sse.js')).UniSseTransport,
  uni_http_stream: async () => (await import('./stream/http-stream.js')).UniHttpStreamTransport,
  uni_poll: async () => (await import('./uni-poll/endpoint.js')).UniPollEndpoint,
  emulation: async () => (await import('./emulation.js')).Emulation,
})

/** @param {Config} config @param {keyof typeof table} name @returns {boolean} */
function isEnabled(config, name) {
  if (name === 'websocket') return !config.websocket.disabled
  if (name === 'emulation') return config.http_stream.enabled || config.sse.enabled || config.poll.enabled
  return config[name].enabled
}

/** @param {Config} config @returns {Promise<TransportClass[]>} enabled transports */
export const loadTransports = config =>
  Promise.all(
    Object.entries(table).flatMap(([name, load]) =>
      isEnabled(config, /** @type {keyof typeof table} */ (name)) ? [load()] : [],
    ),
  )

/**
 * `workers` share the connection rate. `waiting` starts the worker's shutdown, `backlogs` are outside sockets.
 * @param {Pick<TransportParts, 'context' | 'server' | 'fanout' | 'calls'> & {transports: readonly TransportClass[],
 *   workers: number, overload: Pick<Overload, 'reason'>}} parts
 */
export function mountTransports({ transports, context, server, fanout, calls, workers, overload }) {
  const { sessions, clock, refusals } = context
  const limits = () => {
    const { connection_limit, connection_rate_limit } = context.config.client
    return { limit: connection_limit, rate: connection_rate_limit / workers }
  }
  const admission = new Admission({ ...limits(), open: () => sessions.open, clock, overload, refusals })
  const originCheck = derive(() => context.config.client.allowed_origins, createOriginCheck)
  const cors = new Cors(origin => originCheck()(origin), refusals)
  const mounted = transports.map(Class => new Class({ context, server, fanout, calls, cors, admission }))
  for (const transport of mounted) transport.mount()
  return {
    admission,
    waiting: () => mounted.flatMap(transport => transport.drain?.() ?? []),
    reload() {
      admission.setLimits(limits())
      for (const transport of mounted) transport.reload?.()
    },
    denied() {
      for (const transport of mounted) transport.denied?.()
    },
    backlogs: /** @type {{backlog: () => Unread}[]} */ (mounted.filter(transport => transport.backlog)),
  }
}

/**
 * @typedef {{context: WorkerContext, server: SocketServer, fanout: Fanout, calls: Calls, cors: Cors,
 *   admission: Admission}} TransportParts
 */

/**
 * A transport that delivers topics without the socket server.
 * @typedef {object} Carrier
 * @property {(members: Set<any>, message: Uint8Array, publication: Publication | null, pushes?: number) => number}
 *   deliver sends a topic's message, framed once, to its members, and counts it. `message` is valid during the call.
 *   `publication` is null for joins and leaves. `pushes` (1): pushes in `message`. Returns the number of clients
 * @property {boolean} joins `message` may be several joined pushes; then `publication` MUST NOT be used
 */
