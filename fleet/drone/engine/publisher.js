import { setTimeout as sleep } from 'node:timers/promises'
import { parseTemplate } from '../../channel-template.js'
import { Target } from '../transport/target.js'
import { Lane } from './lane.js'
import { packSequences, startNumber } from './payload.js'

/** @import { Ledger, Publish, Settings as DroneSettings } from '../../schema.js' */
/** @import { Connection } from '../transport/dialer.js' */

/** @typedef {DroneSettings & {publish: Publish}} Settings */

/** Batches, and single requests, in flight. */
const LANES = 4
const SINGLE_LANES = 32
/** Timeout of last responses, ms: a request without one counts as unpublished, but may be published. */
const ANSWERS = 5000
/** Messages per second above which messages are collected for 2 ms, to limit the number of requests. */
const FAST = 1000
/** Interval of readings of the gateway's time, ms: no other publisher connection receives it. */
const CLOCK_INTERVAL = 5000
/** Flush interval of lanes without new messages, ms. */
const IDLE = 50

/**
 * Publishes at evenly spaced intended times. A late message has its intended time, so that the measured latency includes
 * the delay. During an outage, only the time of the first unsent message is stored.
 */
export class Publisher {
  #dialer
  /** @type {Lane[]} */
  #lanes
  /** Its connect reply has the gateway's time. @type {Connection | null} */
  #clockConnection = null
  #clockRequested = 0
  /** Intended time of the next message, Unix ms. */
  #due
  #place = -1
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** End of publishing, once stopped. @type {Promise<void> | null} */
  end = null
  sequences = new Uint32Array(0)

  /** Starts with `change`. @param {import('./engine.js').Engine} engine @param {Settings} settings */
  constructor(engine, settings) {
    const { publish, publishFrom, targets } = settings
    const begin = Math.max(publishFrom, engine.clock.now())
    this.engine = engine
    this.settings = settings
    this.start = startNumber(begin)
    this.template = parseTemplate(publish.channels)
    this.isSingle = publish.via === 'single' || publish.via === 'nchan'
    const lanes = publish.lanes || (this.isSingle ? SINGLE_LANES : LANES)
    // A lane needs a channel.
    const length = publish.flat
      ? Math.min(lanes, this.template.span || this.template.count(settings.total))
      : lanes
    this.#lanes = Array.from({ length }, (_, n) => new Lane(this, n))
    this.#dialer = engine.dialer(settings, 'websocket', this)
    this.targets = targets.map(url => new Target(this.#dialer, url))
    // Publishers start staggered, so that all messages together are evenly spaced.
    this.#due = begin + (1000 / publish.rate) * (publish.part / publish.parts)
  }

  /** @param {Settings} settings changed rate, size, order or total */
  change(settings) {
    const { publish, total } = settings
    const now = this.engine.clock.now()
    // There were no channels to publish to.
    if (this.sequences.length === 0) this.#due = Math.max(this.#due, now)
    const places = ((this.template.span || this.template.count(total)) - publish.part) / publish.parts
    const before = this.sequences
    this.sequences = new Uint32Array(Math.max(before.length, Math.ceil(places)))
    this.sequences.set(before)
    // Overdue messages stay due; the next ones follow at the new rate.
    if (this.#due > now && !publish.flat)
      this.#due = now + (this.#due - now) * (this.settings.publish.rate / publish.rate)
    this.settings = settings
    this.pump()
  }

  /** Queues due messages if lanes have room, and sends them. */
  pump() {
    const { rate, order, flat } = this.settings.publish
    const lanes = this.#lanes.length
    const now = this.engine.clock.now()
    if (!this.end && this.sequences.length > 0) {
      // Other servers do not send their time.
      if (!this.isSingle && now - this.#clockRequested > CLOCK_INTERVAL) {
        this.#clockRequested = now
        this.#clockConnection?.close()
        this.#clockConnection = this.dial(lanes)
      }
      const places = this.sequences.length
      if (flat && this.#due <= now) {
        for (const lane of this.#lanes) if (lane.idle) lane.add(lane.nextPlace(places, lanes), now)
      } else
        while (this.#due <= now) {
          const place =
            order === 'sequential' ? (this.#place + 1) % places : Math.floor(Math.random() * places)
          const lane = this.#lanes[place % lanes]
          if (lane.full) break
          lane.add(place, this.#due)
          this.#place = place
          this.#due += 1000 / rate
        }
    }
    for (const lane of this.#lanes) lane.flush(now)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => this.pump(),
      rate > FAST ? (this.isSingle ? 1 : 2) : Math.min(IDLE, this.#due - now),
    )
  }

  /** @param {number} slot of a lane, or the next one for the clock @returns {Connection} a client connection */
  dial(slot) {
    const number = this.settings.publish.part + slot
    return this.#dialer.dial(slot, number, { ...this.engine.token(number) })
  }

  /** @param {Connection} connection @param {Buffer} buffer @param {number} start @param {number} end */
  message(connection, buffer, start, end) {
    const reply = JSON.parse(buffer.toString('utf8', start, end))
    if (connection.slot < this.#lanes.length) return this.#lanes[connection.slot].message(connection, reply)
    const { clock } = this.engine
    const time = reply.connect?.time
    if (time && connection === this.#clockConnection) clock.learn(time, this.#clockRequested, clock.now())
    connection.close()
  }

  /** @param {Connection} connection @param {number} code @param {string} reason */
  closed(connection, code, reason) {
    this.#lanes[connection.slot]?.closed(connection, reason || `${code}`)
  }

  /** @returns {Ledger} */
  ledger() {
    const { channels, part, parts } = this.settings.publish
    return { channels, part, parts, start: this.start, sequences: packSequences(this.sequences) }
  }

  /**
   * Ends publishing. Drops due messages after `drain` ms, then waits some seconds for responses.
   * @param {number} drain
   */
  stop(drain) {
    this.end ??= this.#drain(drain)
    return this.end
  }

  /** Waits until nothing is queued or in flight. @param {number} left maximum ms */
  async #idle(left) {
    for (; left > 0 && this.#lanes.some(lane => !lane.idle); left -= 20) await sleep(20)
  }

  /** @param {number} left ms */
  async #drain(left) {
    const { clock, figures } = this.engine
    const { rate, flat } = this.settings.publish
    // The timer may be late: send the messages due since then.
    this.pump()
    const behind = flat ? 0 : Math.ceil(((clock.now() - this.#due) * rate) / 1000)
    // The lanes are full. Messages that became due since pump() do not count.
    if (behind > rate / 20 + 1) {
      figures.counters.unpublished += behind
      figures.fault('publish: abandoned', behind)
    }
    this.#clockConnection?.close()
    await this.#idle(left)
    for (const lane of this.#lanes) lane.drop()
    await this.#idle(ANSWERS)
    clearTimeout(this.#timer)
    for (const lane of this.#lanes) lane.close()
  }
}
