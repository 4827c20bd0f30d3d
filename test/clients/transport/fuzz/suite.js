// Generated HTTP requests, right and wrong ones, over real sockets, to the transports and the server API: no answer is
// an internal error.

import { connect } from 'node:net'
import { startGateway } from '../../../kit/gateway.js'
import { StreamClient } from '../../../kit/stream-client.js'
import { fuzz } from '../../session/fuzz/run.js'
import { history, open, token, tokenClient, user } from '../../session/support.js'
import { generateRequest, Memory } from './requests.js'

/** @import { Random } from '../../session/fuzz/random.js' */

/** Responses without an end, mostly streams, that stay open. */
const MAX_OPEN = 32
/** Time without a response, ms: the request is incomplete, or its poll waits. */
const SILENCE = 250
/** Time without more data, ms: a stream. */
const PAUSE = 30
/** Maximum characters read of a response. */
const MAX_TEXT = 100_000
/** Statuses about HTTP itself: not implemented, version not supported. */
const OF_HTTP = [501, 505]

const on = { enabled: true }
const kept = { ...open, ...history }
const config = {
  log: { level: 'info' },
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: { ...kept, allow_recovery: true, join_leave: true, allowed_delta_types: ['fossil'] },
    namespaces: [
      { name: 'cc', ...kept, history_size: 3, force_recovery: true, force_push_join_leave: true },
      { name: 'shut' },
      { name: 'quiet', allow_subscribe_for_client: true },
    ],
  },
  http_stream: on,
  sse: on,
  poll: { enabled: true, timeout: '1s' },
  uni_websocket: on,
  uni_sse: on,
  uni_http_stream: on,
  uni_poll: { enabled: true, timeout: '1s', max_timeout: '1s' },
  admin: { password: 'the admin key of this test' },
  prometheus: on,
}

/** @param {string} text @returns {boolean} whether it is all of an answer */
function isWhole(text) {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = text.slice(0, end)
  if (/^HTTP\/1\.1 [23]04/.test(head)) return true
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length - end - 4 >= Number(length)
}

/** A request on a new connection, and the data received so far. */
class Exchange {
  /** latin1 */
  text = ''
  isOpen = true
  #socket

  /** @param {number} port @param {Buffer} bytes */
  constructor(port, bytes) {
    this.bytes = bytes
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => {})
    this.#socket.write(bytes)
    /** Resolves when the response is complete, the connection has ended, or no more data arrives for the moment. */
    this.settled = new Promise(resolve => {
      let timer = setTimeout(resolve, SILENCE)
      const end = () => {
        clearTimeout(timer)
        this.close()
        resolve(undefined)
      }
      this.#socket.on('close', end).on('data', data => {
        clearTimeout(timer)
        timer = setTimeout(resolve, PAUSE)
        if (this.text.length < MAX_TEXT) this.text += data.toString('latin1')
        if (isWhole(this.text)) end()
      })
    })
  }

  close() {
    this.isOpen = false
    this.#socket.destroy()
  }

  /** @returns {string} the fault of the response; '' if none */
  get fault() {
    if (this.text === '') return ''
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.text)?.[1] ?? 0)
    if (status >= 100 && (status < 500 || OF_HTTP.includes(status))) return ''
    // A busy worker sends Retry-After.
    if (status === 503 && /^retry-after: /im.test(this.text)) return ''
    // A worker was blocked for two seconds.
    if (status === 503 && this.bytes.includes(' /health ')) return ''
    return `answered with ${JSON.stringify(this.text.slice(0, 300))}`
  }
}

/**
 * @param {any} t @param {'uws' | 'node'} driver @param {number} count of requests, at most
 * @param {number} most ms after which no further request begins
 */
export async function fuzzHttp(t, driver, count, most) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  const watchers = [
    await user(t, gateway, { sub: 'watcher' }),
    await StreamClient.connected(gateway.url, 'http_stream', { token: token({ sub: 'watcher' }) }),
  ]
  let answered = 0
  let accepted = 0
  /** @type {Exchange[]} */
  const open = []
  /** @param {Exchange} exchange */
  const check = exchange => {
    exchange.close()
    if (exchange.text !== '') answered++
    if (/^HTTP\/1\.1 (?:20|101)/.test(exchange.text)) accepted++
    return exchange.fault === '' ? null : { fault: exchange.fault, input: exchange.bytes }
  }
  const begin = () => {
    const memory = new Memory()
    return async (/** @type {Random} */ random) => {
      const exchange = new Exchange(gateway.port, generateRequest(random, memory))
      await exchange.settled
      memory.learn(exchange.text)
      if (!exchange.isOpen) return check(exchange)
      open.push(exchange)
      return open.length > MAX_OPEN ? check(/** @type {Exchange} */ (open.shift())) : null
    }
  }
  const requests = await fuzz(t, { gateway, watchers, seed: 20261123, count, most, begin })
  t.same(open.map(check).filter(Boolean), [])
  t.comment(`${requests} requests, ${answered} answered, ${accepted} accepted`)
  t.ok(answered > requests / 4, `${answered} of ${requests} requests were answered`)
  t.ok(accepted > requests / 20, `${accepted} of them were right`)
  await watchers[1].close()
  t.equal((await gateway.stop()).code, 0)
}
