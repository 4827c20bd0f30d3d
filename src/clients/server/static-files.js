// Static files of the gateway's pages, with an ETag and a strict content security policy.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'

/** @import { Exchange } from './contract.js' */

/** @type {Record<string, string>} */
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  // Browsers would save `text/markdown`.
  '.md': 'text/plain; charset=utf-8',
}

// 'self' includes fetch, EventSource and WebSocket of the same host and port.
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
  // Revalidated: gateway upgrades are visible immediately.
  'Cache-Control': 'no-cache',
}

/**
 * @param {string | Buffer} body
 * @param {string} type file extension, such as `.html`
 * @param {Readonly<Record<string, string>>} [more] headers
 * @returns {(exchange: Exchange) => void}
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

/** @param {string} file .html, .css, .js, .svg or .md @param {Readonly<Record<string, string>>} [more] headers */
export const serveFile = (file, more) => serveBody(readFileSync(file), extname(file), more)

/** @param {string} text */
const escapeAttribute = text =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/** Fills placeholders like `{{version}}`. @param {string} file @param {Readonly<Record<string, string>>} values */
export const fillPage = (file, values) =>
  readFileSync(file, 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => escapeAttribute(values[name]))
