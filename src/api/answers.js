// The envelopes of answers (server API, sections 1 and 3).

import { errors, ReplyError } from '../errors.js'

/** @typedef {import('../server/contract.js').Exchange} Exchange */
/** @typedef {import('./context.js').ApiContext['logger']} Logger */

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' })
const TEXT_TYPE = Object.freeze({ 'content-type': 'text/plain; charset=utf-8' })

/**
 * What the caller may know of an error. Everything that is not one of ours is logged and called internal.
 * @param {Error} error
 * @param {Logger} logger
 * @returns {ReplyError}
 */
export function publicError(error, logger) {
  if (error instanceof ReplyError) return error
  logger.error({ err: error }, 'a call of the server API failed')
  return errors.internal
}

/** @param {ReplyError} error */
const render = ({ code, message }) => `{"code":${code},"message":${JSON.stringify(message)}}`

/**
 * @param {Error} error
 * @param {Logger} logger
 * @returns {string} JSON text of the error object
 */
export const errorText = (error, logger) => render(publicError(error, logger))

/**
 * @param {Exchange} exchange
 * @param {string} text
 */
export const answerJson = (exchange, text) => exchange.reply(200, JSON_TYPE, text)

/**
 * @param {Exchange} exchange
 * @param {Error} error
 * @param {boolean} transport whether the HTTP status tells of the error
 * @param {Logger} logger
 */
export function answerError(exchange, error, transport, logger) {
  const known = publicError(error, logger)
  if (transport) exchange.reply(known.status, JSON_TYPE, render(known))
  else exchange.reply(200, JSON_TYPE, `{"error":${render(known)}}`)
}

/** @param {Exchange} exchange */
export const answerBadRequest = exchange => exchange.reply(400, TEXT_TYPE, 'Bad Request')

/** @param {Exchange} exchange */
export const answerTooLarge = exchange => exchange.reply(413, TEXT_TYPE, 'Request Entity Too Large')

/** @param {Exchange} exchange */
export const answerUnauthorized = exchange => exchange.reply(401, null, '')

/** @param {Exchange} exchange */
export const answerWrongMethod = exchange =>
  exchange.reply(405, { ...TEXT_TYPE, allow: 'POST' }, 'Method Not Allowed')
