import { connect } from 'node:net'
import { post } from './post.js'

/** Connections that are opened at once: less than a listen backlog of 512 holds. */
const CONCURRENCY = 256
/** Seconds that a poll may wait: longer than any round. */
const TIMEOUT = 60

/** @param {number} channel @returns {string} its name: one that keeps history, so that there is something for cursors to do */
const nameOf = channel => `kept:ch${channel}`

/**
 * Clients that poll again as soon as they are answered, each on a connection that it keeps.
 */
export class Pollers {
  /** Answers since the start. */
  answers = 0
  /** Publications in them. */
  received = 0
  /** Answers that were none, and connections that ended. */
  faults = 0
  #apis
  #conns
  #channels
  /** @type {import('node:net').Socket[]} */
  #sockets = []
  #stopping = false
  /** @type {{until: number, resolve: () => void} | null} */
  #waiting = null

  /**
   * @param {import('./load.js').Api[]} apis over which they are spread; who publishes is at the first one
   * @param {number} conns
   * @param {number} channels
   */
  constructor(apis, conns, channels) {
    this.#apis = apis
    this.#conns = conns
    this.#channels = channels
  }

  /** Connects all, and lets them poll for the first time. */
  async start() {
    let next = 0
    const one = async () => {
      while (next < this.#conns) {
        const i = next++
        const api = (i + Math.floor(i / this.#channels)) % this.#apis.length
        await this.#connect(this.#apis[api], nameOf(i % this.#channels))
      }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, one))
  }

  /**
   * @param {import('./load.js').Api} api
   * @param {string} channel
   * @returns {Promise<void>}
   */
  #connect({ host, port }, channel) {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true }, () => {
        poll(socket, channel, '')
        resolve()
      })
      let text = ''
      socket.setEncoding('latin1')
      socket.on('data', chunk => {
        text += chunk
        const answer = wholeAnswer(text)
        if (answer === null) return
        text = ''
        this.#answered(answer)
        poll(socket, channel, /"cursor":"([^"]*)"/.exec(answer)?.[1] ?? '')
      })
      socket.on('error', error => {
        this.faults++
        reject(error)
      })
      socket.on('end', () => {
        if (!this.#stopping) this.faults++
      })
      this.#sockets.push(socket)
    })
  }

  /** @param {string} answer */
  #answered(answer) {
    this.answers++
    if (!answer.startsWith('HTTP/1.1 200')) this.faults++
    this.received += answer.split('"data":').length - 1
    if (this.#waiting === null || this.answers < this.#waiting.until) return
    this.#waiting.resolve()
    this.#waiting = null
  }

  /**
   * @param {number} until
   * @returns {Promise<void>} when there have been so many answers
   */
  answered(until) {
    return new Promise(resolve => {
      if (this.answers >= until) resolve()
      else this.#waiting = { until, resolve }
    })
  }

  /**
   * @param {number} channel
   * @param {number} size bytes of the payload
   */
  async publish(channel, size) {
    const data = { text: 'x'.repeat(Math.max(0, size - 11)) }
    await post(this.#apis[0], 'publish', JSON.stringify({ channel: nameOf(channel), data }))
  }

  stop() {
    this.#stopping = true
    for (const socket of this.#sockets) socket.destroy()
  }
}

/**
 * @param {import('node:net').Socket} socket
 * @param {string} channel
 * @param {string} cursor
 */
function poll(socket, channel, cursor) {
  const path = `/connection/uni_poll?channel=${channel}&timeout=${TIMEOUT}&cursor=${cursor}`
  socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`)
}

/**
 * @param {string} text what has come
 * @returns {string | null} null: not all of it
 */
function wholeAnswer(text) {
  const head = text.indexOf('\r\n\r\n')
  if (head < 0) return null
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0)
  return text.length >= head + 4 + length ? text : null
}
