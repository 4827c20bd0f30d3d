// Fields of HTTP requests. uWebSockets.js reuses requests: read headers before the handler returns.

import { fromBytes } from '../server/text.js'
import { keepHeaders } from '../session/extra.js'

/** @import { Exchange } from '../server/contract.js' */

/** User id from a trusted proxy. @param {Exchange} exchange @param {{client: {user_id_http_header: string}}} config */
export function trustedUser(exchange, { client }) {
  const { user_id_http_header: header } = client
  return header === '' ? '' : fromBytes(exchange.header(header.toLowerCase()))
}

/**
 * @param {Exchange} exchange @param {{handlers: {allHeaders: boolean, headers: readonly string[]}}} context
 * @returns {readonly string[] | null} name, value, name, value ...; null if none are needed
 */
export function requestHeaders(exchange, { handlers: { allHeaders, headers } }) {
  if (allHeaders) return exchange.headers()
  return headers.length === 0 ? null : keepHeaders(exchange.headers(), headers)
}

/** @param {Exchange} exchange @returns {string} the token of `Authorization: Bearer`, '' if absent */
export function bearerToken(exchange) {
  const header = exchange.header('authorization')
  return header === '' ? '' : (/^Bearer +(\S+)$/i.exec(header)?.[1] ?? '')
}

/**
 * Reads one query parameter without parsing the others, such as long connect requests.
 * @param {string} query raw, without `?`
 * @param {string} name only letters and `_`; escaped names in the query are not found
 * @returns {string | null} the first value, decoded; null if absent
 */
export function queryValue(query, name) {
  const length = name.length
  for (let at = 0; at >= 0 && at < query.length; ) {
    const next = query.indexOf('&', at)
    const end = next < 0 ? query.length : next
    if (query.startsWith(name, at) && (query[at + length] === '=' || at + length === end)) {
      const value = query.slice(at + length + 1, end)
      if (!value.includes('%') && !value.includes('+')) return value
      try {
        return decodeURIComponent(value.replaceAll('+', ' '))
      } catch {
        // Invalid escapes: the URL standard keeps them as text.
        return new URLSearchParams(query).get(name)
      }
    }
    at = next < 0 ? -1 : next + 1
  }
  return null
}
