import { disconnects } from '../../base/errors.js'
import { OVERHEAD } from '../broker/size.js'
import { reaches } from '../broker/target.js'

/** @import { Keyed, Publication } from '../broker/contract.js' */
/** @import { Target } from '../broker/target.js' */
/** @import { Disconnect } from '../../base/errors.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { Deltas } from './deltas.js' */
/** @import { ChannelMap } from './maps.js' */
/** @import { Member, Subscriber } from './hub.js' */
/** @import { Window } from './window.js' */

/** Subscribers of a channel with the same codec, filter and fan-out topic: messages are encoded once for them. */
export class Cohort {
  count = 0
  /** Pushes have this id instead of the channel's name; 0: the name. */
  channelId = 0
  /** @type {Set<Member> | null} with `delta`: members that need a full payload first; null: none */
  fresh = null
  /** With `delta`: members always receive full payloads. */
  full = false
  /** Members join the parts that are appended to values of a map. */
  parts = false

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

  get readsDeltas() {
    return this.delta && this.fresh === null && !this.full
  }
}

/**
 * @param {Codec} codec @param {boolean} events @param {Filter | null} filter @param {number} channelId see Cohort
 * @param {boolean} [parts]
 */
export const cohortKey = (codec, events, filter, channelId, parts = false) =>
  events || filter || channelId > 0 || parts
    ? `${codec.name}${events ? '+events' : ''}${parts ? '+parts' : ''}${channelId > 0 ? '+id' : ''}${filter ? filter.key : ''}`
    : codec.name

/** Added to a filter's JSON size: even a short filter costs work for each publication. */
const FILTER_OVERHEAD = 128

/** @param {Filter} filter @returns {number} size for `channel.tags_filters_max_size` */
export const filterSize = filter => filter.key.length + FILTER_OVERHEAD

/** Publications for a subscriber before its reply is written. */
export class PublicationBuffer {
  /** @type {Uint8Array[]} encoded */
  messages = []
  #bytes = 0
  /** @type {Disconnect | null} a gap, a payload that the codec cannot encode, or too many bytes */
  fault = null
  /** Keys of a map with parts that the subscriber cannot join, for `Hub.join`. @type {Set<string> | null} null: none */
  unsent = null
  /** @type {{user: string, id: string} | null} its session; null: it receives no publication with a target */
  session = null

  /**
   * @param {Codec} codec @param {Filter | null} filter
   * @param {boolean} positioned the subscriber tracks its stream position
   * @param {boolean} delta the subscriber is delta-negotiated @param {number} maxBytes of the messages
   * @param {boolean} parts the subscriber joins parts of values
   */
  constructor(codec, filter, positioned, delta, maxBytes, parts) {
    this.codec = codec
    this.filter = filter
    this.positioned = positioned
    this.delta = delta
    this.maxBytes = maxBytes
    this.parts = parts
  }

  /** @param {Target} target of a publication @returns {boolean} whether the subscriber receives it */
  isWithin(target) {
    return this.session !== null && reaches(target, this.session.user, this.session.id)
  }

  /** @param {string} channel @param {Publication} publication */
  add(channel, publication) {
    const { codec } = this
    if (this.fault) return
    const readable = publication.keyed ? this.#readable(publication, publication.keyed) : publication
    if (readable === null) return
    const message = this.delta
      ? codec.deltaPublication(channel, readable, null)
      : codec.publication(channel, readable)
    if (this.#charge(message.length)) this.messages.push(Buffer.from(message))
  }

  /** @param {number} bytes @returns {boolean} whether there is room */
  #charge(bytes) {
    this.#bytes += bytes
    if (this.#bytes > this.maxBytes) {
      this.fault = disconnects.slow
      this.messages = []
    }
    return this.fault === null
  }

  /** @param {Publication} publication of a map @param {Keyed} keyed @returns {Publication | null} null: a part */
  #readable(publication, { key, append }) {
    if (append && !(this.parts && publication.offset > 0)) {
      if (!this.unsent?.has(key) && this.#charge(key.length + OVERHEAD)) (this.unsent ??= new Set()).add(key)
      return null
    }
    if (!append) this.unsent?.delete(key)
    // As in maps.js: a reconnect recovers the parts.
    return this.unsent?.size ? { ...publication, offset: 0 } : publication
  }
}

/** Changes of a map without positions, for a subscriber that reads its state: the last one of each key. */
export class ChangeBuffer {
  /** @type {Map<string, Publication>} by key, latest last */
  #changes = new Map()
  #bytes = 0
  /** @type {Error | null} see PublicationBuffer */
  fault = null
  positioned = false

  /** @param {Codec} codec @param {Filter | null} filter @param {number} maxBytes of the changes */
  constructor(codec, filter, maxBytes) {
    this.codec = codec
    this.filter = filter
    this.maxBytes = maxBytes
  }

  get publications() {
    return [...this.#changes.values()]
  }

  /** Publications of maps have no target. */
  isWithin() {
    return true
  }

  /** @param {string} _channel @param {Publication} publication */
  add(_channel, publication) {
    if (this.fault) return
    const { key } = /** @type {Keyed} */ (publication.keyed)
    const former = this.#changes.get(key)
    if (former !== undefined) {
      this.#changes.delete(key)
      this.#bytes -= sizeOf(former)
    }
    const change = { ...publication, data: Buffer.from(publication.data) }
    this.#bytes += sizeOf(change)
    if (this.#bytes > this.maxBytes) {
      this.fault = disconnects.slow
      this.#changes.clear()
      return
    }
    this.#changes.set(key, change)
  }
}

/** @param {Publication} publication of a map */
const sizeOf = ({ data, info, keyed }) => data.length + info.length + (keyed?.key.length ?? 0) + OVERHEAD

export class Channel {
  count = 0
  requested = false
  /** The broker confirmed the worker's subscription; `requested`: it was sent. */
  live = false
  /** See `Hub.idOf`; 0: none yet. */
  id = 0
  /** @type {Cohort[]} except delta-negotiated subscribers */
  cohorts = []
  /** @type {Deltas | null} delta-negotiated subscribers; null: none */
  deltas = null
  /** Deltas refer to the publication sent before, whether or not it is in the stream. */
  keepsLatest = false
  /** @type {Set<PublicationBuffer | ChangeBuffer> | null} null: none */
  buffers = null
  /** @type {Set<Subscriber> | null} those that track their position; null: none */
  positioned = null
  /** @type {Set<Subscriber> | null} those of a map without positions; null: none */
  unpositioned = null
  /** Position of the last received publication; without a window also of the last one sent. */
  offset = 0
  epoch = ''
  /** @type {Window | null} items to be fanned out; null: not batched */
  window = null
  /** @type {ChannelMap | null} values and unsent values of a map; null: none */
  map = null
  /** When the position was last confirmed, unix ms. */
  confirmedAt = 0

  /** @param {string} name */
  constructor(name) {
    this.name = name
  }

  /** @param {Cohort} cohort @returns {number} offset of the last publication sent to it */
  sentTo(cohort) {
    return this.window === null ? this.offset : this.window.sentTo(cohort, this.offset)
  }
}
