// The contract of a transport: carries what sessions say. One object serves all sessions of its kind.

/**
 * @typedef {import('../session/session.js').Session} Session
 *
 * @typedef {object} Transport
 * @property {string} name as told to proxies and metrics
 * @property {boolean} emulated whether its clients send through the emulation endpoint: their connect reply names session and node
 * @property {import('../worker/context.js').WorkerContext} context
 * @property {import('../stats/traffic.js').TransportTraffic} traffic what is counted of it. Sessions count what they take and say; the transport
 *   counts what only it knows of
 * @property {(session: Session, frame: import('../protocol/contract.js').Encoded) => void} send
 * @property {(session: Session, topic: string) => void} follow joins a fan-out topic; what is published there afterwards
 *   reaches the session in order with what `send` sends
 * @property {(session: Session, topic: string) => void} unfollow also called for a session that has ended
 * @property {(session: Session) => void} framePing a ping below the protocol, if the transport has one
 * @property {(session: Session, disconnect: import('../errors.js').Disconnect, cause: Error) => void} close `cause` is the error behind the
 *   disconnect, or the disconnect itself
 * @property {(session: Session) => void} [connected] called when the session has connected and has joined its server-side subscriptions
 */

/**
 * Those who can follow a topic without the socket server's help, grouped by what carries them.
 *
 * @typedef {object} Carrier
 * @property {(members: Set<any>, message: Uint8Array, publication: import('../broker/contract.js').Publication | null) => number} deliver sends a
 *   message of a topic to its members, framing it once. `message` is valid during the call. `publication` is null for joins and leaves.
 *   Returns for how many clients the members stand, and counts what it sends
 */

export {}
