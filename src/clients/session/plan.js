import { isUtf8 } from 'node:buffer'
import { bytesOf } from '../../channels/broker/size.js'
import { Operation } from '../hooks/capabilities.js'
import { Filter } from '../protocol/filter.js'
import { rawOf } from '../protocol/payload.js'
import { SubscribeFlag } from '../protocol/requests.js'
import { expireSubscription } from './expiry.js'
import { maxReplyBytes } from './replies.js'
import { capabilitiesFor, hasRoomFor, receivable } from './rights.js'
import { Trait } from './state.js'
import { Kind, kindOfAllow, kindOfSource, MAPPED, NO_DETAILS, Source, Subscription } from './subscription.js'

/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { TokenStamp } from '../auth/claims.js' */
/** @import { Publication, SubscribeAnswer, SubscribeWants } from '../../channels/broker/contract.js' */
/** @import { SubscriptionAnswer } from '../hooks/contract.js' */
/** @import { Channel, PublicationBuffer } from '../../channels/hub/channel.js' */
/** @import { SubscribeResult } from '../protocol/contract.js' */
/** @import { Session } from './session.js' */

/** @typedef {Omit<SubscribeWants, 'first'>} Wants */

/** Shared by plain subscriptions. @type {Wants} */
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
 * @typedef {object} Grant from a token, a handler or the server API
 * @property {string} [info] channel info, raw JSON
 * @property {string | Buffer} [data] for the subscribe result: raw JSON, or bytes that are not JSON
 * @property {number} [expireAt] unix s
 * @property {Record<string, boolean>} [override] channel options
 * @property {TokenStamp} [stamp] from a subscription token
 * @property {boolean} [hook] from a handler
 * @property {boolean} [ignoreFlags] ignores client flags for recovery, positions, joins and leaves, unless `allow` or
 *   capabilities grant them
 * @property {number} [allow] bits of Operation
 * @property {Filter} [filter] the backend's
 * @property {boolean} [keepsFilter] it is that of the existing subscription
 * @property {boolean} [capability] only capabilities of the connection allow it
 * @property {boolean} [cacheRecover] in cache mode, recovers without a client position
 * @property {number} [source] what allowed it: one of Source
 */

/** A grant of channel options or the like, by Source. @type {readonly Grant[]} */
const GRANTS = Object.values(Source).map(source => Object.freeze({ source }))

/** @param {number} source one of Source @returns {Grant} with nothing else */
export const grantBy = source => GRANTS[source]

const NO_FLAGS = Object.freeze({ recoverable: false, positioned: false, join_leave: false })

/** @param {SubscriptionAnswer} answer from a handler @param {number} source one of Source @returns {Grant} */
export function grantOf({ data, ...answer }, source) {
  return { ...answer, data: data && rawOf(data), hook: true, source }
}

/** A requested subscription, limited by channel options and grant. */
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
    const asks = request.recoverable || request.positioned || request.join_leave
    const granted = asks ? (grant.allow ?? 0) | capabilitiesFor(session, channel) : 0
    const historyGranted = (granted & Operation.HISTORY) !== 0
    const recovery =
      on('force_recovery') ||
      Boolean(flags.recoverable && (options.allow_recovery || readsHistory)) ||
      Boolean(request.recoverable && historyGranted)
    // Without history, missed publications are unknown: `recovered` would be wrong.
    const recoverable = recovery && historyOn
    const positioned =
      recovery ||
      on('force_positioning') ||
      Boolean(flags.positioned && (options.allow_positioning || readsHistory)) ||
      Boolean(request.positioned && historyGranted)
    const joinLeave = on('join_leave')
    const present = on('presence')
    // A handler extends subscriptions without client requests.
    const expires =
      (grant.stamp || grant.hook) && grant.expireAt && !serverSide && namespace.handlers.subRefresh === null

    this.session = session
    this.channel = channel
    this.namespace = namespace
    this.grant = grant
    // An override applies to the subscription's joins and leaves; channel options, to requests for others.
    const offersEvents = options.join_leave && !serverSide
    this.events =
      on('force_push_join_leave') ||
      Boolean(offersEvents && flags.join_leave && rules.mayReadPresence(namespace, session.user, true)) ||
      Boolean(offersEvents && request.join_leave && granted & Operation.PRESENCE)
    this.cache = recoverable && options.force_recovery_mode === 'cache'
    this.wasRecovering =
      Boolean(request.recover) || (this.cache && (options.auto_cache_recover || Boolean(grant.cacheRecover)))
    this.recovering = this.wasRecovering && recoverable
    // In cache mode, an empty channel has lost nothing.
    this.rejectUnrecovered = Boolean(
      recoverable && !this.cache && request.recover && request.flag & SubscribeFlag.REJECT_UNRECOVERED,
    )
    this.offset = request.recover ? (request.offset ?? 0) : 0
    this.epoch = request.recover ? (request.epoch ?? '') : ''
    /** @type {Filter | null} */
    this.filter = request.tf || grant.filter ? new Filter(request.tf ?? null, grant.filter ?? null) : null
    // Filters drop publications that deltas refer to. One-way clients cannot request deltas.
    this.delta =
      request.delta === 'fossil' &&
      this.filter === null &&
      !session.codec.unidirectional &&
      options.allowed_delta_types.includes('fossil')
    this.keepsLatest = options.keep_latest_publication
    this.compact =
      options.allow_channel_compaction &&
      (request.flag & SubscribeFlag.COMPACT) !== 0 &&
      !serverSide &&
      !session.codec.unidirectional &&
      (!session.codec.binary || session.context.config.channel.protobuf_compaction)
    /** Id in pushes instead of the channel's name; 0: the name. */
    this.channelId = 0
    this.ofMap = namespace.mapRules !== null
    this.parts = this.ofMap && !this.delta && (session.traits & Trait.JOINS_PARTS) !== 0
    /** Entries and changes of a map in the result, for deltas. @type {Publication[] | null} */
    this.known = null
    /** @type {Publication | null} last publication in the result */
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
      (expires ? Kind.REFRESHED_BY_CLIENT : 0) |
      (options.map_clients_presence_channel_prefix === '' ? 0 : Kind.IN_CLIENTS_MAP) |
      (options.map_users_presence_channel_prefix === '' ? 0 : Kind.IN_USERS_MAP) |
      (options.map.remove_client_on_unsubscribe ? Kind.REMOVES_KEY : 0) |
      (grant.capability ? Kind.BY_CAPABILITY : 0) |
      kindOfAllow(grant.allow) |
      kindOfSource(grant.source)
  }

  /** @returns {Wants} */
  wants() {
    const { session, kind } = this
    if ((kind & (Kind.POSITIONED | Kind.PRESENT)) === 0) return WANTS_NOTHING
    const { recovery_max_publication_limit } = session.context.config.client
    // Cache mode needs only the newest publication, or with a filter the newest match.
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
      tracking: present ? this.namespace.tracking : undefined,
    }
  }

  /** @param {number} offset @param {string} epoch @returns {boolean} whether the client has the newest publication */
  #isAt(offset, epoch) {
    return offset > 0 && this.offset === offset && this.epoch === epoch
  }

  /** @param {SubscribeAnswer} answer @returns {boolean} whether it recovers from a cache without a publication */
  findsNothing({ publications, offset, epoch }) {
    return this.cache && this.recovering && publications.length === 0 && !this.#isAt(offset, epoch)
  }

  /** @param {SubscribeAnswer} answer @param {number} room maximum bytes of publications */
  #recovered({ recovered, publications, offset, epoch }, room) {
    if (!this.recovering || !recovered) return null
    const matching = receivable(this.session, publications, this.filter)
    if (this.cache && this.#isAt(offset, epoch)) return []
    const wanted = this.cache ? matching.slice(-1) : matching
    if (bytesOf(wanted) > room || (this.cache && wanted.length === 0)) return null
    return wanted
  }

  /** @param {SubscribeAnswer} answer @param {number} [room] maximum bytes of recovered publications */
  result(answer, room = Infinity) {
    /** @type {SubscribeResult} */
    const result = {}
    if (this.kind & Kind.POSITIONED) {
      const publications = this.#recovered(answer, room)
      result.positioned = true
      result.epoch = answer.epoch
      // SDKs start at this position and advance it with each recovered publication.
      result.offset = publications ? this.offset : answer.offset
      if (this.kind & Kind.RECOVERABLE) result.recoverable = true
      if (publications) {
        result.recovered = true
        result.publications = publications
        this.received = publications.at(-1) ?? null
        if (this.delta) result.deltas = this.#deltas(publications)
      }
    }
    if (this.wasRecovering) {
      const { traffic } = this.session.context
      result.was_recovering = true
      if (result.recovered) traffic.counts.recoveries.recovered++
      else traffic.counts.recoveries.failed++
    }
    return this.terms(result)
  }

  /** @protected @param {SubscribeResult} result @returns {SubscribeResult} with the fields of any result */
  terms(result) {
    if (this.compact) result.id = this.channelId = this.session.context.hub.idOf(this.channel)
    if (this.delta) result.delta = true
    if (this.grant.data) result.data = this.grant.data
    if (this.kind & Kind.REFRESHED_BY_CLIENT) {
      result.expires = true
      result.ttl = this.session.context.ttl(this.grant.expireAt ?? 0)
    }
    return result
  }

  /** @param {Publication[]} publications @returns {(Buffer | null)[]} null: no delta, or not encodable by the codec */
  #deltas(publications) {
    const { codec, context } = this.session
    const deltas = context.hub.recoveredDeltas.between(this.channel, publications)
    return codec.binary ? deltas : deltas.map(delta => (delta && isUtf8(delta) ? delta : null))
  }

  /** Buffers messages until the result is sent. @param {Channel} channel @returns {PublicationBuffer} */
  buffer(channel) {
    const { session, filter, kind, delta, parts } = this
    const positioned = (kind & Kind.POSITIONED) !== 0
    const { hub } = session.context
    const maxBytes = maxReplyBytes(session)
    this.liveBuffer = hub.buffer(channel, session.codec, filter, positioned, delta, maxBytes, parts)
    this.liveBuffer.session = session
    return this.liveBuffer
  }

  /** @param {Channel} channel */
  mayFilter(channel) {
    return hasRoomFor(this.session, channel, this.filter)
  }

  /** @param {Channel} channel */
  join(channel) {
    const { session, kind, grant, liveBuffer } = this
    const { cohort, events } = session.context.hub.join(session, channel, {
      positioned: (kind & Kind.POSITIONED) !== 0,
      events: this.events,
      filter: this.filter,
      delta: this.delta,
      keepsLatest: this.keepsLatest,
      channelId: this.channelId,
      received: liveBuffer && liveBuffer.messages.length > 0 ? null : this.received,
      map: this.ofMap,
      parts: this.parts,
      unsent: liveBuffer?.unsent,
      known: this.known,
    })
    const { info = '', expireAt = 0, stamp = null } = grant
    const details = info || expireAt || stamp ? { info, expiry: null, stamp } : NO_DETAILS
    const subscription = new Subscription(channel, cohort, events, kind, details)
    session.addSubscription(subscription)
    const listed = kind & Kind.PRESENT ? session.clientInfo(info) : ''
    // Changed by a concurrent refresh.
    if (listed !== this.listed) session.context.broker.presence.update(channel.name, session.id, listed)
    expireSubscription(session, subscription, expireAt)
    if (kind & Kind.ANNOUNCED) {
      session.context.broker.pubsub.announce(channel.name, session.clientInfo(details.info), true)
    }
    if (kind & MAPPED) session.context.presenceMaps.enter(session, subscription)
    session.context.lifecycle?.subscribed(session, channel.name)
  }

  /** Removes presence and sends the leave of a replaced subscription. @param {Subscription} former */
  withdraw(former) {
    const { session, channel, kind } = this
    const { broker } = session.context
    if (former.is(Kind.PRESENT) && !(kind & Kind.PRESENT)) broker.presence.remove(channel, session.id)
    if (former.is(Kind.ANNOUNCED) && !(kind & Kind.ANNOUNCED)) {
      broker.pubsub.announce(channel, session.clientInfo(former.details.info), false)
    }
  }

  /** It does not become a subscription. */
  drop() {}

  /** Undoes `wants` at the broker. @param {Channel} channel */
  abandon(channel) {
    const { hub, broker } = this.session.context
    if (this.kind & Kind.PRESENT) broker.presence.remove(channel.name, this.session.id)
    hub.release(channel)
    this.drop()
  }
}
