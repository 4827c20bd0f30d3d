// A two-way long-poll endpoint whose responses are set by the test.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { until } from '../kit/wait.js'

/**
 * @typedef {object} Post
 * @property {URLSearchParams} query
 * @property {Record<string, any>} headers
 * @property {Buffer} body
 * @property {import('node:http').ServerResponse} response
 * @property {(status: number, headers?: Record<string, string>, body?: string | Buffer) => void} reply
 * @property {() => void} cut ends the connection without an answer
 */

export class FakeEndpoint {
  /** @type {Post[]} all received */
  posts = []
  /** @type {(post: Post) => void} POSTs of messages */
  onSend = post => post.reply(204)
  /** @type {(post: Post) => void} */
  onOpen = post => post.reply(200, { 'Halley-Session': 'S', 'Halley-Seq': '0' })
  /** @type {(post: Post) => void} by default, polls wait */
  onPoll = () => {}
  /** @type {(post: Post) => void} */
  onClose = post => post.reply(204)
  #server

  constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      const post = {
        query: new URL(request.url ?? '', 'http://x').searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks),
        response,
        reply: (
          /** @type {number} */ status,
          /** @type {Record<string, string>} */ headers = {},
          /** @type {string | Buffer} */ body = '',
        ) => void response.writeHead(status, headers).end(body),
        cut: () => response.destroy(),
      }
      this.posts.push(post)
      const { query } = post
      if (!query.has('session')) this.onOpen(post)
      else if (query.has('close')) this.onClose(post)
      else if (query.has('send')) this.onSend(post)
      else this.onPoll(post)
    })
  }

  /** @param {any} t */
  static async start(t) {
    const endpoint = new FakeEndpoint()
    endpoint.#server.listen(0, '127.0.0.1')
    await once(endpoint.#server, 'listening')
    t.teardown(() => {
      endpoint.#server.close()
      endpoint.#server.closeAllConnections()
    })
    return endpoint
  }

  get url() {
    const { port } = /** @type {import('node:net').AddressInfo} */ (this.#server.address())
    return `ws://127.0.0.1:${port}/connection/poll`
  }

  /** @param {(post: Post) => boolean} matches @param {number} [count] @returns {Promise<Post[]>} the first ones */
  some(matches, count = 1) {
    return until(() => {
      const found = this.posts.filter(matches)
      return found.length >= count && found.slice(0, count)
    }, `${count} posts where ${matches}`)
  }
}

/** @param {Post} post */
export const isSend = ({ query }) => query.has('send')
/** @param {Post} post */
export const isPoll = ({ query }) => query.has('ack')
/** @param {Post} post */
export const isClose = ({ query }) => query.has('close')

/** Handles each post with the next handler, later ones with the last one. @param {...((post: Post) => void)} handlers */
export const inTurn = (...handlers) => {
  let next = 0
  return (/** @type {Post} */ post) => handlers[Math.min(next++, handlers.length - 1)](post)
}
