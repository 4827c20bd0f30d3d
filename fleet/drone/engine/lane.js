import { channelNumber } from '../../channel-template.js'
import { ANSWER_TIMEOUT, OPEN } from '../transport/wire.js'
import { makePayload } from './payload.js'

/** @import { Connection } from '../transport/dialer.js' */

/**
 * @typedef {{place: number, time: number, sequence: number, again: boolean}} Message `place` of its channel in the
 *   ledger; intended `time`, Unix ms; `sequence`, 0: none yet; `again`: it may have been published
 * @typedef {{code: number, message?: string, temporary?: boolean} | undefined} Fault error of a reply; undefined: none
 */

const MAX_QUEUE = 1024
/** Maximum bytes of a batch: a gateway accepts WebSocket messages of 65,536 bytes by default. */
const MAX_BATCH = 56_000
/** Bytes of a batch for each publication, excluding it: `{"publish":},` or `{"id":12345,"publish":}\n`. */
const ENVELOPE = 25
/** Retry delay, ms; doubles with each failure, with jitter. */
const BACKOFF_MIN = 100
const BACKOFF_MAX = 5000
/** Path of nchan's publisher, in the configuration of a run; the query has the channel. */
const NCHAN_PUBLISH = '/pub'

/** Temporary errors of the server API, which has no `temporary` field: internal error, too many requests. */
const TEMPORARY_CODES = [100, 111]

/**
 * One of a publisher's queues. It publishes the messages of its channels in order: due messages form a batch, and one
 * batch at a time is in flight.
 *
 * An unconfirmed message is published again, marked, with the same sequence and time, until it is confirmed. A message
 * refused permanently returns its sequence, unless a later message of its channel was sent: then both sides count
 * it, as `unpublished` here and as `lost` at the receivers.
 */
export class Lane {
  #publisher
  #number
  /** @type {Message[]} */
  #queue = []
  /** In flight. @type {Message[]} */
  #batch = []
  /** With `via: api`: the POST of the batch. @type {Buffer | null} */
  #request = null
  /** With `via: client`: the commands of the batch, one per line. */
  #commands = ''
  /** With `via: client`. @type {Connection | null} */
  #connection = null
  /** Replies so far to the commands of the batch. @type {Fault[]} */
  #faults = []
  #missingReplies = 0
  #pong = false
  #failures = 0
  #retryAt = 0
  /** Place of the lane's next channel at unlimited rate. */
  #nextPlace

  /** @param {import('./publisher.js').Publisher} publisher @param {number} number */
  constructor(publisher, number) {
    this.#publisher = publisher
    this.#number = number
    this.#nextPlace = number
  }

  get full() {
    return this.#queue.length >= MAX_QUEUE
  }

  /** Iterates over the channels of this lane. @param {number} places @param {number} lanes @returns {number} place */
  nextPlace(places, lanes) {
    const place = this.#nextPlace
    this.#nextPlace = place + lanes < places ? place + lanes : place % lanes
    return place
  }

  get idle() {
    return this.#queue.length + this.#batch.length === 0
  }

  /** @param {number} place of the channel in the ledger @param {number} time intended, Unix ms */
  add(place, time) {
    this.#queue.push({ place, time, sequence: 0, again: false })
  }

  /** Sends queued messages if none is in flight. @param {number} now Unix ms */
  flush(now) {
    if (this.#queue.length === 0 || this.#batch.length > 0 || now < this.#retryAt) return
    const { settings, targets, engine } = this.#publisher
    const texts = this.#takeBatch()
    const target = targets[(this.#number + this.#failures) % targets.length]
    const { via } = settings.publish
    if (via !== 'client') {
      const headers = `X-API-Key: ${engine.options.apiKey}\r\n${via === 'nchan' ? 'Accept: text/json\r\n' : ''}`
      if (via === 'api')
        this.#request = target.post(
          '/api/batch',
          `{"commands":[${texts.map(text => `{"publish":${text}}`)}]}`,
          headers,
        )
      else {
        const path = via === 'nchan' ? `${NCHAN_PUBLISH}?ch=${JSON.parse(texts[0]).channel}` : '/api/publish'
        this.#request = target.post(path, texts[0], headers)
      }
      target.posts.push(this)
    } else {
      this.#commands = texts.map((text, n) => `{"id":${n + 2},"publish":${text}}`).join('\n')
      this.#faults = []
      this.#missingReplies = texts.length
      if (this.#connection?.state === OPEN) this.#send(this.#connection)
      else this.#connection = this.#publisher.dial(this.#number)
    }
  }

  /** Moves messages from the queue to the batch. @returns {string[]} JSON of a publish request for each */
  #takeBatch() {
    const { template, sequences, start, engine, settings } = this.#publisher
    const { size, part, parts } = settings.publish
    const e = start
    const m = engine.options.machine
    const o = Math.round(engine.clock.state.offset * 1000)
    const texts = []
    const max = this.#publisher.isSingle ? Math.min(1, this.#queue.length) : this.#queue.length
    for (let bytes = 0; texts.length < max; ) {
      const message = this.#queue[texts.length]
      const { place, again } = message
      const channel = template.nameOf(part + place * parts)
      const t = Math.round(message.time * 1000)
      const s = message.sequence || sequences[place] + 1
      const data = makePayload({ t, s, c: channelNumber(channel), e, m, o }, size, again)
      const text = `{"channel":${JSON.stringify(channel)},"data":${data}}`
      bytes += Buffer.byteLength(text) + ENVELOPE
      if (texts.length > 0 && bytes > MAX_BATCH) break
      if (!message.sequence) message.sequence = sequences[place] = s
      texts.push(text)
    }
    this.#batch = this.#queue.splice(0, texts.length)
    return texts
  }

  /** Sender of target.js: the POST to send now. */
  request() {
    return this.#request
  }

  /** Sender of target.js. @param {number} status @param {string} reason @param {string} text body of the response */
  posted(status, reason, text) {
    let faults = null
    try {
      const answer = JSON.parse(text)
      const succeeded = status >= 200 && status < 300
      const replies = this.#publisher.isSingle && succeeded ? [answer] : answer.replies
      faults = replies.map((/** @type {any} */ reply) => reply.error)
    } catch {}
    // After close(), no batch is in flight.
    if (this.#batch.length > 0) this.#onReplies(faults?.length === this.#batch.length ? faults : null, reason)
  }

  /** @param {Connection} connection open */
  #send(connection) {
    connection.send(this.#commands)
    connection.dialer.watch(connection, ANSWER_TIMEOUT)
  }

  /** @param {Connection} connection @param {any} reply */
  message(connection, reply) {
    if (connection !== this.#connection) return
    if (reply.id > 1) {
      this.#faults[reply.id - 2] = reply.error
      if (--this.#missingReplies === 0) this.#onReplies(this.#faults, '')
    } else if (reply.connect) {
      this.#pong = reply.connect.pong
      this.#send(connection)
    } else if (reply.error) this.closed(connection, `connect: ${reply.error.code}`)
    else if (!reply.push && this.#pong) connection.send('{}')
  }

  /** @param {Connection} connection @param {string} reason */
  closed(connection, reason) {
    if (connection === this.#connection) this.#onReplies(null, reason)
  }

  /** @param {Fault[] | null} faults null: no replies @param {string} reason why there are none */
  #onReplies(faults, reason) {
    const { clock, figures } = this.#publisher.engine
    const now = clock.now()
    const batch = this.#batch
    this.#batch = []
    if (faults) this.#connection?.dialer.unwatch(this.#connection)
    else this.#disconnect()
    /** @type {string | null} */
    let retryReason = null
    // In reverse, so that refused messages return their sequences.
    for (const [n, message] of [...batch.entries()].reverse()) {
      const fault = faults?.[n]
      message.again = true
      if (faults && !fault) {
        figures.counters.published++
        figures.answer.record(now - message.time)
        continue
      }
      const text = fault ? `${fault.code} ${fault.message ?? ''}` : reason
      if (!fault || fault.temporary || TEMPORARY_CODES.includes(fault.code)) {
        this.#queue.unshift(message)
        retryReason = text
      } else this.#giveUp(message, text)
    }
    if (retryReason !== null) {
      figures.fault(`publish: ${retryReason}`)
      const delay = Math.min(BACKOFF_MAX, BACKOFF_MIN * 2 ** this.#failures++)
      this.#retryAt = now + delay * (0.5 + Math.random() / 2)
    } else this.#failures = 0
    this.#publisher.pump()
  }

  #disconnect() {
    const connection = this.#connection
    this.#connection = null
    connection?.close()
  }

  /** @param {Message} message @param {string} reason */
  #giveUp({ place, sequence }, reason) {
    const { sequences, engine } = this.#publisher
    if (sequence && sequences[place] === sequence) sequences[place]--
    engine.figures.counters.unpublished++
    engine.figures.fault(`publish: ${reason}`)
  }

  drop() {
    for (const message of this.#queue.reverse()) this.#giveUp(message, 'abandoned')
    this.#queue = []
  }

  close() {
    this.#disconnect()
    this.drop()
    for (const message of this.#batch.reverse()) this.#giveUp(message, 'abandoned')
    this.#batch = []
  }
}
