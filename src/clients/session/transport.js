/** @import { Disconnect } from '../../base/errors.js' */
/** @import { TransportTraffic } from '../../metrics/traffic.js' */
/** @import { Encoded } from '../protocol/contract.js' */
/** @import { WorkerContext } from './context.js' */
/** @import { Session } from './session.js' */

// The contract of a transport. One object serves all sessions of its kind.

/**
 * @typedef {object} Transport
 * @property {string} name in metrics and logs
 * @property {boolean} emulated whether clients send commands to the emulation endpoint; their connect reply contains
 *   session and node
 * @property {WorkerContext} context
 * @property {TransportTraffic} traffic counters. Sessions count commands and
 *   messages; the transport counts the rest
 * @property {(session: Session, frame: Encoded) => void} send
 * @property {(session: Session) => number} unread bytes sent and not yet given to the kernel, or not acknowledged
 * @property {(session: Session, topic: string) => void} follow joins a fan-out topic; its later messages reach the
 *   session in order with those of `send`
 * @property {(session: Session, topic: string) => void} unfollow also called for a session that has ended
 * @property {(session: Session) => void} framePing a ping below the protocol, if the transport has one
 * @property {(session: Session, disconnect: Disconnect, cause: Error) => void} close `cause` is
 *   the error behind the disconnect, or the disconnect itself. A silent disconnect ends the connection without a message
 *   or a close frame
 * @property {(session: Session) => string} remoteAddress of the peer of an open session, '' if unknown
 * @property {(session: Session) => void} [connected] called after the session has connected and joined its server-side
 *   subscriptions
 */

export {}
