import { Refusal, reason } from './session.js'

/** @import { StatsMessage } from '../../../metrics/schema.js' */
/** @import { Session } from './session.js' */

/** Timeout without messages (one a second) for a lost connection, ms. */
const SILENCE_TIMEOUT = 8000
const FIRST_WAIT = 500
const LONGEST_WAIT = 15_000

/** Splits chunks into lines. @param {ReadableStream<Uint8Array>} body @returns {AsyncGenerator<string>} */
async function* linesOf(body) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
    rest = /** @type {string} */ (lines.pop())
    yield* lines
  }
}

/** The stats stream; reconnects with backoff. */
export class StatsStream {
  #session
  #abort = new AbortController()
  #failures = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** @type {(message: StatsMessage) => void} */
  onMessage = () => {}
  /** @type {(state: 'connecting' | 'live' | 'lost', detail: string) => void} */
  onState = () => {}

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    // Reconnect immediately after sleep.
    addEventListener('online', () => this.#reconnectNow())
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.#reconnectNow()
    })
  }

  start() {
    this.stop()
    this.#failures = 0
    this.#run()
  }

  stop() {
    this.#abort.abort()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #reconnectNow() {
    if (this.#timer === undefined) return
    this.#failures = 0
    this.stop()
    this.#run()
  }

  async #run() {
    const abort = new AbortController()
    this.#abort = abort
    this.#timer = undefined
    if (this.#failures === 0) this.onState('connecting', '')
    let why = 'the gateway ended the stream'
    const cut = () => abort.abort(new Error('silence'))
    let watchdog = setTimeout(cut, SILENCE_TIMEOUT)
    try {
      for await (const line of linesOf(await this.#session.stream(abort.signal))) {
        clearTimeout(watchdog)
        watchdog = setTimeout(cut, SILENCE_TIMEOUT)
        if (abort.signal.aborted) return
        this.#failures = 0
        this.onState('live', '')
        this.onMessage(JSON.parse(line))
      }
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return
      why = reason(error)
    } finally {
      clearTimeout(watchdog)
    }
    if (abort === this.#abort && this.#session.loggedIn) this.#wait(why)
  }

  /** @param {string} why */
  #wait(why) {
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures++)
    // A random delay, so that pages do not reconnect together.
    const wait = longest * (0.5 + Math.random() / 2)
    this.onState('lost', `${why}; retrying in ${Math.ceil(wait / 1000)} s`)
    this.#timer = setTimeout(() => this.#run(), wait)
  }
}
