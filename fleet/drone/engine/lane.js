import { channelNumber } from '../../channel-template.js'
import { ANSWER_TIMEOUT, OPEN } from '../transport/wire.js'
import { makePayload } from './payload.js'

/** @typedef {import('../transport/dialer.js').Connection} Connection */

/**
 * @typedef {object} Message
 * @property {number} at place of its channel in the ledger
 * @property {number} time intended, Unix ms
 * @property {number} sequence 0: none yet
 * @property {boolean} again sent before, possibly published
 * @typedef {{code: number, message?: string, temporary?: boolean} | undefined} Fault reply to a command
 * @typedef {(target: import('../transport/target.js').Target, text: string, headers: string) => Buffer} SingleRequest
 */

/** Messages that one lane queues. */
const MAX_QUEUE = 1024
/** Bytes of one request: a WebSocket message may have 65,536 bytes by default. */
const BATCH = 56_000
const BACKOFF_MIN = 100
const BACKOFF_MAX = 5000
/** A request of one publication. @type {SingleRequest} */
const publishRequest = (target, text, headers) => target.post('/api/publish', text, headers)

/** Temporary error codes: internal error, too many requests. */
const PASSING = [100, 111]

/**
 * Publishes the messages of some channels in order over one connection. Due messages form one batch, and one batch at
 * a time is under way, so that no message overtakes another.
 *
 * An unconfirmed message is published again with its sequence and time until it is confirmed; it is marked, since it
 * may have arrived. A message refused for good returns its sequence, unless a later one of its channel is out: that
 * gap is real and is counted on both sides, as `unpublished` here and as `lost` by the receivers.
 */
export class Lane {
  #publisher
  #number
  /** @type {Message[]} */
  #queue = []
  /** @type {Message[]} under way */
  #batch = []
  #text = ''
  /** @type {Buffer | null} request of the server API */
  #request = null
  /** Client connection of `via: client`. @type {Connection | null} */
  #link = null
  /** @type {Fault[]} replies to a client's commands */
  #faults = []
  #left = 0
  #pong = false
  /** Failed attempts in a row, and the time of the next one. */
  #failures = 0
  #after = 0
  /** Place of the lane's next channel when it publishes at unlimited rate. */
  #turn

  /** @param {import('./publisher.js').Publisher} publisher @param {number} number */
  constructor(publisher, number) {
    this.#publisher = publisher
    this.#number = number
    this.#turn = number
  }

  get full() {
    return this.#queue.length >= MAX_QUEUE
  }

  /** @param {number} places @param {number} lanes @returns {number} place of the next channel of this lane */
  turn(places, lanes) {
    const place = this.#turn
    this.#turn = place + lanes < places ? place + lanes : place % lanes
    return place
  }

  get idle() {
    return this.#queue.length + this.#batch.length === 0
  }

  /** @param {number} at place of the channel @param {number} time Unix ms */
  add(at, time) {
    this.#queue.push({ at, time, sequence: 0, again: false })
  }

  /** Sends queued messages, if none is under way. @param {number} now */
  flush(now) {
    if (this.#queue.length === 0 || this.#batch.length > 0 || now < this.#after) return
    const { settings, targets, engine } = this.#publisher
    const texts = this.#takeBatch()
    const target = targets[(this.#number + this.#failures) % targets.length]
    if (settings.publish.via === 'api') {
      const key = `X-API-Key: ${engine.options.apiKey}\r\n`
      const { singleRequest = publishRequest } = engine.options
      this.#request = settings.publish.single
        ? singleRequest(target, texts[0], key)
        : target.post('/api/batch', `{"commands":[${texts.map(text => `{"publish":${text}}`)}]}`, key)
      target.posts.push(this)
    } else {
      this.#text = texts.map((text, n) => `{"id":${n + 2},"publish":${text}}`).join('\n')
      this.#faults = []
      this.#left = texts.length
      if (this.#link?.state === OPEN) this.#send(this.#link)
      else this.#link = this.#publisher.dial(this.#number)
    }
  }

  /** @returns {string[]} JSON of the publish requests that go next */
  #takeBatch() {
    const { template, sequences, start, engine, settings } = this.#publisher
    const { size, part, parts } = settings.publish
    const o = Math.round(engine.clock.state.offset * 1000)
    const m = engine.options.machine
    const texts = []
    const most = settings.publish.single ? 1 : this.#queue.length
    for (let bytes = 0; texts.length < Math.min(most, this.#queue.length); ) {
      const message = this.#queue[texts.length]
      const { at, again } = message
      const channel = template.nameOf(part + at * parts)
      const t = Math.round(message.time * 1000)
      const s = message.sequence || sequences[at] + 1
      const data = makePayload({ t, s, c: channelNumber(channel), e: start, m, o }, size, again)
      bytes += data.length + channel.length + 50
      if (texts.length > 0 && bytes > BATCH) break
      if (!message.sequence) message.sequence = sequences[at] = s
      texts.push(`{"channel":${JSON.stringify(channel)},"data":${data}}`)
    }
    this.#batch = this.#queue.splice(0, texts.length)
    return texts
  }

  /** The request of the server API, for Posts. */
  request() {
    return this.#request
  }

  /** @param {number} status @param {string} reason why there is no reply @param {string} text reply */
  posted(status, reason, text) {
    let faults = null
    try {
      const answer = JSON.parse(text)
      const succeeded = status >= 200 && status < 300
      const replies = this.#publisher.settings.publish.single && succeeded ? [answer] : answer.replies
      faults = replies.map((/** @type {any} */ reply) => reply.error)
    } catch {}
    // After close() there is no batch.
    if (this.#batch.length > 0) this.#answered(faults?.length === this.#batch.length ? faults : null, reason)
  }

  /** @param {Connection} link that can send now */
  #send(link) {
    link.send(this.#text)
    link.dialer.watch(link, ANSWER_TIMEOUT)
  }

  /** @param {Connection} link @param {any} reply */
  message(link, reply) {
    if (link !== this.#link) return
    if (reply.id > 1) {
      this.#faults[reply.id - 2] = reply.error
      if (--this.#left === 0) this.#answered(this.#faults, '')
    } else if (reply.connect) {
      this.#pong = reply.connect.pong
      this.#send(link)
    } else if (reply.error) this.closed(link, `connect: ${reply.error.code}`)
    else if (!reply.push && this.#pong) link.send('{}')
  }

  /** @param {Connection} link @param {string} reason */
  closed(link, reason) {
    if (link === this.#link) this.#answered(null, reason)
  }

  /** @param {Fault[] | null} faults null: no replies @param {string} reason why there are none */
  #answered(faults, reason) {
    const { clock, figures } = this.#publisher.engine
    const now = clock.now()
    const batch = this.#batch
    this.#batch = []
    if (faults) this.#link?.dialer.unwatch(this.#link)
    else this.#disconnect()
    // In reverse, so that refused messages return their sequences.
    for (const [n, message] of [...batch.entries()].reverse()) {
      const fault = faults?.[n]
      message.again = true
      if (fault) reason = `${fault.code} ${fault.message ?? ''}`
      if (faults && !fault) {
        figures.counters.published++
        figures.answer.record(now - message.time)
      } else if (!fault || fault.temporary || PASSING.includes(fault.code)) {
        this.#queue.unshift(message)
        this.#after = Infinity
      } else this.#giveUp(message, reason)
    }
    if (this.#after > now) {
      figures.fault(`publish: ${reason}`)
      const delay = Math.min(BACKOFF_MAX, BACKOFF_MIN * 2 ** this.#failures++)
      this.#after = now + delay * (0.5 + Math.random() / 2)
    } else this.#failures = 0
    this.#publisher.pump()
  }

  #disconnect() {
    const link = this.#link
    this.#link = null
    link?.close()
  }

  /** @param {Message} message @param {string} reason */
  #giveUp({ at, sequence }, reason) {
    const { sequences, engine } = this.#publisher
    if (sequence && sequences[at] === sequence) sequences[at]--
    engine.figures.counters.unpublished++
    engine.figures.fault(`publish: ${reason}`)
  }

  /** Gives up all messages that are not confirmed. */
  close() {
    this.#disconnect()
    for (const message of [...this.#batch, ...this.#queue].reverse()) this.#giveUp(message, 'given up')
    this.#queue = this.#batch = []
  }
}
