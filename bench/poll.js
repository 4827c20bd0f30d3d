// One-way long-polls, which drones lack, in rounds: a message, its responses, and the next polls.

import { setTimeout as sleep } from 'node:timers/promises'
import { Dialer } from '../fleet/drone/transport/dialer.js'
import { HttpWire } from '../fleet/drone/transport/http.js'
import { Target } from '../fleet/drone/transport/target.js'
import { OPEN } from '../fleet/drone/transport/wire.js'
import { rounded } from '../fleet/runner/figures.js'
import { RunError } from '../fleet/runner/target.js'
import { measurement } from './measurement.js'

const CHANNELS = 10
const MESSAGE_BYTES = 512
/** Concurrent connects: fewer than a listen backlog of 512. */
const CONCURRENCY = 256
/** Poll timeout, s: longer than any round. */
const TIMEOUT = 60
/** ms from the last response of a round to the next message. */
const ROUND_PAUSE_MS = 20
const WARM_UP_MS = 1000
const OWN_FILES = 200

class Poller extends HttpWire {
  #text = ''
  #resolve

  /** @param {Target} target @param {string} channel @param {Pollers} group @param {() => void} resolve connected, failed */
  constructor(target, channel, group, resolve) {
    super(target)
    this.channel = channel
    this.group = group
    this.#resolve = resolve
  }

  opened() {
    this.state = OPEN
    this.dialer.unwatch(this)
    this.#poll('')
    this.#resolve()
  }

  /** @param {string} cursor */
  #poll(cursor) {
    const path = `/connection/uni_poll?channel=${this.channel}&timeout=${TIMEOUT}&cursor=${cursor}`
    this.write(Buffer.from(this.target.head(`GET ${path}`, '')))
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    this.#text += buffer.toString('latin1', start, end)
  }

  done() {
    const text = this.#text
    this.#text = ''
    this.group.answered(this.status, text)
    this.#poll(/"cursor":"([^"]*)"/.exec(text)?.[1] ?? '')
  }

  gone() {
    this.group.ended()
    this.#resolve()
  }
}

/** In the namespace with history, which cursors need. @param {number} channel */
const nameOf = channel => `kept:ch${channel}`

/** Clients that poll again after each response, each over one connection. */
class Pollers {
  answers = 0
  received = 0
  /** Error responses, and ended connections. */
  faults = 0
  #url
  #key
  /** @type {Poller[]} */
  #pollers = []
  #stopping = false
  /** @type {{answers: number, resolve: () => void} | null} */
  #waiting = null

  /** @param {string} url @param {string} key of the API */
  constructor(url, key) {
    this.#url = url
    this.#key = key
  }

  /** @param {number} count of clients to connect and start */
  async start(count) {
    // It does not dial: transport and listener are unused.
    const options = { targets: [this.#url], allow: [new URL(this.#url).host], addresses: [], ports: '' }
    const dialer = new Dialer({ ...options, transport: 'websocket' }, /** @type {any} */ ({}))
    const target = new Target(dialer, this.#url)
    const connectNext = async () => {
      while (this.#pollers.length < count)
        await new Promise(resolve => {
          const channel = nameOf(this.#pollers.length % CHANNELS)
          const poller = new Poller(target, channel, this, () => resolve(undefined))
          this.#pollers.push(poller)
          poller.open()
        })
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, connectNext))
  }

  ended() {
    if (!this.#stopping) this.faults++
  }

  /** @param {number} status @param {string} answer */
  answered(status, answer) {
    this.answers++
    if (status !== 200) this.faults++
    this.received += answer.split('"data":').length - 1
    if (this.#waiting === null || this.answers < this.#waiting.answers) return
    this.#waiting.resolve()
    this.#waiting = null
  }

  /** Publishes to a channel. @param {number} channel @returns {Promise<number>} responses, all received */
  async round(channel) {
    const polls = Math.ceil((this.#pollers.length - channel) / CHANNELS)
    const answers = this.answers + polls
    const data = { text: 'x'.repeat(MESSAGE_BYTES - '{"text":""}'.length) }
    await fetch(`${this.#url}/api/publish`, {
      method: 'POST',
      headers: { 'X-API-Key': this.#key },
      body: JSON.stringify({ channel: nameOf(channel), data }),
    })
    await new Promise(resolve => {
      if (this.answers >= answers) resolve(undefined)
      else this.#waiting = { answers, resolve: () => resolve(undefined) }
    })
    await sleep(ROUND_PAUSE_MS)
    return polls
  }

  stop() {
    this.#stopping = true
    for (const poller of this.#pollers) poller.end('closed')
  }
}

/** @param {number} clients @returns {import('../fleet/scenarios/contract.js').Step['work']} */
const pollingOf =
  clients =>
  async ({ servers, seconds, progress }) => {
    const pollers = new Pollers(servers.urls[0], servers.apiKey)
    try {
      const cpu = servers.cpu()
      progress('clients connect')
      await pollers.start(clients)
      await sleep(WARM_UP_MS)
      const connected = servers.cpu()
      progress('all polls wait, memory settles')
      let memory = Infinity
      for (let reading = 0; reading < seconds * 2; reading++) {
        await sleep(500)
        memory = Math.min(memory, servers.memory())
      }
      const idle = (servers.cpu() - connected) / seconds
      progress('rounds')
      let expected = 0
      let rounds = 0
      const run = async (/** @type {number} */ ms) => {
        for (const end = Date.now() + ms; Date.now() < end; )
          expected += await pollers.round(rounds++ % CHANNELS)
      }
      await run(WARM_UP_MS)
      const [before, answers, first] = [servers.cpu(), pollers.answers, rounds]
      await run(seconds * 1000)
      const measured = pollers.answers - answers
      return {
        polls: clients,
        faults: pollers.faults,
        bytes_per_waiting_poll: Math.round((memory - servers.base) / clients),
        first_poll_cpu_us: rounded(((connected - cpu) / clients) * 1e6, 1),
        polls_idle_cpu_percent: rounded(idle * 100, 1),
        rounds: rounds - first,
        answers: measured,
        unanswered: expected - pollers.received,
        cpu_us_per_round: rounded(((servers.cpu() - before) / measured) * 1e6, 1),
      }
    } finally {
      pollers.stop()
    }
  }

export const poll = measurement({
  name: 'poll',
  summary: 'one-way long-polls, also beside bare libraries (--against uws,ws)',
  clients: 5000,
  zeros: ['faults', 'unanswered'],
  measure({ n, files }) {
    if (n > files - OWN_FILES) throw new RunError(`the open-files limit allows ${files - OWN_FILES} pollers`)
    return {
      config: {
        uni_poll: { enabled: true },
        channel: { namespaces: [{ name: 'kept', history_size: 10, history_ttl: '60s' }] },
      },
      steps: [{ name: 'polls', settings: { n: 0 }, settle: 0, work: pollingOf(n) }],
    }
  },
})
