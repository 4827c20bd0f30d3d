// One receiver for each way in. Each follows one channel through a bad network, keeps its position as such a client
// does, and gives an account of what it got.

import http from 'node:http'
import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { EventSource } from 'eventsource'
import WebSocket from 'ws'
import { LongPollSocket } from '../../client/long-poll-socket.js'
import { Account } from './account.js'

/**
 * @typedef {object} Receiver
 * @property {Account} account
 * @property {Promise<unknown>} ready resolves when it follows the channel for the first time
 * @property {() => void} stop
 */

/**
 * Node's cluster may lose a connection that it hands to a worker which dies: nobody answers there, and nobody ends
 * it. As real clients do, and as the SDK does, who gets no answer within this time tries again, ms.
 */
const PATIENCE = 5000
/** How long a one-way poll may wait for something to come, s. */
const POLL_WAIT = 20

/**
 * `fetch` for a response that begins at once.
 * @param {any} url
 * @param {any} init
 */
async function fetchSoon(url, init) {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error('no answer')), PATIENCE)
  try {
    return await fetch(url, { ...init, signal: AbortSignal.any([init.signal, late.signal]) })
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The official SDK, with everything it needs in Node.js.
 * @param {number} port
 * @param {string} channel
 * @param {{label: string, transport: any, path: string, protobuf?: boolean, delta?: boolean, websocket?: any}} way
 * @returns {Receiver}
 */
function sdk(
  port,
  channel,
  { label, transport, path, protobuf = false, delta = false, websocket = WebSocket },
) {
  const account = new Account(label)
  const scheme = transport === 'websocket' ? 'ws' : 'http'
  const Client = protobuf ? ProtobufCentrifuge : Centrifuge
  const client = new Client([{ transport, endpoint: `${scheme}://127.0.0.1:${port}${path}` }], {
    websocket,
    fetch,
    readableStream: ReadableStream,
    eventsource: EventSource,
    emulationEndpoint: `http://127.0.0.1:${port}/emulation`,
    minReconnectDelay: 20,
    maxReconnectDelay: 200,
    timeout: 3000,
  })
  const subscription = client.newSubscription(channel, {
    minResubscribeDelay: 20,
    maxResubscribeDelay: 200,
    ...(delta ? { delta: 'fossil' } : null),
  })
  subscription.on('subscribed', ({ wasRecovering, recovered }) => {
    if (wasRecovering && !recovered) account.reportLoss()
  })
  const read = protobuf
    ? (/** @type {Uint8Array} */ data) => JSON.parse(Buffer.from(data).toString())
    : (/** @type {any} */ data) => data
  subscription.on('publication', ({ data }) => {
    const { n, text } = read(data)
    account.receive(n, text)
  })
  client.on('disconnected', ({ code, reason }) => {
    if (code !== 0) account.faults.push(`${label}: ended with ${code} ${reason}`)
  })
  subscription.on('unsubscribed', ({ code, reason }) => {
    if (code !== 0) account.faults.push(`${label}: unsubscribed with ${code} ${reason}`)
  })
  const ready = new Promise(resolve => subscription.once('subscribed', resolve))
  subscription.subscribe()
  client.connect()
  return { account, ready, stop: () => client.disconnect() }
}

/** A plain client that comes back with its position, again and again. */
class Returning {
  account
  ready
  stopped = false
  position = { offset: 0, epoch: '' }
  /** @type {() => void} */
  #isReady = () => {}

  /**
   * @param {string} label
   * @param {string} channel
   */
  constructor(label, channel) {
    this.account = new Account(label)
    this.channel = channel
    this.ready = new Promise(resolve => {
      this.#isReady = () => resolve(undefined)
    })
  }

  /** The connect request. */
  get request() {
    const { offset, epoch } = this.position
    const recover = epoch === '' ? {} : { recover: true, offset, epoch }
    return JSON.stringify({ subs: { [this.channel]: { recoverable: true, ...recover } } })
  }

  /** @param {any} push */
  receive(push) {
    if (push.connect) {
      const {
        offset = 0,
        epoch,
        recovered,
        was_recovering,
        publications = [],
      } = push.connect.subs[this.channel]
      if (was_recovering && !recovered) this.account.reportLoss()
      this.position = { offset, epoch }
      for (const publication of publications) this.publication(publication)
      this.#isReady()
    } else if (push.pub) this.publication(push.pub)
  }

  /** @param {any} publication */
  publication({ data, offset }) {
    if (offset) this.position.offset = offset
    this.account.receive(data.n, data.text)
  }

  isReady() {
    this.#isReady()
  }
}

/**
 * @param {number} port
 * @param {string} channel
 * @returns {Receiver}
 */
function uniWebSocket(port, channel) {
  const self = new Returning('uni_websocket', channel)
  /** @type {WebSocket} */
  let socket
  const open = () => {
    if (self.stopped) return
    socket = new WebSocket(`ws://127.0.0.1:${port}/connection/uni_websocket`, { handshakeTimeout: PATIENCE })
    socket.on('open', () => socket.send(self.request))
    socket.on('message', data => self.receive(JSON.parse(data.toString())))
    socket.on('error', () => {})
    socket.on('close', () => setTimeout(open, 20))
  }
  open()
  return {
    account: self.account,
    ready: self.ready,
    stop() {
      self.stopped = true
      socket.terminate()
    },
  }
}

/**
 * @param {number} port
 * @param {string} channel
 * @returns {Receiver}
 */
function uniHttpStream(port, channel) {
  const self = new Returning('uni_http_stream', channel)
  /** @type {http.ClientRequest} */
  let request
  const again = () => setTimeout(open, 20)
  const open = () => {
    if (self.stopped) return
    request = http.request(
      { host: '127.0.0.1', port, method: 'POST', path: '/connection/uni_http_stream', agent: false },
      response => {
        clearTimeout(late)
        let rest = ''
        response.setEncoding('utf8')
        response.on('data', text => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) self.receive(JSON.parse(line))
        })
        response.on('error', () => {})
        response.on('close', again)
      },
    )
    const asked = request
    const late = setTimeout(() => asked.destroy(new Error('no answer')), PATIENCE)
    request.on('error', () => {
      clearTimeout(late)
      if (!(/** @type {any} */ (asked).res)) again()
    })
    request.end(self.request)
  }
  open()
  return {
    account: self.account,
    ready: self.ready,
    stop() {
      self.stopped = true
      request.destroy()
    },
  }
}

/**
 * An EventSource, which reconnects and tells the id of its last event by itself.
 * @param {number} port
 * @param {string} channel
 * @returns {Receiver}
 */
function uniSse(port, channel) {
  const self = new Returning('uni_sse', channel)
  const request = encodeURIComponent(self.request)
  const source = new EventSource(`http://127.0.0.1:${port}/connection/uni_sse?cf_connect=${request}`, {
    fetch: fetchSoon,
  })
  source.onmessage = ({ data }) => self.receive(JSON.parse(data))
  return { account: self.account, ready: self.ready, stop: () => source.close() }
}

/**
 * @param {number} port
 * @param {string} channel
 * @returns {Receiver}
 */
function uniPoll(port, channel) {
  const self = new Returning('uni_poll', channel)
  let cursor = ''
  const stop = new AbortController()
  const poll = async () => {
    const query = new URLSearchParams({
      channel,
      timeout: cursor === '' ? '0' : `${POLL_WAIT}`,
      ...(cursor && { cursor }),
    })
    const answer = await fetch(`http://127.0.0.1:${port}/connection/uni_poll?${query}`, {
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(1000 * POLL_WAIT + PATIENCE)]),
    })
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}: ${await answer.text()}`)
    const { publications, lost, cursor: next } = await answer.json()
    if (lost) self.account.reportLoss()
    for (const publication of publications) self.publication(publication)
    cursor = next
    self.isReady()
  }
  const loop = async () => {
    while (!stop.signal.aborted) {
      try {
        await poll()
      } catch (error) {
        if (/^HTTP/.test(error.message)) self.account.faults.push(`uni_poll: ${error.message}`)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    }
  }
  loop()
  return { account: self.account, ready: self.ready, stop: () => stop.abort() }
}

const WS = '/connection/websocket'
const STREAM = '/connection/http_stream'
const POLL = '/connection/poll'
const websocket = LongPollSocket

/**
 * Every way in.
 * @type {Record<string, (port: number, channel: string) => Receiver>}
 */
export const receivers = {
  ...Object.fromEntries(
    [
      { label: 'websocket', transport: 'websocket', path: WS },
      { label: 'websocket, delta', transport: 'websocket', path: WS, delta: true },
      { label: 'websocket, protobuf', transport: 'websocket', path: WS, protobuf: true },
      { label: 'websocket, protobuf, delta', transport: 'websocket', path: WS, protobuf: true, delta: true },
      { label: 'http_stream', transport: 'http_stream', path: STREAM },
      { label: 'http_stream, delta', transport: 'http_stream', path: STREAM, delta: true },
      { label: 'http_stream, protobuf', transport: 'http_stream', path: STREAM, protobuf: true },
      {
        label: 'http_stream, protobuf, delta',
        transport: 'http_stream',
        path: STREAM,
        protobuf: true,
        delta: true,
      },
      { label: 'sse', transport: 'sse', path: '/connection/sse' },
      { label: 'sse, delta', transport: 'sse', path: '/connection/sse', delta: true },
      { label: 'poll', transport: 'websocket', path: POLL, websocket },
      { label: 'poll, delta', transport: 'websocket', path: POLL, websocket, delta: true },
      { label: 'poll, protobuf', transport: 'websocket', path: POLL, websocket, protobuf: true },
    ].map(way => [
      way.label,
      (/** @type {number} */ port, /** @type {string} */ channel) => sdk(port, channel, way),
    ]),
  ),
  uni_websocket: uniWebSocket,
  uni_http_stream: uniHttpStream,
  uni_sse: uniSse,
  uni_poll: uniPoll,
}

/** The transports to be switched on. */
export const transports = {
  http_stream: { enabled: true },
  sse: { enabled: true },
  poll: { enabled: true },
  uni_websocket: { enabled: true },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_poll: { enabled: true },
}
