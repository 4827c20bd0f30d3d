// The envelopes of answers (server API).

import { errors, ReplyError } from '../../base/errors.js'

/** @import { Exchange } from '../../clients/server/contract.js' */
/** @import { ApiContext } from './context.js' */
/** @typedef {ApiContext['logger']} Logger */

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' })
const TEXT_TYPE = Object.freeze({ 'content-type': 'text/plain; charset=utf-8' })

/**
 * An error of the table stays as it is; any other is logged, and the caller gets `internal`.
 * @param {Error} error @param {Logger} logger @returns {ReplyError}
 */
export function publicError(error, logger) {
  if (error instanceof ReplyError) return error
  logger.error({ err: error }, 'a call of the server API failed')
  return errors.internal
}

/** @param {ReplyError} error */
const render = ({ code, message }) => `{"code":${code},"message":${JSON.stringify(message)}}`

/** Counts an error of a call. @param {Error} error @param {ApiContext} context @returns {ReplyError} for the caller */
export function countError(error, { broker, logger, traffic }) {
  const internal = publicError(error, logger)
  const known = internal === errors.internal && !broker.ready() ? errors.brokerUnavailable : internal
  traffic.add('api_errors', known.code)
  return known
}

/** @param {Error} error @param {ApiContext} context @returns {string} JSON text of the error object */
export const errorText = (error, context) => render(countError(error, context))

/** @param {Exchange} exchange @param {string} text */
export const answerJson = (exchange, text) => exchange.reply(200, JSON_TYPE, text)

/**
 * @param {Exchange} exchange @param {Error} error @param {boolean} transport the HTTP status shows the error
 * @param {ApiContext} context
 */
export function answerError(exchange, error, transport, context) {
  const known = countError(error, context)
  if (transport) exchange.reply(known.status, JSON_TYPE, render(known))
  else exchange.reply(200, JSON_TYPE, `{"error":${render(known)}}`)
}

/** @param {Exchange} exchange @param {string} text */
export const answerBadRequest = (exchange, text) => exchange.reply(400, TEXT_TYPE, text)

/** @param {Exchange} exchange */
export const answerTooLarge = exchange => exchange.reply(413, TEXT_TYPE, 'Request Entity Too Large')

/** @param {Exchange} exchange whose handler has not returned yet */
export function answerUnauthorized(exchange) {
  const given =
    exchange.header('x-api-key') !== '' ||
    exchange.header('authorization') !== '' ||
    exchange.query.includes('api_key=')
  const text = given
    ? 'Unauthorized: the API key is wrong'
    : 'Unauthorized: the API key is missing: send it as `X-API-Key: KEY` or `Authorization: apikey KEY`'
  exchange.reply(401, TEXT_TYPE, text)
}

/** @param {Exchange} exchange */
export const answerWrongMethod = exchange =>
  exchange.reply(405, { ...TEXT_TYPE, allow: 'POST' }, 'Method Not Allowed')
