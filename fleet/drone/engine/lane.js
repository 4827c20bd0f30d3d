import { channelNumber } from '../../subjects.js'
import { OPEN } from '../transport/wire.js'
import { ApiWire } from './api-wire.js'
import { makePayload } from './payload.js'

/** @typedef {import('../transport/dialer.js').Connection} Connection */

/**
 * @typedef {object} Message
 * @property {number} at place in the books
 * @property {number} time Unix ms, when it is meant to be sent
 * @property {number} sequence 0: has none yet
 * @property {boolean} again was sent before, and may have been published
 *
 * @typedef {{code: number, message?: string, temporary?: boolean} | undefined} Fault what a command was answered
 */

/** Messages that wait. */
const ROOM = 1024
/** Of one request: a WebSocket message may have 65,536 bytes, if nothing else is configured. */
const BATCH = 256
const BATCH_BYTES = 56_000
/** s until a batch has failed. */
const PATIENCE = 10
/** ms */
const BACKOFF_MIN = 100
const BACKOFF_MAX = 5000
/** Answers that say something about the moment, not about the message: internal error, too many requests. */
const PASSING = [100, 111]

/**
 * Publishes messages of some subjects in order, over a connection of its own: what is due goes as one batch, and only one is under
 * way, so that nothing overtakes another one on the way to the target.
 *
 * A message that was not confirmed is published again, with its sequence and its time, until it is: marked, because it may be there
 * already. One that is refused for good gives its sequence back, unless a later one of its subject is out; then there is a hole that
 * is a true one, and both books say so: `unpublished` here, `lost` there.
 */
export class Lane {
  #publisher
  #number
  /** @type {Message[]} */
  #queue = []
  /** @type {Message[]} under way */
  #batch = []
  /** A batch is under way, or is waited for after one that failed. */
  #busy = false
  #failures = 0
  /** @type {ApiWire | null} */
  #wire = null
  /** @type {Connection | null} of one that publishes as a client */
  #connection = null
  /** Its connect reply has come. */
  #ready = false
  #pong = false
  /** Commands under way, and what they were answered. */
  #text = ''
  /** @type {Fault[]} */
  #faults = []
  #left = 0
  /** @type {NodeJS.Timeout | undefined} of the attempt, or until the next one */
  #timer

  /** @param {import('./publisher.js').Publisher} publisher @param {number} number */
  constructor(publisher, number) {
    this.#publisher = publisher
    this.#number = number
  }

  get full() {
    return this.#queue.length >= ROOM
  }

  get idle() {
    return !this.#busy && this.#queue.length === 0
  }

  /** @param {number} at place in the books @param {number} time Unix ms */
  add(at, time) {
    this.#queue.push({ at, time, sequence: 0, again: false })
  }

  /** Sends what waits, if nothing is under way. */
  flush() {
    if (this.#busy || this.#queue.length === 0) return
    this.#busy = true
    const texts = this.#take()
    const { via } = this.#publisher.settings.publish
    if (via === 'api') {
      const { targets, engine } = this.#publisher
      const target = targets[(this.#number + this.#failures) % targets.length]
      const body = Buffer.from(`{"commands":[${texts.map(text => `{"publish":${text}}`)}]}`)
      const head = target.head(
        'POST /api/batch',
        `X-API-Key: ${engine.options.apiKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`,
      )
      if (this.#wire?.state !== OPEN) this.#wire = new ApiWire(target, this)
      this.#wire.ask(Buffer.concat([Buffer.from(head), body]), PATIENCE)
    } else {
      this.#text = texts.map((text, n) => `{"id":${n + 2},"publish":${text}}`).join('\n')
      this.#faults = []
      this.#left = texts.length
      this.#timer = setTimeout(() => this.#fail('timeout'), PATIENCE * 1000)
      if (this.#ready) this.#connection?.send(this.#text)
      else this.#connection = this.#publisher.dial(this.#number)
    }
  }

  /** @returns {string[]} JSON of the publish requests that go next */
  #take() {
    const { books, engine, settings } = this.#publisher
    const { sequences } = books
    const o = Math.round(engine.clock.state.offset * 1000)
    const texts = []
    for (let bytes = 0; texts.length < this.#queue.length && texts.length < BATCH; ) {
      const message = this.#queue[texts.length]
      const { at, time, again } = message
      const channel = books.name(at)
      const s = message.sequence || sequences[at] + 1
      const data = makePayload(
        {
          t: Math.round(time * 1000),
          s,
          c: channelNumber(channel),
          e: books.start,
          m: engine.options.machine,
          o,
        },
        settings.publish.size,
        again,
      )
      bytes += data.length + channel.length + 50
      if (texts.length > 0 && bytes > BATCH_BYTES) break
      if (!message.sequence) message.sequence = sequences[at] = s
      texts.push(`{"channel":${JSON.stringify(channel)},"data":${data}}`)
    }
    this.#batch = this.#queue.splice(0, texts.length)
    return texts
  }

  /** @param {string} text answer of the server API @param {string} reason why there is none */
  replied(text, reason) {
    let faults = null
    try {
      faults = JSON.parse(text).replies.map((/** @type {any} */ reply) => reply.error)
    } catch {}
    if (faults?.length === this.#batch.length) this.#answered(faults, '')
    else this.#answered(null, reason || 'no answer to each command')
  }

  /** @param {Connection} connection @param {any} reply */
  message(connection, reply) {
    if (connection !== this.#connection) return
    if (reply.id > 1) {
      this.#faults[reply.id - 2] = reply.error
      if (--this.#left === 0) this.#answered(this.#faults, '')
    } else if (reply.connect) {
      this.#ready = true
      this.#pong = reply.connect.pong
      connection.send(this.#text)
    } else if (reply.error) this.#fail(`connect: ${reply.error.code}`)
    else if (!reply.push && this.#pong) connection.send('{}')
  }

  /** @param {Connection} connection @param {string} reason */
  closed(connection, reason) {
    if (connection === this.#connection) this.#fail(reason)
  }

  /** @param {string} reason */
  #fail(reason) {
    this.#hangUp()
    if (this.#left > 0) this.#answered(null, reason)
  }

  #hangUp() {
    clearTimeout(this.#timer)
    this.#wire?.end('closed')
    this.#connection?.close()
    this.#connection = null
    this.#ready = false
  }

  /**
   * @param {Fault[] | null} faults
   * @param {string} reason why there are none
   */
  #answered(faults, reason) {
    const { figures, clock } = this.#publisher.engine
    const batch = this.#batch
    clearTimeout(this.#timer)
    this.#left = 0
    this.#batch = []
    let again = 0
    // From the last one, so that those that are refused give their sequences back.
    for (let n = batch.length - 1; n >= 0; n--) {
      const message = batch[n]
      const fault = faults?.[n]
      message.again = true
      if (fault) reason = `${fault.code} ${fault.message ?? ''}`
      if (faults && !fault) {
        figures.counters.published++
        figures.answer.record(clock.now() - message.time)
      } else if (!fault || fault.temporary || PASSING.includes(fault.code)) {
        this.#queue.unshift(message)
        again++
      } else this.#giveUp(message, reason)
    }
    if (!faults) this.#hangUp()
    if (again === 0) {
      this.#failures = 0
      return this.#free()
    }
    figures.fault(`publish: ${reason}`)
    const delay = Math.min(BACKOFF_MAX, BACKOFF_MIN * 2 ** this.#failures++)
    this.#timer = setTimeout(() => this.#free(), delay * (0.5 + Math.random() / 2))
  }

  #free() {
    this.#busy = false
    this.#publisher.pump()
    this.flush()
  }

  /** @param {Message} message @param {string} reason */
  #giveUp({ at, sequence }, reason) {
    const { books, engine } = this.#publisher
    if (sequence && books.sequences[at] === sequence) books.sequences[at]--
    engine.figures.counters.unpublished++
    engine.figures.fault(`publish: ${reason}`)
  }

  /** What was not confirmed is given up. */
  close() {
    const left = [...this.#batch, ...this.#queue]
    this.#queue = this.#batch = []
    this.#left = 0
    this.#busy = true
    this.#hangUp()
    for (const message of left.reverse()) this.#giveUp(message, 'given up')
  }
}
