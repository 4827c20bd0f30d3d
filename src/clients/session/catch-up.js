import { isUtf8 } from 'node:buffer'
import { disconnects, errors } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { OVERHEAD } from '../../channels/broker/size.js'
import { Phase, SubscriptionType } from '../protocol/requests.js'
import { joinParts } from './appends.js'
import { Plan } from './plan.js'
import { maxReplyBytes } from './replies.js'
import { Kind } from './subscription.js'

/** @import { Keyed, MapRules, Publication, StatePage, StateQuery } from '../../channels/broker/contract.js' */
/** @import { SubscribeAnswer } from '../../channels/broker/contract.js' */
/** @import { Channel, ChangeBuffer } from '../../channels/hub/channel.js' */
/** @import { Namespace } from '../auth/channel-rules.js' */
/** @import { SubscribeResult } from '../protocol/contract.js' */
/** @import { Grant } from './plan.js' */
/** @import { Session } from './session.js' */

/** Maximum entries read to join parts; a client that needs more reads the state. */
const MAX_WHOLES = 16

/** Entries in a reply; text is a JSON list. @typedef {Publication[] | Buffer} State */

/** @param {State} publications @returns {number} their approximate bytes in a reply */
export function bytesOf(publications) {
  if (Buffer.isBuffer(publications)) return publications.length
  let bytes = 0
  for (const { data, info, tags, keyed } of publications) {
    bytes += data.length + info.length + (keyed?.key.length ?? 0) + OVERHEAD
    for (const name in tags) bytes += name.length + tags[name].length
  }
  return bytes
}

class Deadline extends Timer {
  #catchUp

  /** @param {CatchUp} catchUp */
  constructor(catchUp) {
    super()
    this.#catchUp = catchUp
  }

  onTimer() {
    this.#catchUp.expire()
  }
}

/**
 * A client's way to a map, from the first page to the subscription. It counts as a subscription for
 * `client.channel_limit`.
 *
 *   STATE -- page -- page --+-- few changes since the first page --> LIVE: a Subscription
 *                           '--> STREAM -- changes -- changes -------^
 *   STREAM with `recover` -------------------^-----------------------^
 *
 * Pages show the state at the position of the first one. An ephemeral map has no positions: its changes are collected
 * from the first page on.
 */
export class CatchUp extends Plan {
  /** Id of the pending command; 0: none. */
  command = 0
  /** Transitions to LIVE. */
  tries = 0
  /** Top of the stream at the first STREAM request, so that clients do not follow a busy map for ever; -1: unknown. */
  top = -1
  /** Whether the deadline has passed. */
  expired = false
  /** Whether it has ended, in any way. */
  over = false
  /** Entries by key, for appended parts. @type {Map<string, Publication>} */
  wholes = new Map()
  /** Entries in the result of a one-way client; null: too many. @type {Publication[] | null} */
  state = null
  /** Whether parts in the changes have been joined. */
  #joined = false
  /** @type {Deadline | null} */
  #deadline = null
  /** Keeps the hub's channel. @type {Channel | null} */
  #held = null
  /** @type {ChangeBuffer | null} */
  #changes = null

  /**
   * @param {Session} session @param {string} channel @param {Namespace} namespace of a map
   * @param {any} request fields of a SubscribeRequest @param {Grant} grant @param {boolean} serverSide
   */
  constructor(session, channel, namespace, request, grant, serverSide) {
    super(session, channel, namespace, request, grant, serverSide)
    this.rules = /** @type {MapRules} */ (namespace.mapRules)
    /** Whether it has positions. */
    this.streamed = this.rules.streamSize > 0
    const { map } = namespace.options
    this.liveLimit = map.live_transition_max_publication_limit || map.max_page_size
    const position = Kind.POSITIONED | Kind.RECOVERABLE
    this.kind = this.streamed ? this.kind | position : this.kind & ~position
    this.cache = false
    this.recovering = false
    this.wasRecovering = Boolean(request.recover)
    const timeout = map.subscribe_catch_up_timeout
    if (timeout > 0 && !serverSide) {
      const { timers, clock } = session.context
      this.#deadline = new Deadline(this)
      timers.schedule(this.#deadline, clock() + timeout)
    }
  }

  /** @param {number} [limit] of the request @returns {number} entries or changes */
  pageSize(limit = 0) {
    const { default_page_size, min_page_size, max_page_size } = this.namespace.options.map
    return Math.min(max_page_size, Math.max(min_page_size, limit > 0 ? limit : default_page_size))
  }

  /** @param {string} cursor @param {number} limit @returns {StateQuery} */
  query(cursor, limit) {
    const first = cursor === ''
    const { epoch, offset, session } = this
    const maxBytes = maxReplyBytes(session)
    return { cursor, limit, key: '', epoch: first ? '' : epoch, upTo: first ? 0 : offset, maxBytes }
  }

  /** Whether a page can be sent as text: otherwise, the entries are needed. */
  get acceptsText() {
    return !this.session.codec.binary && !this.delta && this.filter === null
  }

  /** @param {Publication[]} publications */
  filtered(publications) {
    return this.filter ? publications.filter(({ tags }) => this.filter?.matches(tags)) : publications
  }

  /** All pages show the state of the first one. @param {StatePage} page */
  freeze({ offset, epoch }) {
    this.offset = offset
    this.epoch = epoch
  }

  /** Collects the changes of an ephemeral map, unless it has ended. @param {Channel} channel of `hub.prepare` */
  hold(channel) {
    const { session, filter } = this
    if (this.failure) return session.context.hub.release(channel)
    this.#held = channel
    this.#changes = session.context.hub.collect(channel, session.codec, filter, maxReplyBytes(session))
  }

  /** @returns {Error | null} why it cannot continue */
  get failure() {
    if (this.expired) return disconnects.slow
    return this.over ? errors.permissionDenied : (this.#changes?.fault ?? null)
  }

  /** @throws {Error} it cannot continue */
  check() {
    if (this.failure !== null) throw this.failure
  }

  /** An abandoned catch-up: the entry stays, to answer a late request. */
  expire() {
    this.expired = true
    this.#release()
  }

  end() {
    this.over = true
    if (this.#deadline !== null) this.session.context.timers.cancel(this.#deadline)
    this.#release()
  }

  #release() {
    const { hub } = this.session.context
    if (this.#held === null) return
    if (this.#changes !== null) hub.unbuffer(this.#held, this.#changes)
    this.#changes = null
    hub.release(this.#held)
    this.#held = null
  }

  /**
   * Wants of the transition to LIVE.
   * @param {number} [limit] changes @param {State} [state] in the same reply
   */
  transition(limit = this.liveLimit, state = []) {
    const wants = this.wants()
    if (!this.streamed) return wants
    const { offset, epoch, session } = this
    const maxBytes = Math.max(1, maxReplyBytes(session) - bytesOf(state))
    return { ...wants, recover: { offset, epoch, limit: Math.min(limit, this.liveLimit), maxBytes } }
  }

  /**
   * @param {SubscribeAnswer} answer
   * @returns {Publication[] | null} changes since the last page; null: not recovered
   */
  changes({ recovered, publications }) {
    if (!this.streamed) return this.#changes?.publications ?? []
    return recovered ? publications : null
  }

  /**
   * @param {Publication[]} changes
   * @returns {{publications: Publication[], missing: string[]}} those for the client; `missing`: keys of `wholes`
   *   without which parts cannot be joined
   */
  readable(changes) {
    const matching = this.filtered(changes)
    // Without positions, an entry that the client has read may include a part.
    const raw = (this.parts && this.streamed) || !matching.some(({ keyed }) => keyed?.append)
    this.#joined = !raw
    return raw ? { publications: matching, missing: [] } : joinParts(matching, this.wholes)
  }

  /** Reads entries into `wholes`. @param {string[]} keys @returns {Promise<void>} rejects if there are too many */
  async readWholes(keys) {
    if (keys.length > MAX_WHOLES) throw errors.unrecoverablePosition
    const { maps } = this.session.context.broker
    const query = { ...this.query('', 1), maxBytes: 0 }
    const pages = await Promise.all(keys.map(key => maps.state(this.channel, { ...query, key }, this.rules)))
    for (const [i, { entries }] of pages.entries())
      if (entries.length > 0) this.wholes.set(keys[i], entries[0])
  }

  /**
   * @param {string} cursor of the next page @param {State} state
   * @returns {SubscribeResult}
   */
  statePage(cursor, state) {
    const { offset, epoch, delta } = this
    return { type: SubscriptionType.MAP, phase: Phase.STATE, cursor, epoch, offset, state, delta }
  }

  /**
   * @param {number} offset of the last publication read @param {Publication[]} publications
   * @returns {SubscribeResult}
   */
  streamPage(offset, publications) {
    const { epoch, delta } = this
    return { type: SubscriptionType.MAP, phase: Phase.STREAM, epoch, offset, publications, delta }
  }

  /**
   * @param {SubscribeAnswer} answer @param {Publication[]} publications @param {State} state
   * @returns {SubscribeResult}
   */
  live({ offset, epoch }, publications, state) {
    /** @type {SubscribeResult} */
    const result = { type: SubscriptionType.MAP, state, publications }
    if (this.streamed) {
      result.epoch = epoch
      result.offset = offset
      result.recoverable = true
    } else result.epoch = this.epoch
    if (this.wasRecovering) {
      result.was_recovering = true
      result.recovered = true
      this.session.context.traffic.counts.recoveries.recovered++
    }
    if (this.delta) {
      result.deltas = this.#keyedDeltas(publications)
      // Not text, see `acceptsText`.
      this.known = [.../** @type {Publication[]} */ (state), ...publications]
    }
    return this.terms(result)
  }

  /** @param {SubscribeAnswer} answer @returns {SubscribeResult | null} of a one-way client; null: changes are lost */
  oneWay(answer) {
    const { state: entries } = this
    const state = entries ?? []
    const changes = this.failure ? null : this.changes(answer)
    if (changes === null) return null
    if (changes.some(({ keyed }) => keyed?.append))
      for (const entry of state) this.wholes.set(/** @type {Keyed} */ (entry.keyed).key, entry)
    const { publications, missing } = this.readable(changes)
    return missing.length > 0 ? null : this.live(answer, publications, state)
  }

  /** @param {Publication[]} publications @returns {(Buffer | null)[]} */
  #keyedDeltas(publications) {
    const { codec, context } = this.session
    const deltas = context.hub.recoveredDeltas.betweenKeys(this.channel, publications, this.#joined)
    return codec.binary ? deltas : deltas.map(delta => (delta && isUtf8(delta) ? delta : null))
  }
}

/** The catch-ups of a session, by channel. @extends {Map<string, CatchUp>} */
export class CatchUps extends Map {
  /** @param {CatchUp} catchUp */
  begin(catchUp) {
    this.set(catchUp.channel, catchUp)
  }

  /** @param {string} channel */
  end(channel) {
    this.get(channel)?.end()
    this.delete(channel)
  }

  /** @param {number} command a failed one */
  failed(command) {
    if (command === 0) return
    for (const catchUp of this.values()) if (catchUp.command === command) this.end(catchUp.channel)
  }

  /** Removes abandoned ones of other channels. @param {string} channel */
  sweep(channel) {
    for (const catchUp of this.values())
      if (catchUp.expired && catchUp.command === 0 && catchUp.channel !== channel) this.end(catchUp.channel)
  }

  endAll() {
    for (const channel of [...this.keys()]) this.end(channel)
  }
}
