// Response envelopes of the server API.

import { errors, ReplyError } from '../../base/errors.js'

/** @import { Exchange } from '../../clients/server/contract.js' */
/** @import { ApiContext } from './context.js' */

const JSON_TYPE = Object.freeze({ 'content-type': 'application/json' })
const TEXT_TYPE = Object.freeze({ 'content-type': 'text/plain; charset=utf-8' })

/** @param {Error} error @param {ApiContext['logger']} logger @returns {ReplyError} for the caller */
export function publicError(error, logger) {
  if (error instanceof ReplyError) return error
  logger.error({ err: error }, 'server API call failed')
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
 * @param {Exchange} exchange @param {Error} error @param {boolean} transport use the HTTP status of the error
 * @param {ApiContext} context
 */
export function answerError(exchange, error, transport, context) {
  const known = countError(error, context)
  if (transport) exchange.reply(known.status, JSON_TYPE, render(known))
  else exchange.reply(200, JSON_TYPE, `{"error":${render(known)}}`)
}

/** @param {Exchange} exchange @param {number} status @param {string} text @param {Record<string, string>} [headers] */
export const answerText = (exchange, status, text, headers) =>
  exchange.reply(status, { ...TEXT_TYPE, ...headers }, text)

/** @param {Exchange} exchange with its handler still running */
export function answerUnauthorized(exchange) {
  const given =
    exchange.header('x-api-key') !== '' ||
    exchange.header('authorization') !== '' ||
    exchange.query.includes('api_key=')
  const text = given
    ? 'Unauthorized: invalid API key'
    : 'Unauthorized: missing API key: send it as `X-API-Key: KEY` or `Authorization: apikey KEY`'
  answerText(exchange, 401, text)
}
