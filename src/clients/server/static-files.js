// Static files of the gateway's own pages: read once, with an ETag and a strict content security policy.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'

/** @import { Exchange } from './contract.js' */

/** @type {Readonly<Record<string, string>>} by file extension */
const TYPES = Object.freeze({
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  // Browsers show it; they would save `text/markdown`.
  '.md': 'text/plain; charset=utf-8',
})

// No other origins, nothing inline, no frames. 'self' covers fetch, EventSource and the WebSocket of the same host and
// port.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** @type {Record<string, string>} */
const HEADERS = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // Always revalidated, with 304: an upgrade of the gateway is visible at once.
  'Cache-Control': 'no-cache',
}

/**
 * @param {string | Buffer} body
 * @param {string} type file extension, such as `.html`
 * @param {Readonly<Record<string, string>>} [more] headers besides the usual ones, or instead of them
 * @returns {(exchange: Exchange) => void} answers GET and HEAD
 */
export function serveBody(body, type, more = {}) {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const headers = { ...HEADERS, 'Content-Type': TYPES[type], ETag: tag, ...more }
  return exchange => {
    const { method } = exchange
    if (method !== 'GET' && method !== 'HEAD') {
      exchange.reply(405, { Allow: 'GET, HEAD' }, 'Method Not Allowed')
    } else if (exchange.header('if-none-match').includes(tag)) {
      exchange.reply(304, { ETag: tag, 'Cache-Control': HEADERS['Cache-Control'] }, '')
    } else {
      exchange.reply(200, headers, body)
    }
  }
}

/**
 * @param {string} file path of an .html, .css, .js, .svg or .md file
 * @param {Readonly<Record<string, string>>} [more] headers besides the usual ones, or instead of them
 * @returns {(exchange: Exchange) => void} answers GET and HEAD
 */
export const serveFile = (file, more) => serveBody(readFileSync(file), extname(file), more)

/** @param {string} text */
const escapeAttribute = text =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/**
 * @param {string} file path of an .html file with placeholders like `{{version}}`
 * @param {Readonly<Record<string, string>>} values by placeholder
 * @returns {string}
 */
export const fillPage = (file, values) =>
  readFileSync(file, 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => escapeAttribute(values[name]))
