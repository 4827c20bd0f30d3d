// The contract of a transport: carries what sessions say. One object serves all sessions of its kind.

/**
 * @typedef {import('../session/session.js').Session} Session
 *
 * @typedef {object} Transport
 * @property {string} name as told to proxies and metrics
 * @property {import('../gateway.js').Gateway} gateway
 * @property {(session: Session, frame: import('../protocol/contract.js').Encoded) => void} send
 * @property {(session: Session, topic: string) => void} follow joins a fan-out topic; what is published there afterwards
 *   reaches the session in order with what `send` sends
 * @property {(session: Session, topic: string) => void} unfollow
 * @property {(session: Session) => void} framePing a ping below the protocol, if the transport has one
 * @property {(session: Session, disconnect: import('../errors.js').Disconnect) => void} close
 */

export {}
