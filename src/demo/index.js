// The demo page: plain files, and the official SDK's browser build from its npm package.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OPERATION, VitalsFeed } from './feed.js'

/** @typedef {import('../server/contract.js').Exchange} Exchange */

const ASSETS = '/demo/'
const TYPES = Object.freeze({
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
})

/** Files of the folder `page` beside this one. */
const FILES = Object.freeze([
  'style.css',
  'cards.css',
  'panels.css',
  'ways.css',
  'icon.svg',
  'app.js',
  'channel.js',
  'chart.js',
  'connection.js',
  'cursors.js',
  'dom.js',
  'listener.js',
  'meter.js',
  'people.js',
  'recovery.js',
  'room.js',
  'sky.js',
  'status.js',
  'terminal.js',
  'transport-switch.js',
  'transports.js',
  'vitals.js',
])

// Nothing from elsewhere, nothing inline, not in a frame. 'self' covers the WebSocket of the same host and port, fetch and
// EventSource. The SDK's Protobuf build makes no code from strings.
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

/** @param {string} text */
const escapeAttribute = text =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/** @param {string} name */
const readAsset = name => readFileSync(fileURLToPath(new URL(`./page/${name}`, import.meta.url)))

/** The package names its main file only, so its folder is found by that. */
const SDK = join(dirname(createRequire(import.meta.url).resolve('centrifuge')), '..', 'dist')

/** Files from elsewhere, by the name that the page knows. */
const OTHERS = Object.freeze({
  'centrifuge.js': join(SDK, 'centrifuge.js'),
  'centrifuge.protobuf.js': join(SDK, 'centrifuge.protobuf.js'),
  'long-poll-socket.js': fileURLToPath(new URL('../../client/long-poll-socket.js', import.meta.url)),
})

/**
 * The page, told where the endpoints are. It is not told the API key: whoever can load the page would have it then.
 * @param {any} config
 * @param {string} version
 */
function renderPage(config, version) {
  const { websocket, emulation, http_api: api } = config
  const path = (/** @type {string} */ block) => (config[block].enabled ? config[block].handler_prefix : '')
  /** @type {Record<string, string>} '' for what is switched off */
  const values = {
    version,
    websocket: websocket.disabled ? '' : websocket.handler_prefix,
    httpStream: path('http_stream'),
    sse: path('sse'),
    poll: path('poll'),
    emulation: emulation.handler_prefix,
    uniSse: path('uni_sse'),
    uniHttpStream: path('uni_http_stream'),
    uniPoll: path('uni_poll'),
    api: api.handler_prefix.replace(/\/+$/, ''),
  }
  return readAsset('index.html')
    .toString()
    .replace(/\{\{(\w+)\}\}/g, (_, name) => escapeAttribute(values[name]))
}

/**
 * @param {string | Buffer} body
 * @param {keyof typeof TYPES} type
 * @returns {(exchange: Exchange) => void}
 */
function serveFile(body, type) {
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
 * Puts the page at `/`, its files below `/demo/`, and starts the feed of vital signs.
 *
 * @param {object} parts
 * @param {import('../gateway.js').Gateway} parts.gateway
 * @param {import('../server/contract.js').SocketServer} parts.server not listening yet
 * @param {string} parts.version of the gateway
 * @param {number} parts.index of this worker; the first one publishes
 * @returns {Record<string, (params: any) => any>} what this worker answers in a survey, by operation
 */
export function mountDemo({ gateway, server, version, index }) {
  server.route('*', '/', serveFile(renderPage(gateway.config, version), 'html'))
  for (const name of FILES) {
    const type = /** @type {keyof typeof TYPES} */ (name.slice(name.lastIndexOf('.') + 1))
    server.route('*', `${ASSETS}${name}`, serveFile(readAsset(name), type))
  }
  for (const [name, file] of Object.entries(OTHERS)) {
    server.route('*', `${ASSETS}${name}`, serveFile(readFileSync(file), 'js'))
  }
  const feed = new VitalsFeed(gateway, index)
  if (index === 0) feed.start()
  return { [OPERATION]: params => feed.answer(params) }
}
