import { Disconnect, disconnects, errors, ReplyError, reasonOf } from '../../../base/errors.js'

/** Reasons by code. @type {Map<number, string>} */
const REASONS = new Map(
  [...Object.values(errors), ...Object.values(disconnects)].map(row => [row.code, reasonOf(row)]),
)

export class Refusal extends Error {
  /**
   * @param {number} status @param {{code: number, message: string}} row of the error table @param {string} [message]
   * @param {Readonly<Record<string, string>>} [head] other headers
   */
  constructor(status, { code, message: standard }, message = standard, head = {}) {
    super(message)
    this.status = status
    this.code = code
    this.head = head
  }

  get reason() {
    return REASONS.get(this.code) ?? 'other'
  }

  get body() {
    return JSON.stringify({ error: { code: this.code, message: this.message } })
  }
}

const RETRY = Object.freeze({ 'Retry-After': '1' })
const BEARER = Object.freeze({ 'WWW-Authenticate': 'Bearer' })

/** @param {string} line */
export const badRequest = line => new Refusal(400, errors.badRequest, line)

export const refusals = Object.freeze({
  noChannel: badRequest('at least one channel is required'),
  badCursor: badRequest('invalid cursor'),
  tooManyChannels: new Refusal(400, errors.limitExceeded, 'too many channels'),
  unauthorized: new Refusal(401, errors.unauthorized, 'a token is required', BEARER),
  blocked: new Refusal(403, disconnects.permissionDenied),
  revoked: new Refusal(401, errors.tokenRevoked, errors.tokenRevoked.message, BEARER),
  anonymous: new Refusal(403, errors.permissionDenied, 'anonymous tokens are not allowed'),
  method: new Refusal(405, errors.badRequest, 'method must be GET or POST'),
  tooLong: new Refusal(413, errors.badRequest, 'the body is too long'),
  tooMany: new Refusal(503, errors.tooManyRequests, 'too many connections'),
  unavailable: new Refusal(503, errors.internal, 'temporarily unavailable', RETRY),
  internal: new Refusal(500, errors.internal),
})

/** @param {string} channel untrusted */
const quote = channel => JSON.stringify(channel.length > 64 ? `${channel.slice(0, 64)}...` : channel)

/** @param {string} channel @param {string} line */
export const forbidden = (channel, line) =>
  new Refusal(403, errors.permissionDenied, `${quote(channel)}: ${line}`)

/** @param {string} channel */
export const unknownNamespace = channel =>
  new Refusal(404, errors.unknownChannel, `${quote(channel)}: unknown namespace`)

/** @param {string} channel */
export const badName = channel => badRequest(`${quote(channel)}: invalid channel name`)

/** @param {Error} error from authentication @returns {Refusal | null} null: internal error */
export function refusalFor(error) {
  if (error instanceof Refusal) return error
  if (error === disconnects.badRequest) return refusals.unauthorized
  // The keys are unavailable.
  if (error === errors.internal) return refusals.unavailable
  if (error instanceof ReplyError || error instanceof Disconnect)
    return new Refusal(401, error, error.message, BEARER)
  return null
}
