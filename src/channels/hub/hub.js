// The hub: channels with local subscribers, and the fan-out of their publications. The first and the last local
// subscriber of a channel subscribe and unsubscribe the worker at the broker. Cohorts (channel.js) receive the same
// bytes, which are encoded once. Imports: errors, protocol. It knows sessions only as `Subscriber`s, and no sockets.
// Promises: publications in the order of their offsets, none twice; subscribers with a gap get `positionLost`.

import { isUtf8 } from 'node:buffer'
import { disconnects } from '../../base/errors.js'
import { SlicedWork } from '../../base/slices.js'
import { DeltaEncoder } from '../../clients/protocol/delta.js'
import { Batches, toBytes } from './batches.js'
import { Channel, Cohort, cohortKey, filterSize, PublicationBuffer } from './channel.js'
import { DeltaCache, Deltas } from './deltas.js'
import { Newcomers } from './window.js'

/** @import { PubSub, Publication, SubscribeAnswer, SubscribeWants } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { MonotonicClock } from './lanes.js' */
/** @import { FanoutParts } from './batches.js' */

/**
 * @typedef {object} Subscriber a follower of a channel; with deltas, batches or a codec that is not binary it is a Member
 * @property {Codec} codec
 * @property {(topic: string) => void} follow joins a fan-out topic
 * @property {(topic: string) => void} unfollow
 * @property {(channel: string) => void} positionLost the stream's position is out of reach: it MUST leave the channel
 *
 * @typedef {object} Following what a member keeps of one subscription: the hub moves it between cohorts
 * @property {Cohort} cohort
 * @property {Cohort | null} events
 *
 * @typedef {object} MemberParts
 * @property {(channel: string) => Following | undefined} subscription
 * @property {() => void} inappropriateProtocol a payload cannot be carried by its codec: the connection ends
 *
 * @typedef {Subscriber & MemberParts} Member a session
 */

/** @type {SubscribeAnswer} */
const NO_POSITION = Object.freeze({ offset: 0, epoch: '', recovered: false, publications: [] })

/** Channels with local subscribers. */
export class Hub {
  /** @type {Map<string, Channel>} */
  channels = new Map()
  /** Publications delivered since the start, counted for each subscriber. */
  delivered = 0
  /** Subscriptions of this worker, pending ones included. */
  subscriptions = 0
  #pubsub
  #fanout
  #clock
  #forEachSession
  /** Topics have short names: a channel's name may be long and is stored once. */
  #lastTopic = 0
  #newTopic = () => (++this.#lastTopic).toString(36)
  #encoder = new DeltaEncoder()
  /** Deltas between recovered publications. */
  recoveredDeltas = new DeltaCache(this.#encoder)
  /** @type {SlicedWork | null} */
  #positionCheck = null
  /** Windows of batched channels. */
  batches

  /**
   * @param {object} parts @param {PubSub} parts.pubsub
   * @param {FanoutParts} parts.fanout
   * @param {(visit: (session: Member) => void) => void} parts.forEachSession @param {() => number} parts.clock ms
   * @param {MonotonicClock} [parts.monotonic] of batches
   */
  constructor({ pubsub, fanout, forEachSession, clock, monotonic }) {
    this.#pubsub = pubsub
    this.#fanout = fanout
    this.#forEachSession = forEachSession
    this.#clock = clock
    this.batches = new Batches({
      channels: this.channels,
      fanout,
      encoder: this.#encoder,
      newTopic: this.#newTopic,
      cohort: (channel, { codec, events, filter }) => this.#cohort(channel, codec, events, filter),
      disconnectJson: (name, cohort) => this.#disconnectJson(name, cohort),
      delivered: publications => {
        this.delivered += publications
      },
      monotonic,
    })
  }

  /**
   * Prepares a subscription: after `done` without an error, `join` (in the same call) or `release` MUST follow. Calls
   * `done` at once when no request to the broker is needed.
   * @param {string} name @param {Omit<SubscribeWants, 'first'>} wants
   * @param {(error: Error | null, channel: Channel, answer: SubscribeAnswer) => void} done
   */
  prepare(name, wants, done) {
    let channel = this.channels.get(name)
    if (!channel) {
      this.channels.set(name, (channel = new Channel(name)))
      if (this.batches.on) channel.window = this.batches.window(name)
    }
    channel.count++
    this.subscriptions++
    if (channel.live && !wants.position && wants.client === '') return done(null, channel, NO_POSITION)
    this.#request(channel, wants, done)
  }

  /**
   * @param {Channel} channel @param {Omit<SubscribeWants, 'first'>} wants
   * @param {(error: Error | null, channel: Channel, answer: SubscribeAnswer) => void} done
   */
  #request(channel, wants, done) {
    const first = !channel.requested
    channel.requested = true
    this.#pubsub.subscribe(channel.name, { ...wants, first }, (error, answer) => {
      if (error) {
        // Unless a later subscription has succeeded meanwhile.
        if (first && !channel.live) channel.requested = false
        this.release(channel)
      } else {
        channel.live = true
        if (wants.position) this.#setPosition(channel, answer)
      }
      done(error, channel, answer)
    })
  }

  /**
   * Sets the position that the broker has answered. It comes in stream order, so it is that of all other subscribers
   * too, unless the stream has a new epoch.
   * @param {Channel} channel @param {{offset: number, epoch: string}} position
   * @param {boolean} [lost] whether publications before it are missing
   */
  #setPosition(channel, { offset, epoch }, lost = channel.epoch !== epoch || channel.offset !== offset) {
    if (lost && (channel.positioned || channel.buffers)) this.#losePosition(channel)
    channel.offset = offset
    channel.epoch = epoch
    channel.confirmedAt = this.#clock()
  }

  /** @param {Channel} channel whose subscribers cannot reach the stream's position */
  #losePosition(channel) {
    this.batches.flush(channel, 'position')
    for (const session of [...(channel.positioned ?? [])]) session.positionLost(channel.name)
    for (const buffer of channel.buffers ?? []) {
      if (buffer.positioned) buffer.fault ??= disconnects.insufficientState
    }
  }

  /** Undoes `prepare`. @param {Channel} channel */
  release(channel) {
    this.subscriptions--
    if (--channel.count > 0) return
    this.channels.delete(channel.name)
    this.batches.drop(channel)
    if (channel.requested) this.#pubsub.unsubscribe(channel.name)
  }

  /**
   * The cohort of a new subscriber, who is counted.
   * @param {Channel} channel @param {Codec} codec @param {boolean} events
   * @param {Filter | null} filter @returns {Cohort}
   */
  #cohort(channel, codec, events, filter) {
    const key = cohortKey(codec, events, filter)
    let cohort = channel.cohorts.find(cohort => cohort.key === key)
    if (!cohort) {
      cohort = new Cohort(key, this.#newTopic(), codec, events, filter, false)
      // Cohorts of one codec are adjacent, so that a publication is encoded once for all of them.
      const behind = channel.cohorts.findLastIndex(other => other.codec === codec)
      channel.cohorts.splice(behind < 0 ? channel.cohorts.length : behind + 1, 0, cohort)
    }
    cohort.count++
    return cohort
  }

  /**
   * Whether a subscriber with this filter may join: every different filter is work for each publication. Filters equal
   * to one of the channel always may.
   * @param {Channel} channel @param {Codec} codec @param {Filter} filter
   * @param {number} limit size of all different filters of the channel in this worker
   */
  mayFilter(channel, codec, filter, limit) {
    const key = cohortKey(codec, false, filter)
    let size = filterSize(filter)
    for (const cohort of this.batches.differentCohorts(channel)) {
      if (cohort.key === key) return true
      if (cohort.filter !== null) size += filterSize(cohort.filter)
    }
    return size <= limit
  }

  /** @param {Subscriber} session @param {Channel} channel @param {Cohort} cohort */
  #leaveCohort(session, channel, cohort) {
    if (cohort instanceof Newcomers) return channel.window?.leave(/** @type {Member} */ (session), cohort)
    const { deltas } = channel
    if (cohort.delta && deltas) {
      deltas.leave(/** @type {Member} */ (session), cohort)
      if (deltas.cohorts.length === 0) channel.deltas = null
      return
    }
    if (--cohort.count > 0) return
    channel.cohorts = channel.cohorts.filter(other => other !== cohort)
  }

  /**
   * From now on the session receives publications.
   * @param {Subscriber} session @param {Channel} channel @param {object} options @param {boolean} options.positioned
   * @param {boolean} options.events @param {Filter | null} options.filter
   * @param {boolean} [options.delta] delta-negotiated; excludes a filter
   * @param {Publication | null} [options.received] last publication of the stream that it has received
   * @returns {{cohort: Cohort, events: Cohort | null}}
   */
  join(session, channel, options) {
    const { positioned, events, filter, delta = false, received = null } = options
    if (positioned) (channel.positioned ??= new Set()).add(session)
    if (channel.window !== null) {
      const joined = this.batches.join(/** @type {Member} */ (session), channel, options)
      if (joined !== null) return joined
    }
    const cohort = delta
      ? (channel.deltas ??= new Deltas()).join(
          /** @type {Member} */ (session),
          positioned,
          received,
          this.#newTopic,
        )
      : this.#cohort(channel, session.codec, false, filter)
    session.follow(cohort.topic)
    if (!events) return { cohort, events: null }
    const eventCohort = this.#cohort(channel, session.codec, true, null)
    session.follow(eventCohort.topic)
    return { cohort, events: eventCohort }
  }

  /**
   * Undoes `join`, and releases the channel.
   * @param {Subscriber} session @param {Channel} channel @param {Cohort} cohort @param {Cohort | null} events
   */
  leave(session, channel, cohort, events) {
    session.unfollow(cohort.topic)
    this.#leaveCohort(session, channel, cohort)
    if (events) {
      session.unfollow(events.topic)
      this.#leaveCohort(session, channel, events)
    }
    if (channel.positioned?.delete(session) && channel.positioned.size === 0) channel.positioned = null
    this.release(channel)
  }

  /** Adds `change` clients to a subscriber. @param {Channel} channel @param {Cohort} cohort @param {number} change */
  addClients(channel, cohort, change) {
    channel.count += change
    this.subscriptions += change
    cohort.count += change
  }

  /**
   * Buffers publications from now on for a subscriber whose reply is not written yet.
   * @param {Channel} channel @param {Codec} codec @param {Filter | null} filter
   * @param {boolean} positioned @param {boolean} delta @param {number} maxBytes of its messages
   * @returns {PublicationBuffer} its messages must be sent before `join`
   */
  buffer(channel, codec, filter, positioned, delta, maxBytes) {
    const buffer = new PublicationBuffer(codec, filter, positioned, delta, maxBytes)
    ;(channel.buffers ??= new Set()).add(buffer)
    return buffer
  }

  /** @param {Channel} channel @param {PublicationBuffer} buffer */
  unbuffer(channel, buffer) {
    if (channel.buffers?.delete(buffer) && channel.buffers.size === 0) channel.buffers = null
  }

  /** Fans out a publication of the broker. @param {string} name @param {Publication} publication */
  publication(name, publication) {
    const channel = this.channels.get(name)
    if (!channel?.live) return
    if (
      publication.offset > 0 &&
      (channel.positioned || channel.buffers) &&
      !this.#advance(channel, publication)
    ) {
      return
    }
    if (channel.window !== null) this.batches.hold(channel, channel.window, publication)
    else this.#publish(channel, publication)
    for (const buffer of channel.buffers ?? []) {
      if (buffer.filter && !buffer.filter.matches(publication.tags)) continue
      if (!publication.json && !buffer.codec.binary) {
        buffer.fault ??= disconnects.inappropriateProtocol
        continue
      }
      buffer.add(name, publication)
    }
  }

  /** @param {Channel} channel @param {Publication} publication */
  #publish(channel, publication) {
    const { name } = channel
    let encodedBy = null
    let bytes = null
    for (const cohort of channel.cohorts) {
      if (cohort.events || (cohort.filter && !cohort.filter.matches(publication.tags))) continue
      const { codec } = cohort
      if (!publication.json && !codec.binary) {
        this.#disconnectJson(name, cohort)
        continue
      }
      if (!bytes || encodedBy !== codec) {
        bytes = codec.publication(name, publication)
        encodedBy = codec
      }
      this.#fanout.publish(cohort, bytes, publication)
      this.delivered += cohort.count
    }
    if (channel.deltas !== null) this.#publishDeltas(name, channel.deltas, publication)
  }

  /** @param {string} name @param {Deltas} deltas @param {Publication} publication */
  #publishDeltas(name, deltas, publication) {
    const delta = deltas.encode(publication, this.#encoder)
    const isText = delta !== null && isUtf8(delta)
    for (const cohort of deltas.cohorts) {
      const { codec } = cohort
      if (!publication.json && !codec.binary) {
        this.#disconnectJson(name, cohort)
        continue
      }
      const readable = cohort.readsDeltas && (isText || codec.binary) ? delta : null
      const bytes = codec.deltaPublication(name, publication, readable)
      this.#fanout.publish(cohort, bytes, publication)
      this.delivered += cohort.count
    }
    deltas.advance(name, publication)
  }

  /** @param {Channel} channel @param {Publication} publication @returns {boolean} false: already delivered */
  #advance(channel, { offset, epoch, previous = offset - 1 }) {
    if (channel.epoch === epoch && offset <= channel.offset) return false
    const expected = channel.epoch === '' || channel.epoch === epoch
    if (!expected || previous > channel.offset) this.#losePosition(channel)
    channel.offset = offset
    channel.epoch = epoch
    channel.confirmedAt = this.#clock()
    return true
  }

  /**
   * Missed publications cannot be recovered: the next publication follows this position.
   * @param {string} name @param {number} offset @param {string} epoch
   */
  lost(name, offset, epoch) {
    const channel = this.channels.get(name)
    if (channel?.live) this.#setPosition(channel, { offset, epoch }, true)
  }

  /** Disconnects JSON subscribers: the payload is not JSON. @param {string} name @param {Cohort} cohort */
  #disconnectJson(name, cohort) {
    /** @type {Member[]} */
    const members = []
    this.#forEachSession(session => {
      if (session.subscription(name)?.cohort === cohort) members.push(session)
    })
    for (const session of members) session.inappropriateProtocol()
  }

  /** Fans out a join or a leave. @param {string} name @param {string} info JSON ClientInfo @param {boolean} joined */
  presence(name, info, joined) {
    const channel = this.channels.get(name)
    if (channel === undefined) return
    if (channel.window !== null) return this.batches.holdEvent(channel, channel.window, info, joined)
    for (const cohort of channel.cohorts) {
      if (!cohort.events) continue
      this.#fanout.publish(cohort, toBytes(cohort.codec.event(name, info, joined)), null)
    }
  }

  /**
   * Compares positions that no publication has confirmed for a while with the stream's, in slices. No effect before the
   * previous comparison is complete.
   * @param {number} delay ms
   * @param {(channel: string) => number} metaTtl ms
   */
  checkPositions(delay, metaTtl) {
    if (this.#positionCheck?.running) return
    // Channels that come and go between two slices change nothing for the others: that is how Map iterators work.
    const channels = this.channels.values()
    this.#positionCheck = new SlicedWork(() => {
      const { value: channel, done } = channels.next()
      if (done) return false
      this.#checkPosition(channel, delay, metaTtl)
      return true
    })
    this.#positionCheck.run()
  }

  /** @param {Channel} channel @param {number} delay ms @param {(channel: string) => number} metaTtl ms */
  #checkPosition(channel, delay, metaTtl) {
    const now = this.#clock()
    if (!channel.positioned || now - channel.confirmedAt < delay) return
    channel.confirmedAt = now
    this.#pubsub.position(channel.name, metaTtl(channel.name), (error, offset, epoch) => {
      if (!error && channel.positioned) this.#setPosition(channel, { offset, epoch })
    })
  }
}
