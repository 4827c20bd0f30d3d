// All reply errors, disconnects and unsubscribes. A test compares docs/errors.md with this table.

/** Error of a command: `error` in a reply or a server API response. */
export class ReplyError extends Error {
  /**
   * @param {number} code 100-1999 @param {string} message sent to the client
   * @param {boolean} [temporary] the SDK may retry @param {number} [status] HTTP status in transport error mode
   */
  constructor(code, message, temporary = false, status = 500) {
    super(message)
    this.code = code
    this.temporary = temporary
    this.status = status
  }
}

/** Ends a connection. SDKs misread empty and JSON reasons. */
export class Disconnect extends Error {
  /** @param {number} code 3000-4999 @param {string} reason at most 123 bytes */
  constructor(code, reason) {
    super(reason)
    this.code = code
    this.reason = reason
  }

  /** Whether the connection closes without sending the code, as if lost by the network. */
  get silent() {
    return this.code === 3000
  }

  get reconnect() {
    return !((this.code >= 3500 && this.code < 4000) || (this.code >= 4500 && this.code < 5000))
  }
}

/** @param {number} code @param {string} message @param {number} status @param {boolean} [temporary] */
const reply = (code, message, status, temporary = false) =>
  Object.freeze(new ReplyError(code, message, temporary, status))

export const errors = Object.freeze({
  /** Must precede `internal`: codes from the bus map to the last error with that code. */
  brokerUnavailable: reply(100, 'the broker is unavailable', 500, true),
  internal: reply(100, 'internal server error', 500, true),
  unauthorized: reply(101, 'unauthorized', 500),
  unknownChannel: reply(102, 'unknown channel', 404),
  permissionDenied: reply(103, 'permission denied', 500),
  methodNotFound: reply(104, 'method not found', 404),
  alreadySubscribed: reply(105, 'already subscribed', 500),
  limitExceeded: reply(106, 'limit exceeded', 400),
  badRequest: reply(107, 'bad request', 400),
  notAvailable: reply(108, 'not available', 400),
  /** SDKs ask for a new token. Must precede `tokenExpired`. */
  tokenRevoked: reply(109, 'token revoked', 500),
  tokenExpired: reply(109, 'token expired', 500),
  expired: reply(110, 'expired', 500),
  tooManyRequests: reply(111, 'too many requests', 500, true),
  unrecoverablePosition: reply(112, 'unrecoverable position', 416),
  concurrentPagination: reply(113, 'concurrent pagination', 409, true),
  /** The code of methodNotFound, with the API's message. */
  notFound: reply(104, 'not found', 404),
})

/** @param {number} code @param {string} reason */
const disconnect = (code, reason) => Object.freeze(new Disconnect(code, reason))

export const disconnects = Object.freeze({
  connectionClosed: disconnect(3000, 'connection closed'),
  shutdown: disconnect(3001, 'shutdown'),
  internal: disconnect(3004, 'internal server error'),
  connectionExpired: disconnect(3005, 'connection expired'),
  subscriptionExpired: disconnect(3006, 'subscription expired'),
  slow: disconnect(3008, 'slow'),
  writeError: disconnect(3009, 'write error'),
  insufficientState: disconnect(3010, 'insufficient state'),
  forceReconnect: disconnect(3011, 'force reconnect'),
  noPong: disconnect(3012, 'no pong'),
  tooManyRequests: disconnect(3013, 'too many requests'),
  stateInvalidated: disconnect(3014, 'state invalidated'),
  invalidToken: disconnect(3500, 'invalid token'),
  badRequest: disconnect(3501, 'bad request'),
  stale: disconnect(3502, 'stale'),
  forceDisconnect: disconnect(3503, 'force disconnect'),
  connectionLimit: disconnect(3504, 'connection limit'),
  channelLimit: disconnect(3505, 'channel limit'),
  inappropriateProtocol: disconnect(3506, 'inappropriate protocol'),
  permissionDenied: disconnect(3507, 'permission denied'),
  notAvailable: disconnect(3508, 'not available'),
  tooManyErrors: disconnect(3509, 'too many errors'),
})

/** Unsubscribes (client protocol): below 2500 the subscription ends, from 2500 on SDKs resubscribe. */
export const unsubscribes = Object.freeze({
  tooLarge: Object.freeze({ code: 110, reason: 'map too large for a one-way connection' }),
  server: Object.freeze({ code: 2000, reason: 'server unsubscribe' }),
  insufficientState: Object.freeze({ code: 2500, reason: 'insufficient state' }),
  expired: Object.freeze({ code: 2501, reason: 'subscription expired' }),
  stateInvalidated: Object.freeze({ code: 2502, reason: 'state invalidated' }),
})

const KNOWN = new Set([...Object.values(errors), ...Object.values(disconnects)].map(({ message }) => message))

/** Label of an error; `application` for messages of hooks and backends. @param {Error} error */
export const reasonOf = ({ message }) => (KNOWN.has(message) ? message.replaceAll(' ', '_') : 'application')
