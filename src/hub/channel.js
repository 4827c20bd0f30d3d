/**
 * The subscribers of a channel that receive the same bytes: one codec, one filter, one fan-out topic. What is published
 * is encoded once and handed to the socket server once for each cohort, however many its members are.
 */
export class Cohort {
  /** Members in this worker. */
  count = 0
  /** @type {Set<import('../session/session.js').Session> | null} with `delta`: members that must get a full payload before any delta;
   *   null: there are none */
  fresh = null
  /** With `delta`: its members get full payloads for ever. */
  full = false

  /**
   * @param {string} key
   * @param {string} topic
   * @param {import('../protocol/contract.js').Codec} codec
   * @param {boolean} events joins and leaves instead of publications
   * @param {import('../protocol/filter.js').Filter | null} filter
   * @param {boolean} delta whether its members are delta-negotiated
   */
  constructor(key, topic, codec, events, filter, delta) {
    this.key = key
    this.topic = topic
    this.codec = codec
    this.events = events
    this.filter = filter
    this.delta = delta
  }

  /** Whether its members can read a delta. */
  get follows() {
    return this.delta && this.fresh === null && !this.full
  }
}

/**
 * Buffers publications for a subscriber whose reply is not written yet.
 */
export class Buffering {
  /** @type {Uint8Array[]} */
  messages = []
  /** @type {import('../errors.js').Disconnect | null} why it cannot go on: a gap, or a payload that its codec cannot carry */
  fault = null

  /**
   * @param {import('../protocol/contract.js').Codec} codec
   * @param {import('../protocol/filter.js').Filter | null} filter
   * @param {boolean} positioned whether it relies on the stream's position
   * @param {boolean} delta whether it is delta-negotiated
   */
  constructor(codec, filter, positioned, delta) {
    this.codec = codec
    this.filter = filter
    this.positioned = positioned
    this.delta = delta
  }

  /**
   * @param {string} channel
   * @param {import('../broker/contract.js').Publication} publication
   */
  add(channel, publication) {
    const { codec } = this
    const message = this.delta
      ? codec.deltaPublication(channel, publication, null)
      : codec.publication(channel, publication)
    this.messages.push(Buffer.from(message))
  }
}

/**
 * A channel with local subscribers.
 */
export class Channel {
  /** Subscriptions, those under way included. */
  count = 0
  /** Whether the broker was asked for the channel's publications, and whether it has answered. */
  asked = false
  live = false
  /** @type {Cohort[]} of all but the delta-negotiated subscribers */
  cohorts = []
  /** @type {import('./deltas.js').Deltas | null} these; null as long as there are none */
  deltas = null
  /** @type {Set<Buffering> | null} */
  buffering = null
  /** @type {Set<import('./hub.js').Subscriber> | null} those who rely on the position */
  positioned = null
  /** The position of all of them: what has been fanned out last. */
  offset = 0
  epoch = ''
  /** When the position was last known to be the stream's, in ms. */
  confirmedAt = 0

  /** @param {string} name */
  constructor(name) {
    this.name = name
  }
}
