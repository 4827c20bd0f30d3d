// Plain files for the pages that the gateway serves itself: read once, given a tag, sent with a strict policy.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'

/** @typedef {import('./contract.js').Exchange} Exchange */

/** @type {Readonly<Record<string, string>>} by the end of a file's name */
const TYPES = Object.freeze({
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
})

// Nothing from elsewhere, nothing inline, not in a frame. 'self' covers the WebSocket of the same host and port, fetch
// and EventSource.
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
  // Always asked for again, answered with 304: an upgrade of the gateway shows at once.
  'Cache-Control': 'no-cache',
}

/**
 * @param {string | Buffer} body
 * @param {string} type the end of a file's name, `.html`
 * @returns {(exchange: Exchange) => void} answers GET and HEAD
 */
export function serveBody(body, type) {
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  const headers = { ...HEADERS, 'Content-Type': TYPES[type], ETag: tag }
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
 * @param {string} file path of an .html, .css, .js or .svg file
 * @returns {(exchange: Exchange) => void} answers GET and HEAD
 */
export const serveFile = file => serveBody(readFileSync(file), extname(file))

/** @param {string} text */
const escapeAttribute = text =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/**
 * @param {string} file path of an .html file with places like `{{version}}` in it
 * @param {Readonly<Record<string, string>>} values of all of them
 * @returns {string}
 */
export const fillPage = (file, values) =>
  readFileSync(file, 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => escapeAttribute(values[name]))
