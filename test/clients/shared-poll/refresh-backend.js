// A real refresh backend of shared polls, with the signatures that an application makes.

import { createHash, createHmac } from 'node:crypto'
import { Backend, json } from '../../backends/hooks/backend.js'
import { until } from '../../kit/wait.js'

export const SECRET = 'secret that signs the keys, long enough'

const now = () => Math.floor(Date.now() / 1000)

/**
 * Signs keys that a user may track.
 * @param {string} channel @param {string[]} keys in the order of the request
 * @param {{user?: string, secret?: string, iat?: number, ttl?: number, exp?: number}} [options] iat, exp: unix s;
 *   exp 0: never; ttl: s
 * @returns {string}
 */
export function sign(channel, keys, { user = '', secret = SECRET, iat = now(), ttl = 3600, exp } = {}) {
  const until = exp ?? iat + ttl
  const hash = createHash('sha256').update(keys.join('\0')).digest('hex')
  const text = [iat, until, user, channel, hash].join('\0')
  return `${iat}:${until}:${createHmac('sha256', secret).update(text).digest('hex')}`
}

/** @typedef {{data?: any, version?: number, removed?: boolean}} Item */
/** @typedef {{path: string, channel: string, items: {key: string, version?: number}[], time: number}} Round `time`: ms */
/** @typedef {import('../../backends/hooks/backend.js').Reply} Reply */

/** Answers with the items that a test has set. */
export class RefreshBackend {
  /** @type {Round[]} requests, in order */
  rounds = []
  /** @type {Map<string, string>} by channel */
  epochs = new Map()
  /**
   * By channel: answers in place of the items. undefined: the items; null: never.
   * @type {Map<string, (round: Round) => Reply | null | undefined | Promise<Reply | null | undefined>>}
   */
  answers = new Map()
  /** @type {Map<string, Record<string, Item>>} */
  #items = new Map()
  #backend

  /** @param {Backend} backend */
  constructor(backend) {
    this.#backend = backend
    backend.answer = async ({ json: body, path }) => {
      const round = { path, channel: body.channel, items: body.items, time: performance.now() }
      this.rounds.push(round)
      const reply = await this.answers.get(round.channel)?.(round)
      return reply === undefined ? json({ result: this.resultOf(round) }) : reply
    }
  }

  /** @param {any} t ends with this test */
  static async start(t) {
    return new RefreshBackend(await Backend.start(t))
  }

  get url() {
    return `${this.#backend.url}/refresh`
  }

  /** @param {string} channel @param {Record<string, Item>} items added, or replaced */
  put(channel, items) {
    this.#items.set(channel, { ...this.#items.get(channel), ...items })
  }

  /** @param {{channel: string, items: {key: string}[]}} request @returns {any} the result of a well-behaved backend */
  resultOf({ channel, items }) {
    const known = this.#items.get(channel) ?? {}
    return {
      items: items.filter(({ key }) => key in known).map(({ key }) => ({ key, ...known[key] })),
      ...(this.epochs.has(channel) && { epoch: this.epochs.get(channel) }),
    }
  }

  /** @param {string} channel @param {string} [key] @returns {Round[]} */
  of(channel, key) {
    return this.rounds.filter(
      round => round.channel === channel && (!key || round.items.some(item => item.key === key)),
    )
  }

  /**
   * Waits for further requests.
   * @param {string} channel @param {number} [count] @param {string} [key] in them
   * @returns {Promise<Round>} the last one
   */
  async next(channel, count = 1, key = '') {
    const aim = this.of(channel, key).length + count
    await until(
      () => this.of(channel, key).length >= aim,
      () => `request ${aim} for ${channel} ${key}`,
    )
    return this.of(channel, key)[aim - 1]
  }
}
