// Bare libraries under the same load: results are ratios of one run on one machine.
//
//   node fleet/targets/controls.js uws|ws PORT
//
// One process. A WebSocket at any path; ?ch=NAME subscribes it. POST /api/publish {"channel", "data"} sends the same
// push as Halley. GET /connection/uni_poll?channel=NAME waits for the next one. No protocol, no history, no key.

import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

/** Halley's default. */
const MAX_BUFFERED = 1024 * 1024
const BACKLOG = 4096
const HOST = '127.0.0.1'
const POLL = '/connection/uni_poll'
const HEADERS = /** @type {const} */ ([
  ['Content-Type', 'application/json'],
  ['Cache-Control', 'no-store'],
])

/** @param {string} body of a publish @returns {{channel: string, push: string}} */
function publication(body) {
  const { channel, data } = JSON.parse(body)
  return { channel, push: JSON.stringify({ push: { channel, pub: { data } } }) }
}

/** Waiting long-polls by channel: the next message completes all. @template T */
class Held {
  /** @type {Map<string, Set<T>>} */
  #channels = new Map()

  /** @param {T} response @param {string} channel @returns {() => void} to call when the client leaves */
  hold(response, channel) {
    const waiting = this.#channels.get(channel) ?? new Set()
    this.#channels.set(channel, waiting.add(response))
    return () => void waiting.delete(response)
  }

  /** @param {string} channel */
  take(channel) {
    const waiting = this.#channels.get(channel)
    this.#channels.delete(channel)
    return waiting ?? []
  }
}

/** @param {number} port */
async function uws(port) {
  const { default: library } = await import('uWebSockets.js')
  const app = library.App()
  /** @type {Held<import('uWebSockets.js').HttpResponse>} */
  const held = new Held()
  app.get(POLL, (res, req) => void res.onAborted(held.hold(res, req.getQuery('channel') ?? '')))
  app.ws('/*', {
    idleTimeout: 0,
    sendPingsAutomatically: false,
    maxBackpressure: MAX_BUFFERED,
    upgrade(res, req, context) {
      res.upgrade(
        { channel: req.getQuery('ch') },
        req.getHeader('sec-websocket-key'),
        req.getHeader('sec-websocket-protocol'),
        req.getHeader('sec-websocket-extensions'),
        context,
      )
    },
    open(socket) {
      const { channel } = /** @type {{channel?: string}} */ (socket.getUserData())
      if (channel) socket.subscribe(channel)
    },
  })
  app.post('/api/publish', res => {
    /** @type {Buffer[]} */
    const chunks = []
    res.onAborted(() => {})
    res.onData((chunk, last) => {
      // The library reuses the chunk after this call.
      chunks.push(Buffer.from(chunk.slice(0)))
      if (!last) return
      const { channel, push } = publication(Buffer.concat(chunks).toString())
      app.publish(channel, push)
      for (const waiting of held.take(channel)) {
        waiting.cork(() => {
          for (const [name, value] of HEADERS) waiting.writeHeader(name, value)
          waiting.end(push)
        })
      }
      res.end('{"result":{}}')
    })
  })
  app.any('/health', res => void res.end('{}'))
  app.listen(HOST, port, () => {})
}

/** @param {number} port */
async function ws(port) {
  /** @type {Map<string, Set<import('ws').WebSocket>>} */
  const channels = new Map()
  /** @type {Held<import('node:http').ServerResponse>} */
  const held = new Held()
  const server = createServer((request, response) => {
    if (request.url === '/health') return void response.end('{}')
    if (request.url?.startsWith(POLL)) {
      const name = new URL(request.url, 'http://control').searchParams.get('channel') ?? ''
      return void response.once('close', held.hold(response, name))
    }
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      const { channel, push } = publication(body)
      const bytes = Buffer.from(push)
      for (const socket of channels.get(channel) ?? []) socket.send(bytes, { binary: false })
      for (const waiting of held.take(channel)) waiting.writeHead(200, [...HEADERS.flat()]).end(bytes)
      response.end('{"result":{}}')
    })
  })
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket, request) => {
    const name = new URL(request.url ?? '/', 'ws://control').searchParams.get('ch')
    if (!name) return
    const subscribers = channels.get(name) ?? new Set()
    channels.set(name, subscribers.add(socket))
    socket.on('close', () => subscribers.delete(socket))
  })
  server.listen(port, HOST, BACKLOG)
}

const [kind, port] = process.argv.slice(2)
await (kind === 'uws' ? uws : ws)(Number(port))
