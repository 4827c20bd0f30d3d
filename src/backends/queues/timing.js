import { setTimeout as wait } from 'node:timers/promises'

/** @import { DestinationContext } from './contract.js' */

const BASE_MS = 10
const SPREAD_MS = 10
const MAX_MS = 5000
const MAX_TRIES = 9

/**
 * Delay (ms) before the n-th retry: (10 ms + random 0 to 9 ms) × 2^n, at most 5 s; as in Centrifugo.
 * @param {number} tries n, from 1 @param {() => number} [random] 0 to below 1
 */
export function backoffDelay(tries, random = Math.random) {
  if (tries >= MAX_TRIES) return MAX_MS
  return Math.min(MAX_MS, (BASE_MS + Math.floor(random() * SPREAD_MS)) * 2 ** Math.max(1, tries))
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} after `ms`, or on abort; never rejects */
export const pause = (ms, signal) => wait(ms, undefined, { signal }).catch(() => {})

const FIRST_RECONNECT_MS = 100

/** @param {number} failures from 1 @returns {number} delay before the next reconnect, ms */
export const reconnectDelay = failures =>
  Math.min(MAX_MS, FIRST_RECONNECT_MS * 2 ** Math.min(failures - 1, 10)) * (0.75 + Math.random() / 2)

/**
 * @template T
 * @param {Promise<T>} work @param {number} ms @param {string} text error message on timeout
 * @returns {Promise<T>}
 */
export async function limited(work, ms, text) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(text)), ms)
  })
  try {
    return await Promise.race([work, /** @type {Promise<never>} */ (late)])
  } finally {
    clearTimeout(timer)
  }
}

/** @param {Promise<any>} work @param {number} ms @returns {Promise<void>} when it settles or times out */
export const within = (work, ms) =>
  limited(work, ms, 'late').then(
    () => {},
    () => {},
  )

/** The connection of a destination: reconnects with exponential backoff. @template L connection */
export class Link {
  /** null: not connected. @type {L | null} */
  current = null
  #context
  #open
  #close
  #failures = 0
  #stopped = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {DestinationContext<any>} context
   * @param {() => Promise<L>} open rejects, without open handles, if the server is unreachable
   * @param {(connection: L) => Promise<unknown>} close
   */
  constructor(context, open, close) {
    this.#context = context
    this.#open = open
    this.#close = close
  }

  async start() {
    try {
      const opened = await this.#open()
      if (this.#stopped) return this.#end(opened)
      this.current = opened
      this.#context.up()
    } catch (error) {
      if (!this.#stopped) this.#down(error)
    }
  }

  /** The server works: resets the backoff. */
  worked() {
    this.#failures = 0
  }

  /** No effect unless the connection is current. @param {L} connection @param {Error} reason */
  lost(connection, reason) {
    if (this.current !== connection) return
    this.current = null
    this.#end(connection)
    this.#down(reason)
  }

  /** @param {Error} reason */
  #down(reason) {
    this.#context.down(reason)
    this.#timer = setTimeout(() => this.start(), reconnectDelay(++this.#failures))
  }

  /** @param {L} connection */
  async #end(connection) {
    await this.#close(connection).catch(() => {})
  }

  async stop() {
    this.#stopped = true
    clearTimeout(this.#timer)
    const connection = this.current
    this.current = null
    if (connection !== null) await this.#end(connection)
  }
}
