import { disconnects } from '../../base/errors.js'

/** @import { Publication } from '../broker/contract.js' */
/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { Deltas } from './deltas.js' */
/** @import { Member, Subscriber } from './hub.js' */
/** @import { Window } from './window.js' */

/**
 * The subscribers of a channel that receive the same bytes: one codec, one filter, one fan-out topic. A publication is
 * encoded once and sent to the socket server once for each cohort, whatever its size.
 */
export class Cohort {
  /** Members in this worker. */
  count = 0
  /** @type {Set<Member> | null} with `delta`: members that need a full payload before any delta; null: none */
  fresh = null
  /** With `delta`: members always receive full payloads. */
  full = false

  /**
   * @param {string} key @param {string} topic @param {Codec} codec
   * @param {boolean} events joins and leaves instead of publications @param {Filter | null} filter
   * @param {boolean} delta members are delta-negotiated
   */
  constructor(key, topic, codec, events, filter, delta) {
    this.key = key
    this.topic = topic
    this.codec = codec
    this.events = events
    this.filter = filter
    this.delta = delta
  }

  /** Whether its members can read the next delta. */
  get readsDeltas() {
    return this.delta && this.fresh === null && !this.full
  }
}

/** @param {Codec} codec @param {boolean} events @param {Filter | null} filter */
export const cohortKey = (codec, events, filter) =>
  events || filter ? `${codec.name}${events ? '+events' : ''}${filter ? filter.key : ''}` : codec.name

/** Size of a filter besides its JSON: a cohort costs work for each publication, however short its filter is. */
const FILTER_OVERHEAD = 128

/** @param {Filter} filter @returns {number} its share of `channel.tags_filters_max_size` */
export const filterSize = filter => filter.key.length + FILTER_OVERHEAD

/** Publications for a subscriber whose reply is not written yet. */
export class PublicationBuffer {
  /** @type {Uint8Array[]} encoded */
  messages = []
  #bytes = 0
  /** @type {Disconnect | null} because of a gap, of a payload that the codec cannot carry, or of too many bytes */
  fault = null

  /**
   * @param {Codec} codec @param {Filter | null} filter
   * @param {boolean} positioned the subscriber relies on the stream's position
   * @param {boolean} delta the subscriber is delta-negotiated @param {number} maxBytes of the messages
   */
  constructor(codec, filter, positioned, delta, maxBytes) {
    this.codec = codec
    this.filter = filter
    this.positioned = positioned
    this.delta = delta
    this.maxBytes = maxBytes
  }

  /** @param {string} channel @param {Publication} publication */
  add(channel, publication) {
    const { codec } = this
    if (this.fault) return
    const message = this.delta
      ? codec.deltaPublication(channel, publication, null)
      : codec.publication(channel, publication)
    this.#bytes += message.length
    if (this.#bytes > this.maxBytes) {
      this.fault = disconnects.slow
      this.messages = []
      return
    }
    this.messages.push(Buffer.from(message))
  }
}

/** A channel with local subscribers. */
export class Channel {
  /** Subscriptions, pending ones included. */
  count = 0
  /** Whether the worker's subscription was sent to the broker. */
  requested = false
  /** Whether that subscription has succeeded. */
  live = false
  /** @type {Cohort[]} all but the delta-negotiated subscribers */
  cohorts = []
  /** @type {Deltas | null} delta-negotiated subscribers; null: none */
  deltas = null
  /** @type {Set<PublicationBuffer> | null} null: none */
  buffers = null
  /** @type {Set<Subscriber> | null} those that rely on the position; null: none */
  positioned = null
  /** Position: the last publication that has arrived. Without a window it was fanned out, too. */
  offset = 0
  epoch = ''
  /** @type {Window | null} what is not fanned out yet; null: the channel is not batched */
  window = null
  /** When this was last known to be the stream's position, unix ms. */
  confirmedAt = 0

  /** @param {string} name */
  constructor(name) {
    this.name = name
  }

  /** @param {Cohort} cohort @returns {number} offset of the last publication that its members have got */
  sentTo(cohort) {
    return this.window === null ? this.offset : this.window.sentTo(cohort, this.offset)
  }
}
