import { Disconnect, disconnects, errors, ReplyError, reasonOf } from '../../../base/errors.js'
import { notAllowed } from '../origin.js'

/** Reasons by code. @type {Map<number, string>} */
const REASONS = new Map(
  [...Object.values(errors), ...Object.values(disconnects)].map(row => [row.code, reasonOf(row)]),
)

/** An error answer to a poll: HTTP status, error code and message. */
export class Refusal extends Error {
  /** @param {number} status @param {number} code of the table of errors @param {string} message */
  constructor(status, code, message) {
    super(message)
    this.status = status
    this.code = code
  }

  /** In logs and metrics. @returns {string} */
  get reason() {
    return REASONS.get(this.code) ?? 'other'
  }

  /** @returns {string} body of the answer */
  get body() {
    return JSON.stringify({ error: { code: this.code, message: this.message } })
  }
}

/** For status 503. */
export const RETRY = Object.freeze({ 'Retry-After': '1' })

/** @param {string} line */
export const badRequest = line => new Refusal(400, errors.badRequest.code, line)

export const refusals = Object.freeze({
  noChannel: badRequest('at least one channel is required'),
  badCursor: badRequest('invalid cursor'),
  tooManyChannels: new Refusal(400, errors.limitExceeded.code, 'too many channels'),
  unauthorized: new Refusal(401, errors.unauthorized.code, 'a token is required'),
  anonymous: new Refusal(403, errors.permissionDenied.code, 'anonymous tokens are not allowed'),
  method: new Refusal(405, errors.badRequest.code, 'method must be GET or POST'),
  tooLong: new Refusal(413, errors.badRequest.code, 'the body is too long'),
  tooMany: new Refusal(503, errors.tooManyRequests.code, 'too many connections'),
  unavailable: new Refusal(503, errors.internal.code, 'temporarily unavailable'),
  internal: new Refusal(500, errors.internal.code, errors.internal.message),
})

/** @param {import('../../server/contract.js').Exchange} exchange whose handler has not returned yet */
export const foreignOrigin = exchange => new Refusal(403, errors.permissionDenied.code, notAllowed(exchange))

/** @param {string} channel @param {string} line */
export const forbidden = (channel, line) =>
  new Refusal(403, errors.permissionDenied.code, `${quote(channel)}: ${line}`)

/** @param {string} channel */
export const unknownNamespace = channel =>
  new Refusal(404, errors.unknownChannel.code, `${quote(channel)}: unknown namespace`)

/** @param {string} channel */
export const badName = channel => badRequest(`${quote(channel)}: invalid channel name`)

/** @param {string} channel untrusted */
const quote = channel => JSON.stringify(channel.length > 64 ? `${channel.slice(0, 64)}...` : channel)

/** @param {Error} error of the authentication @returns {Refusal | null} null: an internal error */
export function refusalFor(error) {
  if (error instanceof Refusal) return error
  if (error === disconnects.badRequest) return refusals.unauthorized
  // The keys are unavailable.
  if (error === errors.internal) return refusals.unavailable
  if (error instanceof ReplyError || error instanceof Disconnect) {
    return new Refusal(401, error.code, error.message)
  }
  return null
}
