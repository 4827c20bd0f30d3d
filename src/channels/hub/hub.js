// Channels with local subscribers, and the fan-out of their publications. The first local subscriber of a channel
// subscribes the worker to it at the broker, the last one unsubscribes it. Publications are sent once, in offset
// order; subscribers with a gap get `positionLost`. maps.js: changes of maps.

import { isUtf8 } from 'node:buffer'
import { disconnects, errors } from '../../base/errors.js'
import { SlicedWork } from '../../base/slices.js'
import { DeltaEncoder } from '../../clients/protocol/delta.js'
import { NOT_SUBSCRIBED } from '../broker/contract.js'
import { Batches, toBytes } from './batches.js'
import { ChangeBuffer, Channel, Cohort, cohortKey, filterSize, PublicationBuffer } from './channel.js'
import { DeltaCache, Deltas } from './deltas.js'
import { MapFanout } from './maps.js'
import { PollFanout } from './polls.js'
import { TargetFanout } from './targets.js'
import { Newcomers } from './window.js'

/** @import { Polls, PubSub, Publication, SubscribeAnswer, SubscribeWants } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { MonotonicClock } from './lanes.js' */
/** @import { FanoutParts } from './batches.js' */
/** @import { ReadEntry } from './maps.js' */
/** @import { SessionLookup } from './targets.js' */

/**
 * @typedef {object} Subscriber of a channel; a Member if it uses deltas, batches or a text codec
 * @property {Codec} codec
 * @property {(topic: string) => void} follow joins a fan-out topic
 * @property {(topic: string) => void} unfollow
 * @property {(channel: string) => void} positionLost it missed publications and MUST leave the channel
 *
 * @typedef {{cohort: Cohort, events: Cohort | null}} Following a member's entry for a subscription; set by the hub
 *
 * A session. `id`: client id; `user`: '' = anonymous; `inappropriateProtocol`: disconnects, because its codec cannot
 * encode a payload.
 * @typedef {Subscriber & {id: string, user: string, subscription: (channel: string) => Following | undefined,
 *   inappropriateProtocol: () => void}} Member
 */

export class Hub {
  /** @type {Map<string, Channel>} */
  channels = new Map()
  /** Deliveries since the start: publications x subscribers. */
  delivered = 0
  subscriptions = 0
  #pubsub
  #clock
  #forEachSession
  /** Short topic names: channel names may be long and are stored once. */
  #lastTopic = 0
  #lastChannelId = 0
  newTopic = () => (++this.#lastTopic).toString(36)
  encoder = new DeltaEncoder()
  recoveredDeltas = new DeltaCache(this.encoder)
  /** @type {SlicedWork | null} */
  #positionCheck = null
  batches
  maps
  polls
  targets

  /**
   * @param {object} parts @param {PubSub} parts.pubsub @param {ReadEntry} [parts.readEntry] @param {Polls} [parts.polls]
   * @param {FanoutParts} parts.fanout @param {SessionLookup} parts.sessions
   * @param {(visit: (session: Member) => void) => void} parts.forEachSession @param {() => number} parts.clock ms
   * @param {MonotonicClock} [parts.monotonic] of batches and appended values
   */
  constructor({ pubsub, fanout, sessions, readEntry, polls, forEachSession, clock, monotonic }) {
    this.#pubsub = pubsub
    this.fanout = fanout
    this.#forEachSession = forEachSession
    this.#clock = clock
    this.batches = new Batches(this, monotonic)
    this.maps = new MapFanout(this, readEntry, monotonic)
    this.polls = new PollFanout(this, polls)
    this.targets = new TargetFanout(this, sessions)
  }

  /**
   * Prepares a subscription: after `done` without an error, `join` (in the same call) or `release` MUST follow.
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
    if (channel.live && !wants.position && wants.client === '') return done(null, channel, NOT_SUBSCRIBED)
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
   * Called in stream order: also sets the position of other subscribers, unless the epoch is new.
   * @param {Channel} channel @param {{offset: number, epoch: string}} position
   * @param {boolean} [lost] whether publications before it are missing
   */
  #setPosition(channel, { offset, epoch }, lost = channel.epoch !== epoch || channel.offset !== offset) {
    if (lost) {
      if (channel.positioned || channel.buffers) this.#losePosition(channel)
      this.maps.forget(channel)
    }
    channel.offset = offset
    channel.epoch = epoch
    channel.confirmedAt = this.#clock()
  }

  /** Subscribers have missed publications. @param {Channel} channel */
  #losePosition(channel) {
    this.batches.flush(channel, 'position')
    this.maps.forget(channel)
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
    this.maps.drop(channel)
    if (channel.requested) this.#pubsub.unsubscribe(channel.name)
  }

  /** @param {string} name of a prepared channel @returns {number} its id; it keeps it while it has subscribers */
  idOf(name) {
    const channel = /** @type {Channel} */ (this.channels.get(name))
    // Never used again: a client may still have the id of a channel that it has left.
    if (channel.id === 0) channel.id = ++this.#lastChannelId
    return channel.id
  }

  /**
   * @param {Channel} channel @param {Codec} codec @param {boolean} events @param {Filter | null} filter
   * @param {number} channelId see Cohort @param {boolean} [parts]
   */
  cohort(channel, codec, events, filter, channelId, parts = false) {
    const key = cohortKey(codec, events, filter, channelId, parts)
    let cohort = channel.cohorts.find(cohort => cohort.key === key)
    if (!cohort) {
      cohort = new Cohort(key, this.newTopic(), codec, events, filter, false)
      cohort.parts = parts
      cohort.channelId = channelId
      // Cohorts with one encoding are adjacent, so that each publication is encoded once for them.
      const same = (/** @type {Cohort} */ other) => other.codec === codec && other.channelId === channelId
      const behind = channel.cohorts.findLastIndex(same)
      channel.cohorts.splice(behind < 0 ? channel.cohorts.length : behind + 1, 0, cohort)
    }
    cohort.count++
    return cohort
  }

  /**
   * Whether a subscriber with this filter may join: each distinct filter costs work per publication.
   * @param {Channel} channel @param {Codec} codec @param {Filter} filter
   * @param {number} limit total size of the channel's distinct filters in this worker, of those with or without a filter
   *   of the backend
   */
  mayFilter(channel, codec, filter, limit) {
    let size = filterSize(filter)
    for (const cohort of this.batches.differentCohorts(channel)) {
      const { filter: other } = cohort
      if (cohort.codec === codec && other?.key === filter.key) return true
      if (other !== null && (other.server === null) === (filter.server === null)) size += filterSize(other)
    }
    return size <= limit
  }

  /**
   * Moves a subscriber without deltas to another filter.
   * @param {Subscriber} session @param {Channel} channel with an empty window
   * @param {Cohort} cohort its present one @param {Filter} filter
   * @returns {Cohort}
   */
  refilter(session, channel, cohort, filter) {
    const next = this.cohort(channel, session.codec, false, filter, cohort.channelId, cohort.parts)
    // Follow first: a session without any topic may lose messages in transit from the old one.
    session.follow(next.topic)
    session.unfollow(cohort.topic)
    this.#leaveCohort(session, channel, cohort)
    return next
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
   * @param {Subscriber} session @param {Channel} channel @param {object} options @param {boolean} options.positioned
   * @param {boolean} options.events @param {Filter | null} options.filter
   * @param {boolean} [options.delta] delta-negotiated; excludes a filter
   * @param {boolean} [options.keepsLatest] with `delta`: deltas may refer to publications outside the stream
   * @param {number} [options.channelId] pushes have this id (`idOf`) instead of the channel's name; 0: the name
   * @param {Publication | null} [options.received] last publication of the stream it received
   * @param {boolean} [options.map] the channel is a map
   * @param {boolean} [options.parts] it joins the parts that are appended to values of a map
   * @param {ReadonlySet<string> | null} [options.unsent] of its buffer
   * @param {readonly Publication[] | null} [options.known] with `delta`: entries and changes that it received, at the
   *   channel's position
   */
  join(session, channel, options) {
    const { positioned, events, filter, channelId = 0 } = options
    const { delta = false, map = false, parts = false } = options
    const member = /** @type {Member} */ (session)
    if (delta && !map && options.keepsLatest) channel.keepsLatest = true
    if (positioned) (channel.positioned ??= new Set()).add(session)
    else if (map) (channel.unpositioned ??= new Set()).add(session)
    if (channel.window !== null) {
      const joined = this.batches.join(member, channel, options)
      if (joined !== null) return joined
    }
    const cohort = delta
      ? (channel.deltas ??= new Deltas(channel, map)).join(member, options, this.newTopic)
      : this.cohort(channel, session.codec, false, filter, channelId, parts)
    session.follow(cohort.topic)
    if (options.known && cohort.readsDeltas) this.maps.learn(channel, options.known)
    if (options.unsent) this.maps.owe(channel, options.unsent, delta)
    if (!events) return { cohort, events: null }
    const eventCohort = this.cohort(channel, session.codec, true, null, channelId)
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
    if (channel.unpositioned?.delete(session) && channel.unpositioned.size === 0) channel.unpositioned = null
    this.release(channel)
  }

  /** Adds `change` clients to a subscriber. @param {Channel} channel @param {Cohort} cohort @param {number} change */
  addClients(channel, cohort, change) {
    channel.count += change
    this.subscriptions += change
    cohort.count += change
  }

  /**
   * Buffers publications for a subscriber until its reply is written.
   * @param {Channel} channel @param {Codec} codec @param {Filter | null} filter
   * @param {boolean} positioned @param {boolean} delta @param {number} maxBytes of its messages
   * @param {boolean} [parts] as in `join`
   * @returns {PublicationBuffer} send its messages before `join`
   */
  buffer(channel, codec, filter, positioned, delta, maxBytes, parts = false) {
    const buffer = new PublicationBuffer(codec, filter, positioned, delta, maxBytes, parts)
    ;(channel.buffers ??= new Set()).add(buffer)
    return buffer
  }

  /**
   * Collects the changes of a map without positions while a subscriber reads its state.
   * @param {Channel} channel @param {Codec} codec @param {Filter | null} filter @param {number} maxBytes
   */
  collect(channel, codec, filter, maxBytes) {
    const buffer = new ChangeBuffer(codec, filter, maxBytes)
    ;(channel.buffers ??= new Set()).add(buffer)
    return buffer
  }

  /** @param {Channel} channel @param {PublicationBuffer | ChangeBuffer} buffer */
  unbuffer(channel, buffer) {
    if (channel.buffers?.delete(buffer) && channel.buffers.size === 0) channel.buffers = null
  }

  /** Fans out a publication of the broker. @param {string} name @param {Publication} publication */
  publication(name, publication) {
    const channel = this.channels.get(name)
    if (!channel?.live) return
    const checked = publication.offset > 0 && (channel.positioned || channel.buffers)
    if (checked && !this.#advance(channel, publication)) return
    const { target } = publication
    if (publication.keyed) this.#keyed(channel, publication)
    else if (target !== null) this.targets.publish(channel, publication, target)
    else if (channel.window !== null) this.batches.hold(channel, channel.window, publication)
    else this.#publish(channel, publication)
    for (const buffer of channel.buffers ?? []) {
      if (buffer.filter && !buffer.filter.matches(publication.tags)) continue
      if (target !== null && !buffer.isWithin(target)) continue
      if (!publication.json && !buffer.codec.binary) {
        buffer.fault ??= disconnects.inappropriateProtocol
        continue
      }
      buffer.add(name, publication)
    }
  }

  /** @param {Channel} channel @param {Publication} publication with `keyed` */
  #keyed(channel, publication) {
    if (this.polls.has(channel.name)) this.polls.publication(channel.name, publication)
    else this.maps.publish(channel, publication)
  }

  /** @param {Channel} channel @param {Publication} publication */
  #publish(channel, publication) {
    this.send(channel, publication, null)
    const { deltas } = channel
    if (deltas === null) return
    this.sendDeltas(channel, deltas, publication, deltas.encode(publication, this.encoder))
    deltas.advance(publication)
  }

  /**
   * Sends a publication to all but delta-negotiated subscribers.
   * @param {Channel} channel @param {Publication} publication
   * @param {boolean | null} parts only to those that join parts, or only to the others; null: to both
   */
  send(channel, publication, parts) {
    const { name } = channel
    let encodedBy = null
    let encodedId = 0
    let bytes = null
    for (const cohort of channel.cohorts) {
      if (cohort.events || (cohort.filter && !cohort.filter.matches(publication.tags))) continue
      if (parts !== null && cohort.parts !== parts) continue
      const { codec, channelId } = cohort
      if (!publication.json && !codec.binary) {
        this.disconnectJson(name, cohort)
        continue
      }
      if (!bytes || encodedBy !== codec || encodedId !== channelId) {
        bytes = codec.publication(channelId || name, publication)
        encodedBy = codec
        encodedId = channelId
      }
      this.fanout.publish(cohort, bytes, publication)
      this.delivered += cohort.count
    }
  }

  /**
   * @param {Channel} channel @param {Deltas} deltas @param {Publication} publication
   * @param {Buffer | null} delta of the publication
   */
  sendDeltas({ name }, deltas, publication, delta) {
    const isText = delta !== null && isUtf8(delta)
    for (const cohort of deltas.cohorts) {
      const { codec } = cohort
      if (!publication.json && !codec.binary) {
        this.disconnectJson(name, cohort)
        continue
      }
      const readable = cohort.readsDeltas && (isText || codec.binary) ? delta : null
      const bytes = codec.deltaPublication(cohort.channelId || name, publication, readable)
      this.fanout.publish(cohort, bytes, publication)
      this.delivered += cohort.count
    }
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
   * Missed publications are lost: the next publication follows this position.
   * @param {string} name @param {number} offset @param {string} epoch
   */
  lost(name, offset, epoch) {
    const channel = this.channels.get(name)
    if (channel?.live) this.#setPosition(channel, { offset, epoch }, true)
  }

  /** Subscribers of a map without positions read its state again. @param {string} name */
  interrupted(name) {
    const channel = this.channels.get(name)
    for (const buffer of channel?.buffers ?? [])
      if (buffer instanceof ChangeBuffer) buffer.fault ??= errors.internal
    for (const session of [...(channel?.unpositioned ?? [])]) session.positionLost(name)
  }

  /** Disconnects JSON subscribers: the payload is not JSON. @param {string} name @param {Cohort} cohort */
  disconnectJson(name, cohort) {
    for (const session of this.members(name, other => other === cohort)) session.inappropriateProtocol()
  }

  /** Visits all sessions. @param {string} name @param {(cohort: Cohort) => boolean} matches */
  members(name, matches) {
    /** @type {Member[]} */
    const members = []
    this.#forEachSession(session => {
      const cohort = session.subscription(name)?.cohort
      if (cohort !== undefined && matches(cohort)) members.push(session)
    })
    return members
  }

  /** Fans out a join or a leave. @param {string} name @param {string} info JSON ClientInfo @param {boolean} joined */
  presence(name, info, joined) {
    const channel = this.channels.get(name)
    if (channel === undefined) return
    if (channel.window !== null) return this.batches.holdEvent(channel, channel.window, info, joined)
    for (const cohort of channel.cohorts) {
      if (!cohort.events) continue
      this.fanout.publish(cohort, toBytes(cohort.codec.event(cohort.channelId || name, info, joined)), null)
    }
  }

  /** Checks unconfirmed positions. @param {number} delay ms @param {(channel: string) => number} metaTtl ms */
  checkPositions(delay, metaTtl) {
    if (this.#positionCheck?.running) return
    // A Map iterator allows channels to be added and removed between two slices.
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
