import { Disconnect, disconnects, errors, ReplyError } from '../../errors.js'

/** A poll that cannot be answered as it wishes: status, code and line are told. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {number} code of the table of errors
   * @param {string} message
   */
  constructor(status, code, message) {
    super(message)
    this.status = status
    this.code = code
  }

  /** @returns {string} the body of the answer */
  get body() {
    return JSON.stringify({ error: { code: this.code, message: this.message } })
  }
}

/** Goes with a 503. */
export const RETRY = Object.freeze({ 'Retry-After': '1' })

/** @param {string} line what is wrong with the request */
export const badRequest = line => new Refusal(400, errors.badRequest.code, line)

export const refusals = Object.freeze({
  noChannel: badRequest('no channel is named'),
  badCursor: badRequest('the cursor is none of this gateway'),
  tooManyChannels: new Refusal(400, errors.limitExceeded.code, 'too many channels'),
  unauthorized: new Refusal(401, errors.unauthorized.code, 'a token is needed'),
  anonymous: new Refusal(403, errors.permissionDenied.code, 'the token names no user'),
  method: new Refusal(405, errors.badRequest.code, 'only GET and POST are known here'),
  tooLong: new Refusal(413, errors.badRequest.code, 'the body is too long'),
  tooMany: new Refusal(503, errors.tooManyRequests.code, 'too many connections'),
  unavailable: new Refusal(503, errors.internal.code, 'not available right now'),
  internal: new Refusal(500, errors.internal.code, errors.internal.message),
})

/**
 * @param {string} channel
 * @param {string} line
 */
export const forbidden = (channel, line) =>
  new Refusal(403, errors.permissionDenied.code, `${quote(channel)}: ${line}`)

/** @param {string} channel */
export const unknownNamespace = channel =>
  new Refusal(404, errors.unknownChannel.code, `${quote(channel)}: unknown namespace`)

/** @param {string} channel */
export const badName = channel => badRequest(`${quote(channel)}: such a name is not allowed`)

/** @param {string} channel of which a client may have said anything */
const quote = channel => JSON.stringify(channel.length > 64 ? `${channel.slice(0, 64)}...` : channel)

/**
 * @param {Error} error of the authentication
 * @returns {Refusal | null} null: a fault of ours
 */
export function refusalFor(error) {
  if (error instanceof Refusal) return error
  if (error === disconnects.badRequest) return refusals.unauthorized
  // The keys are out of reach.
  if (error === errors.internal) return refusals.unavailable
  if (error instanceof ReplyError || error instanceof Disconnect) {
    return new Refusal(401, error.code, error.message)
  }
  return null
}
