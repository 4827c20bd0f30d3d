// Responses of the admin endpoints: one JSON line each, never cached.

/** @import { Exchange } from '../../clients/server/contract.js' */

/** @type {Readonly<Record<string, string>>} */
export const JSON_HEADERS = Object.freeze({
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
})

/** @param {Exchange} exchange @param {string} text JSON */
export const replyJson = (exchange, text) => exchange.reply(200, JSON_HEADERS, text)

/**
 * @param {Exchange} exchange @param {number} status @param {string} error a few words
 * @param {Record<string, string>} [head] @param {object} [more] other members
 */
export const replyError = (exchange, status, error, head = {}, more = {}) =>
  exchange.reply(status, { ...JSON_HEADERS, ...head }, JSON.stringify({ error, ...more }))
