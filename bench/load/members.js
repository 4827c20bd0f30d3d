import { nowMicros, sleep } from './clock.js'
import { Subscribers } from './subscribers.js'
import { maskedFrame, OPCODE } from './websocket.js'

/** Subscriptions under way at once. */
const CONCURRENCY = 2_000
/** Commands in one frame: together they are far shorter than a server takes. */
const COMMANDS = 200
/** A group whose subscriptions make no progress for so long gives up on the rest, ms. */
const PATIENCE = 20_000

/**
 * Clients of one process that connect first, and then each subscribe to several channels of their own: client i to
 * ch<i * subscriptions>, the next one, and so on.
 */
export class Members extends Subscribers {
  subscribed = 0
  refused = 0
  /** Subscriptions that the server has ended. */
  unsubscribed = 0
  /** When the last publication came, microseconds. */
  lastAt = 0
  #first
  #subscriptions

  /** @param {import('./subscribers.js').SubscribersPlan} plan */
  constructor(plan) {
    super(plan)
    this.#first = plan.first
    this.#subscriptions = plan.subscriptions
  }

  /**
   * Subscribes all clients that are connected.
   * @returns {Promise<{subscribed: number, refused: number}>} once each subscription is answered
   */
  async subscribe() {
    let asked = 0
    let settled = 0
    let quietSince = Date.now()
    for (const [i, client] of this.clients.entries()) {
      if (!client.ready) continue
      while (asked - this.subscribed - this.refused >= CONCURRENCY && Date.now() - quietSince < PATIENCE) {
        await sleep(1)
        if (this.subscribed + this.refused > settled) quietSince = Date.now()
        settled = this.subscribed + this.refused
      }
      this.#ask(client, (this.#first + i) * this.#subscriptions)
      asked += this.#subscriptions
    }
    quietSince = Date.now()
    while (this.subscribed + this.refused < asked && Date.now() - quietSince < PATIENCE) {
      await sleep(1)
      if (this.subscribed + this.refused > settled) quietSince = Date.now()
      settled = this.subscribed + this.refused
    }
    return { subscribed: this.subscribed, refused: asked - this.subscribed }
  }

  /**
   * @param {import('./subscriber.js').Subscriber} client
   * @param {number} channel its first one
   */
  #ask(client, channel) {
    for (let k = 0; k < this.#subscriptions; k += COMMANDS) {
      const count = Math.min(COMMANDS, this.#subscriptions - k)
      const commands = Array.from(
        { length: count },
        (_, j) => `{"id":${k + j + 2},"subscribe":{"channel":"ch${channel + k + j}"}}`,
      )
      client.write(maskedFrame(OPCODE.text, commands.join('\n')))
    }
  }

  /**
   * @param {Buffer} bytes
   * @param {number} at
   * @param {number} end
   * @param {number} sequence
   * @returns {number}
   */
  messages(bytes, at, end, sequence) {
    for (const line of bytes.toString('utf8', at, end).split('\n')) this.#message(JSON.parse(line))
    return sequence
  }

  /** @param {any} message */
  #message({ id, subscribe, error, push }) {
    if (subscribe) this.subscribed++
    else if (error) {
      this.refused++
      if (this.firstFault === '') this.firstFault = `command ${id}: error ${error.code} ${error.message}`
    } else if (push?.pub) {
      this.received++
      this.lastAt = nowMicros()
    } else if (push?.unsubscribe) {
      this.unsubscribed++
      if (this.firstFault === '') this.firstFault = `unsubscribed with ${push.unsubscribe.code}`
    }
  }

  progress() {
    const { subscribed, lastAt } = this
    return { ...super.progress(), subscribed, lastAt }
  }

  report() {
    const { unsubscribed } = this
    return { ...super.report(), unsubscribed }
  }
}
