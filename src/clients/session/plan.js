import { isUtf8 } from 'node:buffer'
import { bytesOf } from '../../channels/broker/size.js'
import { Filter } from '../protocol/filter.js'
import { rawOf } from '../protocol/payload.js'
import { expireSubscription } from './expiry.js'
import { maxReplyBytes } from './replies.js'
import { Kind, NO_DETAILS, Subscription } from './subscription.js'

/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { Publication, SubscribeAnswer, SubscribeWants } from '../../channels/broker/contract.js' */
/** @import { SubscriptionAnswer } from '../hooks/contract.js' */
/** @import { Channel, PublicationBuffer } from '../../channels/hub/channel.js' */
/** @import { SubscribeResult } from '../protocol/contract.js' */
/** @import { Session } from './session.js' */

/** Flag of SubscribeRequest: refuse with error 112 instead of subscribing without recovery. */
export const REJECT_UNRECOVERED = 2

/** @typedef {Omit<SubscribeWants, 'first'>} Wants */

/** Shared by plain subscriptions, which are most. @type {Wants} */
export const WANTS_NOTHING = Object.freeze({
  position: false,
  recover: null,
  latest: false,
  metaTtl: 0,
  client: '',
  info: '',
  leave: false,
})

/**
 * @typedef {object} Grant properties of a subscription from a token, a handler or the server API
 * @property {string} [info] channel info, raw JSON
 * @property {string | Buffer} [data] for the subscribe result: raw JSON, or bytes that are not JSON
 * @property {number} [expireAt] unix s
 * @property {Record<string, boolean>} [override] channel options
 * @property {boolean} [token] whether it comes from a subscription token
 * @property {boolean} [hook] whether it comes from a handler
 * @property {boolean} [ignoreFlags] the client cannot request recovery, positions, joins and leaves
 * @property {boolean} [cacheRecover] in cache mode, recover without a position of the client
 */

/** @type {Grant} */
export const NO_GRANT = Object.freeze({})

const NO_FLAGS = Object.freeze({ recoverable: false, positioned: false, join_leave: false })

/**
 * @param {SubscriptionAnswer} answer of a handler
 * @returns {Grant}
 */
export function grantOf({ info, data, expireAt, override, cacheRecover, ignoreFlags }) {
  return { info, data: data && rawOf(data), expireAt, override, cacheRecover, ignoreFlags, hook: true }
}

/** A requested subscription, limited to what the channel's options and the grant allow. */
export class Plan {
  /**
   * @param {Session} session @param {string} channel @param {Namespace} namespace
   * @param {any} request fields of a SubscribeRequest @param {Grant} grant @param {boolean} serverSide
   */
  constructor(session, channel, namespace, request, grant, serverSide) {
    const { options, historyOn } = namespace
    const { rules } = session.context
    const { override } = grant
    /** @param {'presence' | 'join_leave' | `force_${'recovery' | 'positioning' | 'push_join_leave'}`} name */
    const on = name => override?.[name] ?? options[name]
    const readsHistory = rules.mayReadHistory(namespace, session.user, true)
    const flags = grant.ignoreFlags ? NO_FLAGS : request
    const recovery =
      on('force_recovery') || Boolean(flags.recoverable && (options.allow_recovery || readsHistory))
    // Without history nobody knows what was missed: `recovered` would be a false promise.
    const recoverable = recovery && historyOn
    const positioned =
      recovery ||
      on('force_positioning') ||
      Boolean(flags.positioned && (options.allow_positioning || readsHistory))
    const joinLeave = on('join_leave')
    const present = on('presence')
    // A handler prolongs subscriptions unseen by their clients.
    const expires =
      (grant.token || grant.hook) && grant.expireAt && !serverSide && namespace.handlers.subRefresh === null

    this.session = session
    this.channel = channel
    this.namespace = namespace
    this.grant = grant
    // An override affects the subscription's own joins and leaves; the channel decides if a client may request any.
    const asksForEvents = flags.join_leave && options.join_leave && !serverSide
    this.events =
      on('force_push_join_leave') ||
      Boolean(asksForEvents && rules.mayReadPresence(namespace, session.user, true))
    this.cache = recoverable && options.force_recovery_mode === 'cache'
    this.wasRecovering =
      Boolean(request.recover) || (this.cache && (options.auto_cache_recover || Boolean(grant.cacheRecover)))
    this.recovering = this.wasRecovering && recoverable
    // In cache mode an empty channel is no loss.
    this.rejectUnrecovered = Boolean(
      recoverable && !this.cache && request.recover && request.flag & REJECT_UNRECOVERED,
    )
    this.offset = request.recover ? (request.offset ?? 0) : 0
    this.epoch = request.recover ? (request.epoch ?? '') : ''
    /** @type {Filter | null} */
    this.filter = request.tf ? new Filter(request.tf) : null
    // A filtered stream lacks the previous publications that deltas refer to. One-way clients cannot request deltas.
    this.delta =
      request.delta === 'fossil' &&
      this.filter === null &&
      !session.codec.unidirectional &&
      options.allowed_delta_types.includes('fossil')
    /** @type {Publication | null} what the client will have got last when the result is sent */
    this.received = null
    /** @type {PublicationBuffer | null} */
    this.liveBuffer = null
    /** ClientInfo in presence, '' if none. */
    this.listed = ''
    this.kind =
      (serverSide ? Kind.SERVER_SIDE : 0) |
      (positioned ? Kind.POSITIONED : 0) |
      (recoverable ? Kind.RECOVERABLE : 0) |
      (present ? Kind.PRESENT : 0) |
      (joinLeave ? Kind.ANNOUNCED : 0) |
      (expires ? Kind.REFRESHED_BY_CLIENT : 0)
  }

  /** @returns {Wants} */
  wants() {
    const { session, kind } = this
    if ((kind & (Kind.POSITIONED | Kind.PRESENT)) === 0) return WANTS_NOTHING
    const { recovery_max_publication_limit } = session.context.config.client
    // Cache mode needs the newest publication only; with a filter, the newest that matches.
    const limit = this.cache ? (this.filter ? 0 : 1) : recovery_max_publication_limit
    const present = (kind & Kind.PRESENT) !== 0
    if (present) this.listed = session.clientInfo(this.grant.info ?? '')
    return {
      position: (kind & Kind.POSITIONED) !== 0,
      recover: this.recovering
        ? { offset: this.offset, epoch: this.epoch, limit, maxBytes: maxReplyBytes(session) }
        : null,
      latest: this.cache,
      metaTtl: this.namespace.metaTtl,
      client: present ? session.id : '',
      info: this.listed,
      leave: (kind & Kind.ANNOUNCED) !== 0,
    }
  }

  /**
   * Recovered publications, or null. An empty list is a success.
   * @param {SubscribeAnswer} answer @param {number} room maximum bytes of the publications
   * @returns {Publication[] | null}
   */
  #recovered({ recovered, publications, offset, epoch }, room) {
    if (!this.recovering || !recovered || bytesOf(publications) > room) return null
    const matching = this.filter
      ? publications.filter(publication => this.filter?.matches(publication.tags))
      : publications
    if (!this.cache) return matching
    // Cache mode: only the newest publication counts, whatever position the client has.
    if (offset > 0 && this.offset === offset && this.epoch === epoch) return []
    return matching.length > 0 ? matching.slice(-1) : null
  }

  /**
   * @param {SubscribeAnswer} answer
   * @param {number} [room] bytes that other subscriptions have left in the reply; more than that is not recovered
   * @returns {SubscribeResult}
   */
  result(answer, room = Infinity) {
    /** @type {SubscribeResult} */
    const result = {}
    if (this.kind & Kind.POSITIONED) {
      const publications = this.#recovered(answer, room)
      result.positioned = true
      result.epoch = answer.epoch
      // SDKs set their position to this and advance it with each recovered publication.
      result.offset = publications ? this.offset : answer.offset
      if (this.kind & Kind.RECOVERABLE) result.recoverable = true
      if (publications) {
        result.recovered = true
        result.publications = publications
        this.received = publications.at(-1) ?? null
        if (this.delta) result.deltas = this.#deltas(publications)
      }
    }
    if (this.delta) result.delta = true
    if (this.wasRecovering) {
      const { traffic } = this.session.context
      result.was_recovering = true
      if (result.recovered) traffic.counts.recoveries.recovered++
      else traffic.counts.recoveries.failed++
    }
    if (this.grant.data) result.data = this.grant.data
    if (this.kind & Kind.REFRESHED_BY_CLIENT) {
      result.expires = true
      result.ttl = this.session.context.ttl(this.grant.expireAt ?? 0)
    }
    return result
  }

  /**
   * @param {Publication[]} publications
   * @returns {(Buffer | null)[]} delta of each publication; null: none, or the client's codec cannot carry it
   */
  #deltas(publications) {
    const { codec, context } = this.session
    const deltas = context.hub.recoveredDeltas.between(this.channel, publications)
    return codec.binary ? deltas : deltas.map(delta => (delta && isUtf8(delta) ? delta : null))
  }

  /**
   * Buffers the channel's messages until the result can be sent.
   * @param {Channel} channel
   * @returns {PublicationBuffer}
   */
  buffer(channel) {
    const { session, filter, kind, delta } = this
    const positioned = (kind & Kind.POSITIONED) !== 0
    const { hub } = session.context
    this.liveBuffer = hub.buffer(channel, session.codec, filter, positioned, delta, maxReplyBytes(session))
    return this.liveBuffer
  }

  /** Whether the channel has room for the filter. @param {Channel} channel */
  mayFilter(channel) {
    const { session, filter } = this
    const { hub, config } = session.context
    return (
      filter === null || hub.mayFilter(channel, session.codec, filter, config.channel.tags_filters_max_size)
    )
  }

  /** Makes the subscription live after its result, with its expiry and its join event. @param {Channel} channel */
  join(channel) {
    const { session, kind, grant, liveBuffer } = this
    const { cohort, events } = session.context.hub.join(session, channel, {
      positioned: (kind & Kind.POSITIONED) !== 0,
      events: this.events,
      filter: this.filter,
      delta: this.delta,
      received: liveBuffer && liveBuffer.messages.length > 0 ? null : this.received,
    })
    const { info = '', expireAt = 0 } = grant
    const details = info || expireAt ? { info, expiry: null } : NO_DETAILS
    const subscription = new Subscription(channel, cohort, events, kind, details)
    session.addSubscription(subscription)
    const listed = kind & Kind.PRESENT ? session.clientInfo(info) : ''
    // The connection was refreshed meanwhile.
    if (listed !== this.listed) session.context.broker.presence.update(channel.name, session.id, listed)
    expireSubscription(session, subscription, expireAt)
    if (kind & Kind.ANNOUNCED) {
      session.context.broker.pubsub.announce(channel.name, session.clientInfo(details.info), true)
    }
    session.context.lifecycle?.subscribed(session, channel.name)
  }

  /**
   * Removes presence and sends the leave of a former subscription of the channel, if this one has none of its own.
   * @param {Subscription} former
   */
  withdraw(former) {
    const { session, channel, kind } = this
    const { broker } = session.context
    if (former.is(Kind.PRESENT) && !(kind & Kind.PRESENT)) broker.presence.remove(channel, session.id)
    if (former.is(Kind.ANNOUNCED) && !(kind & Kind.ANNOUNCED)) {
      broker.pubsub.announce(channel, session.clientInfo(former.details.info), false)
    }
  }

  /** Undoes `wants` at the broker, for a session that has closed meanwhile. @param {Channel} channel */
  abandon(channel) {
    const { hub, broker } = this.session.context
    if (this.kind & Kind.PRESENT) broker.presence.remove(channel.name, this.session.id)
    hub.release(channel)
  }
}
