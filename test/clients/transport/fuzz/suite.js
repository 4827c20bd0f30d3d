// Generated HTTP requests, right and wrong ones, over real sockets, to the transports and the server API: no worker
// dies, no answer is a fault of the server, nothing is logged as an error, and clients beside them lose nothing. A
// failure prints seed, number and bytes of the request; HALLEY_FUZZ_SEED sets another seed.

import { connect } from 'node:net'
import { startGateway } from '../../../kit/gateway.js'
import { StreamClient } from '../../../kit/stream-client.js'
import { Random } from '../../session/fuzz/random.js'
import { history, open, token, tokenClient, user } from '../../session/support.js'
import { generateRequest, Memory, QUIET } from './requests.js'

const AT_ONCE = 8
const SEED = Number(process.env.HALLEY_FUZZ_SEED ?? 20261123)
/** Streams that each of them keeps open. */
const HELD = 4
/** ms without an answer: the end of the request never came, or its poll waits. */
const SILENCE = 250
/** ms without more of an answer: a stream. */
const PAUSE = 30
/** Characters of an answer that are read. */
const MAX_TEXT = 100_000
/** Answers that are about HTTP itself: not implemented, version not supported. */
const OF_HTTP = [501, 505]

const config = {
  log: { level: 'info' },
  client: tokenClient({ allow_anonymous_connect_without_token: true }),
  channel: {
    without_namespace: {
      ...open,
      ...history,
      allow_recovery: true,
      join_leave: true,
      allowed_delta_types: ['fossil'],
    },
    namespaces: [
      { name: 'cc', ...open, ...history, history_size: 3, force_recovery: true, force_push_join_leave: true },
      { name: 'shut' },
      { name: 'quiet', allow_subscribe_for_client: true },
    ],
  },
  http_stream: { enabled: true },
  sse: { enabled: true },
  poll: { enabled: true, timeout: '1s' },
  uni_websocket: { enabled: true },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_poll: { enabled: true, timeout: '1s', max_timeout: '1s' },
  admin: { password: 'the admin key of this test' },
  prometheus: { enabled: true },
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

/** A request on a connection of its own, and what came back so far. */
class Exchange {
  /** latin1 */
  text = ''
  isOpen = true
  #socket

  /** @param {number} port @param {Buffer} bytes @param {string} label seed and number */
  constructor(port, bytes, label) {
    this.bytes = bytes
    this.label = label
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => {})
    this.#socket.write(bytes)
    /** Resolves when the answer is whole, or the connection has ended, or nothing more comes for the moment. */
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

  /** @returns {string} what is wrong with the answer; '' if nothing is */
  get fault() {
    if (this.text === '') return ''
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(this.text)?.[1] ?? 0)
    if (status >= 100 && (status < 500 || OF_HTTP.includes(status))) return ''
    // A worker that is too busy says when to come back.
    if (status === 503 && /^retry-after: /im.test(this.text)) return ''
    // A worker stood still for two seconds.
    if (status === 503 && this.bytes.includes(' /health ')) return ''
    return `answered with ${JSON.stringify(this.text.slice(0, 300))}`
  }
}

/**
 * @param {any} t
 * @param {'uws' | 'node'} driver
 * @param {number} count of requests, at most
 * @param {number} most ms after which no further request begins
 */
export async function fuzzHttp(t, driver, count, most) {
  const gateway = await startGateway(t, { ...config, http_server: { driver } })
  const watchers = [
    await user(t, gateway, { sub: 'watcher' }),
    await StreamClient.connected(gateway.url, 'http_stream', { token: token({ sub: 'watcher' }) }),
  ]
  t.teardown(() => watchers.map(watcher => watcher.close()))
  for (const watcher of watchers) await watcher.subscribe(QUIET)
  t.comment(`seed ${SEED}`)

  const end = Date.now() + most
  let published = 0
  let requests = 0
  let answered = 0
  let accepted = 0
  let isBroken = false
  /** @param {Exchange} exchange */
  const check = exchange => {
    exchange.close()
    if (exchange.text !== '') answered++
    if (/^HTTP\/1\.1 (?:20|101)/.test(exchange.text)) accepted++
    if (exchange.fault === '' || isBroken) return
    isBroken = true
    t.fail(exchange.fault, { seed: exchange.label, request: exchange.bytes.toString('latin1') })
  }
  /** @param {number} seed */
  async function fuzz(seed) {
    const random = new Random(seed)
    const memory = new Memory()
    /** @type {Exchange[]} */
    const held = []
    for (let n = 0; requests < count && Date.now() < end && !isBroken; n++) {
      requests++
      const exchange = new Exchange(gateway.port, generateRequest(random, memory), `${seed}, request ${n}`)
      await exchange.settled
      memory.learn(exchange.text)
      if (exchange.isOpen) held.push(exchange)
      else check(exchange)
      if (held.length > HELD) check(/** @type {Exchange} */ (held.shift()))
      if (seed === SEED) await gateway.api('publish', { channel: QUIET, data: ++published })
    }
    held.forEach(check)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => fuzz(SEED + i)))
  t.comment(`${requests} requests, ${answered} answered, ${accepted} accepted`)
  t.ok(answered > requests / 4, `${answered} of ${requests} requests were answered`)
  t.ok(accepted > requests / 20, `${accepted} of them were right`)

  t.ok(published > 0, `${published} publications`)
  for (const watcher of watchers) {
    for (let n = 1; n <= published; n++) {
      const { pub } = await watcher.push('pub')
      if (pub.data !== n) return t.fail(`${pub.data} instead of ${n} was delivered`)
    }
  }
  t.equal((await gateway.stop()).code, 0)
  t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died'))
  t.strictSame(
    gateway.lines.filter(({ level }) => level >= 50),
    [],
    'nothing was logged as an error',
  )
}
