// Publishers that record acknowledged publications.

import http from 'node:http'
import { within } from '../../../kit/wait.js'

const AGAIN_AFTER = 20

/**
 * Publishes continuously over several connections to the API, and records which publications were acknowledged. Each
 * has a unique id and is sent only once, whatever the reply.
 */
export class Load {
  /** @type {Map<string, Map<string, string>>} channel -> position (`<epoch>:<offset>`) -> id */
  acknowledged = new Map()
  acks = 0
  /** @type {Map<number, number>} code -> replies with this error */
  errors = new Map()
  /** Publications without a reply, because the gateway went away. */
  unanswered = 0
  /** Longest response time, ms. */
  slowest = 0
  /** @type {string[]} */
  faults = []
  #urls
  #channels
  #batch
  #interval
  #padding
  #stopped = false
  #running
  /** @type {Set<{reached: () => boolean, resolve: () => void}>} */
  #waiting = new Set()

  /**
   * @param {() => string[]} urls of the gateways to publish to, read before each request
   * @param {string[]} channels
   * @param {{rate?: number, batch?: number, connections?: number, padding?: number}} [options] `rate`: publications/s
   *   in total; `batch`: per request; `padding`: extra bytes per publication
   */
  constructor(urls, channels, { rate = 500, batch = 5, connections = 8, padding = 0 } = {}) {
    this.#urls = urls
    this.#channels = channels
    this.#batch = batch
    this.#padding = 'x'.repeat(padding)
    this.#interval = (1000 * batch * connections) / rate
    for (const channel of channels) this.acknowledged.set(channel, new Map())
    this.#running = Promise.all(Array.from({ length: connections }, (_, i) => this.#publisher(i)))
  }

  /** @param {number} i */
  async #publisher(i) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    let node = i
    let due = performance.now() + (i * this.#interval) / 8
    for (let k = 0; !this.#stopped; k++) {
      const wait = due - performance.now()
      // Missed intervals are not made up for.
      due = Math.max(due, performance.now() - this.#interval) + this.#interval
      if (wait > 1) await new Promise(resolve => setTimeout(resolve, wait))
      const urls = this.#urls()
      const channel = this.#channels[(i + k) % this.#channels.length]
      const ids = Array.from({ length: this.#batch }, (_, b) => `${i}.${k}.${b}`)
      const began = performance.now()
      try {
        const replies = await this.#post(urls[node % urls.length], agent, channel, ids)
        this.slowest = Math.max(this.slowest, performance.now() - began)
        for (const [b, reply] of replies.entries()) this.#answered(channel, ids[b], reply)
      } catch {
        this.unanswered += ids.length
        node++
        await new Promise(resolve => setTimeout(resolve, AGAIN_AFTER))
      }
      for (const waiting of this.#waiting) {
        if (!waiting.reached()) continue
        this.#waiting.delete(waiting)
        waiting.resolve()
      }
    }
    agent.destroy()
  }

  /**
   * @param {string} url @param {http.Agent} agent @param {string} channel @param {string[]} ids
   * @returns {Promise<any[]>}
   */
  #post(url, agent, channel, ids) {
    const commands = ids.map(id => ({ publish: { channel, data: { id, x: this.#padding } } }))
    return new Promise((resolve, reject) => {
      const request = http.request(
        `${url}/api/batch`,
        { method: 'POST', agent, headers: { 'X-API-Key': 'key' } },
        async answer => {
          try {
            let text = ''
            for await (const chunk of answer) text += chunk
            resolve(JSON.parse(text).replies)
          } catch (error) {
            reject(error)
          }
        },
      )
      request.on('error', reject)
      request.end(JSON.stringify({ commands }))
    })
  }

  /** @param {string} channel @param {string} id @param {any} reply */
  #answered(channel, id, { error, publish }) {
    if (error) {
      this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
      return
    }
    const position = `${publish.epoch}:${publish.offset}`
    const positions = /** @type {Map<string, string>} */ (this.acknowledged.get(channel))
    if (positions.has(position))
      this.faults.push(`${channel}: ${id} and ${positions.get(position)} both are ${position}`)
    positions.set(position, id)
    this.acks++
  }

  get failed() {
    return this.errors.get(100) ?? 0
  }

  /** @param {() => boolean} reached @param {string} what */
  #when(reached, what) {
    const there = new Promise(resolve => this.#waiting.add({ reached, resolve: () => resolve(undefined) }))
    return within(
      there,
      () =>
        `${what}: ${this.acks} are acknowledged, ${this.failed} failed, ${this.unanswered} without answer`,
    )
  }

  /** @param {number} count resolves when this many more publications are acknowledged */
  acked(count) {
    const goal = this.acks + count
    return this.#when(() => this.acks >= goal, `${goal} publications to be acknowledged`)
  }

  /** @param {number} count resolves when this many more have failed or have no reply */
  lost(count) {
    const goal = this.failed + this.unanswered + count
    return this.#when(() => this.failed + this.unanswered >= goal, `${goal} publications to fail`)
  }

  /** Resolves when all requests have a reply. */
  async stop() {
    this.#stopped = true
    await within(this.#running, () => 'the answers to the last publications')
  }
}
