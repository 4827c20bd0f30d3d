// Clients of one process for rolling.js: WebSockets on recoverable channels that come back after each close, and
// check that each offset arrives once and in order. Messages of the parent: start, offsets, stop.

import WebSocket from 'ws'

/** Time within which a client comes back, ms: as for SDKs, it is random. */
const BACK_MS = 200
/** Connects at a time at the start. */
const BATCH = 50

const totals = { connects: 0, refused: 0, received: 0, missing: 0, repeated: 0, unrecovered: 0 }
/** @type {Record<string, number>} code -> number */
const closes = {}
/** @type {Record<string, number>} error of a refused connect -> number */
const refusals = {}
/** ms of each reconnect, from the close to the connect reply @type {number[]} */
const gaps = []
/** unix second -> reconnects @type {Record<string, number>} */
const perSecond = {}
let stopped = false

class Client {
  offset = 0
  epoch = ''
  closedAt = 0
  /** @type {WebSocket | null} */
  socket = null
  /** @type {() => void} */
  ready = () => {}

  /** @param {string} url @param {string} channel */
  constructor(url, channel) {
    this.url = url
    this.channel = channel
    this.connected = new Promise(resolve => {
      this.ready = () => resolve(undefined)
    })
  }

  open() {
    const socket = new WebSocket(this.url, { perMessageDeflate: false, skipUTF8Validation: true })
    this.socket = socket
    let opened = false
    socket.on('open', () => {
      opened = true
      const recover = this.epoch === '' ? {} : { recover: true, offset: this.offset, epoch: this.epoch }
      socket.send(
        `{"id":1,"connect":{}}\n${JSON.stringify({ id: 2, subscribe: { channel: this.channel, ...recover } })}`,
      )
    })
    socket.on('message', data => this.#frame(String(data)))
    socket.on('error', error => {
      if (stopped || opened) return
      totals.refused++
      refusals[error.message] = (refusals[error.message] ?? 0) + 1
    })
    socket.on('close', code => {
      if (stopped) return
      if (opened) closes[code] = (closes[code] ?? 0) + 1
      if (this.closedAt === 0) this.closedAt = performance.now()
      setTimeout(() => this.open(), Math.random() * BACK_MS)
    })
  }

  /** @param {string} frame */
  #frame(frame) {
    for (const line of frame.split('\n')) {
      if (line === '{}') {
        this.socket?.send('{}')
        continue
      }
      const { push, subscribe, error } = JSON.parse(line)
      if (error) throw new Error(line)
      if (push?.pub) this.#publication(push.pub.offset)
      else if (subscribe) this.#subscribed(subscribe)
    }
  }

  /** @param {any} reply */
  #subscribed({ offset = 0, epoch = '', recovered = false, publications = [] }) {
    totals.connects++
    if (this.closedAt > 0) {
      gaps.push(performance.now() - this.closedAt)
      const second = Math.floor(Date.now() / 1000)
      perSecond[second] = (perSecond[second] ?? 0) + 1
      this.closedAt = 0
      if (!recovered) totals.unrecovered++
      for (const publication of publications) this.#publication(publication.offset)
    } else this.offset = offset
    if (this.offset < offset) totals.missing += offset - this.offset
    this.offset = Math.max(this.offset, offset)
    this.epoch = epoch
    this.ready()
  }

  /** @param {number} offset */
  #publication(offset) {
    totals.received++
    if (offset <= this.offset) totals.repeated++
    else totals.missing += offset - this.offset - 1
    this.offset = Math.max(this.offset, offset)
  }
}

/** @type {Client[]} */
const clients = []

process.on('message', async (/** @type {any} */ message) => {
  if (message.type === 'start') {
    const { url, channels, count, first } = message
    for (let i = 0; i < count; i++) clients.push(new Client(url, `c${(first + i) % channels}`))
    for (let i = 0; i < count; i += BATCH) {
      const batch = clients.slice(i, i + BATCH)
      for (const client of batch) client.open()
      await Promise.all(batch.map(({ connected }) => connected))
    }
    process.send?.({ type: 'ready' })
  } else if (message.type === 'offsets') {
    process.send?.({ type: 'offsets', offsets: clients.map(({ channel, offset }) => [channel, offset]) })
  } else if (message.type === 'stop') {
    stopped = true
    process.send?.({ type: 'result', totals, closes, refusals, gaps, perSecond }, () => process.exit(0))
  }
})
process.on('disconnect', () => process.exit(1))
