// One receiver for each transport. Each follows one channel through a bad network, keeps its position as such a client
// does, and records what it received in an Account.

import http from 'node:http'
import { Centrifuge } from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { EventSource } from 'eventsource'
import WebSocket from 'ws'
import { LongPollSocket } from '../../client/long-poll-socket.js'
import { pause } from '../kit/wait.js'
import { Account } from './account.js'

/**
 * @typedef {object} Receiver
 * @property {Account} account
 * @property {Promise<unknown>} ready resolves when it follows the channel for the first time
 * @property {() => void} stop
 */

/**
 * Node's cluster may lose a connection that it passes to a dying worker: it is neither answered nor closed. Receivers
 * reconnect without an answer within this time, as the SDK does, ms.
 */
const ANSWER_TIMEOUT = 5000
/** Delay before a reconnect, ms. */
const RECONNECT_DELAY = 20
/** Timeout of a one-way poll, s. */
const POLL_TIMEOUT = 20

/** `fetch` for a response that begins at once. @param {any} url @param {any} init */
async function fetchSoon(url, init) {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error('no answer')), ANSWER_TIMEOUT)
  try {
    return await fetch(url, { ...init, signal: AbortSignal.any([init.signal, late.signal]) })
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The official SDK.
 * @param {string} label
 * @param {{transport: any, path: string, websocket?: any}} endpoint
 * @param {{protobuf?: boolean, delta?: boolean}} options
 * @returns {(port: number, channel: string) => Receiver}
 */
const sdk =
  (label, { transport, path, websocket = WebSocket }, { protobuf = false, delta = false }) =>
  (port, channel) => {
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
    subscription.on('publication', ({ data }) => {
      const { n, text } = protobuf ? JSON.parse(Buffer.from(data).toString()) : data
      account.receive(n, text)
    })
    client.on('disconnected', ({ code, reason }) => {
      if (code !== 0) account.faults.push(`${label}: disconnected with ${code} ${reason}`)
    })
    subscription.on('unsubscribed', ({ code, reason }) => {
      if (code !== 0) account.faults.push(`${label}: unsubscribed with ${code} ${reason}`)
    })
    const ready = new Promise(resolve => subscription.once('subscribed', resolve))
    subscription.subscribe()
    client.connect()
    return { account, ready, stop: () => client.disconnect() }
  }

/** A client without an SDK, which reconnects with its position until it is stopped. */
class PlainReceiver {
  stopped = false
  position = { offset: 0, epoch: '' }
  /** Ends the connection. */
  close = () => {}
  isReady = () => {}

  /** @param {string} label @param {number} port @param {string} channel */
  constructor(label, port, channel) {
    this.account = new Account(label)
    this.port = port
    this.channel = channel
    this.path = `/connection/${label}`
    this.ready = new Promise(resolve => {
      this.isReady = () => resolve(undefined)
    })
  }

  /** The connect request. */
  get request() {
    const { offset, epoch } = this.position
    const recover = epoch === '' ? {} : { recover: true, offset, epoch }
    return JSON.stringify({ subs: { [this.channel]: { recoverable: true, ...recover } } })
  }

  /** @param {string} text a push */
  receive(text) {
    const { connect, pub } = JSON.parse(text)
    if (pub) this.publication(pub)
    if (!connect) return
    const { offset = 0, epoch, recovered, was_recovering, publications = [] } = connect.subs[this.channel]
    if (was_recovering && !recovered) this.account.reportLoss()
    this.position = { offset, epoch }
    for (const publication of publications) this.publication(publication)
    this.isReady()
  }

  /** @param {any} publication */
  publication({ data, offset }) {
    if (offset) this.position.offset = offset
    this.account.receive(data.n, data.text)
  }

  /** @param {() => void} open */
  reconnect(open) {
    setTimeout(() => {
      if (!this.stopped) open()
    }, RECONNECT_DELAY)
  }

  stop = () => {
    this.stopped = true
    this.close()
  }
}

/** @param {PlainReceiver} receiver */
function uniWebSocket(receiver) {
  const open = () => {
    const url = `ws://127.0.0.1:${receiver.port}${receiver.path}`
    const socket = new WebSocket(url, { handshakeTimeout: ANSWER_TIMEOUT })
    receiver.close = () => socket.terminate()
    socket.on('open', () => socket.send(receiver.request))
    socket.on('message', data => receiver.receive(data.toString()))
    socket.on('error', () => {})
    socket.on('close', () => receiver.reconnect(open))
  }
  open()
}

/** @param {PlainReceiver} receiver */
function uniHttpStream(receiver) {
  const { port, path } = receiver
  const open = () => {
    let answered = false
    const request = http.request(
      { host: '127.0.0.1', port, method: 'POST', path, agent: false },
      response => {
        answered = true
        clearTimeout(late)
        let rest = ''
        response.setEncoding('utf8')
        response.on('data', text => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) receiver.receive(line)
        })
        response.on('error', () => {})
        response.on('close', () => receiver.reconnect(open))
      },
    )
    const late = setTimeout(() => request.destroy(new Error('no answer')), ANSWER_TIMEOUT)
    receiver.close = () => request.destroy()
    request.on('error', () => {
      clearTimeout(late)
      if (!answered) receiver.reconnect(open)
    })
    request.end(receiver.request)
  }
  open()
}

/** An EventSource reconnects automatically with the id of its last event. @param {PlainReceiver} receiver */
function uniSse(receiver) {
  const query = `cf_connect=${encodeURIComponent(receiver.request)}`
  const url = `http://127.0.0.1:${receiver.port}${receiver.path}?${query}`
  const source = new EventSource(url, { fetch: fetchSoon })
  source.onmessage = ({ data }) => receiver.receive(data)
  receiver.close = () => source.close()
}

/** @param {PlainReceiver} receiver */
async function uniPoll(receiver) {
  const { port, path, channel, account } = receiver
  let cursor = ''
  const stop = new AbortController()
  receiver.close = () => stop.abort()
  const poll = async () => {
    const timeout = cursor === '' ? '0' : `${POLL_TIMEOUT}`
    const query = new URLSearchParams({ channel, timeout, ...(cursor && { cursor }) })
    const answer = await fetch(`http://127.0.0.1:${port}${path}?${query}`, {
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(1000 * POLL_TIMEOUT + ANSWER_TIMEOUT)]),
    })
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}: ${await answer.text()}`)
    const { publications, lost, cursor: next } = await answer.json()
    if (lost) account.reportLoss()
    for (const publication of publications) receiver.publication(publication)
    cursor = next
    receiver.isReady()
  }
  while (!receiver.stopped) {
    try {
      await poll()
    } catch (error) {
      if (/^HTTP/.test(error.message)) account.faults.push(`uni_poll: ${error.message}`)
      await pause(RECONNECT_DELAY)
    }
  }
}

const endpoints = {
  websocket: { transport: 'websocket', path: '/connection/websocket' },
  http_stream: { transport: 'http_stream', path: '/connection/http_stream' },
  sse: { transport: 'sse', path: '/connection/sse' },
  poll: { transport: 'websocket', path: '/connection/poll', websocket: LongPollSocket },
}
const plain = {
  uni_websocket: uniWebSocket,
  uni_http_stream: uniHttpStream,
  uni_sse: uniSse,
  uni_poll: uniPoll,
}
const [delta, protobuf] = [{ delta: true }, { protobuf: true }]
/** @type {[keyof typeof endpoints, {delta?: boolean, protobuf?: boolean}[]][]} */
const variants = [
  ['websocket', [{}, delta, protobuf, { ...protobuf, ...delta }]],
  ['http_stream', [{}, delta, protobuf, { ...protobuf, ...delta }]],
  ['sse', [{}, delta]],
  ['poll', [{}, delta, protobuf]],
]

/** Every transport in each of its variants. @type {Record<string, (port: number, channel: string) => Receiver>} */
export const receivers = {
  ...Object.fromEntries(
    variants.flatMap(([name, list]) =>
      list.map(options => {
        const label = [name, ...Object.keys(options)].join(', ')
        return [label, sdk(label, endpoints[name], options)]
      }),
    ),
  ),
  ...Object.fromEntries(
    Object.entries(plain).map(([name, start]) => [
      name,
      (/** @type {number} */ port, /** @type {string} */ channel) => {
        const receiver = new PlainReceiver(name, port, channel)
        start(receiver)
        return receiver
      },
    ]),
  ),
}

/** Options that switch all transports on. */
export const transports = Object.fromEntries(
  ['http_stream', 'sse', 'poll', ...Object.keys(plain)].map(name => [name, { enabled: true }]),
)
