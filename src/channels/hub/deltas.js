import { Cohort } from './channel.js'

/** @import { Keyed, Publication } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { DeltaEncoder } from '../../clients/protocol/delta.js' */
/** @import { Channel } from './channel.js' */
/** @import { Newcomers } from './window.js' */
/** @import { Member } from './hub.js' */

/** Larger payloads are not kept for subscribers without positions, bytes. */
const MAX_LATEST = 1024 * 1024

/** Maximum subscribers moved to deltas per publication, to limit its delay. Others still receive full payloads. */
const MAX_MOVES = 4096

/**
 * Delta-negotiated subscribers of a channel, and the base: the last publication that all have received.
 *
 *              recovered the base
 *   join ------------------------------------+
 *     |                                      v
 *     +--> fresh -- one full payload --> following -- deltas
 *
 * Subscribers without a tracked position receive only full payloads: a missed base would go undetected. With
 * `Channel.keepsLatest` they follow, too: the base is the last publication that this worker has sent.
 *
 * A map has a base for each key (values.js). Its subscribers have all values when they join: they follow immediately.
 */
export class Deltas {
  /** @type {Cohort[]} per codec at most one fresh, one following and one with full payloads */
  cohorts = []
  /** @type {Buffer | null} payload of the base; null: the next publication goes out in full */
  #base = null
  #offset = 0
  #epoch = ''
  #baseMemory = Buffer.alloc(0)
  #channel
  #ofMap

  /** @param {Channel} channel @param {boolean} [ofMap] `encode`, `chain` and `advance` are not for maps */
  constructor(channel, ofMap = false) {
    this.#channel = channel
    this.#ofMap = ofMap
  }

  /**
   * @param {Member} session
   * @param {{positioned: boolean, received?: Publication | null, channelId?: number}} options of `Hub.join`
   * @param {() => string} newTopic @returns {Cohort}
   */
  join(session, { positioned, received = null, channelId = 0 }, newTopic) {
    const follows = positioned || this.#channel.keepsLatest
    const readsDeltas = follows && (this.#ofMap || (received !== null && this.#isBase(received)))
    return this.#place(session, readsDeltas, follows, channelId, newTopic)
  }

  /**
   * @param {Member} session @param {Newcomers} from its previous cohort
   * @param {Publication | null} received before the items of the window @param {() => string} newTopic
   */
  settle(session, from, received, newTopic) {
    const hasBase = !from.behind || (received !== null && this.#isBase(received))
    return this.#place(session, !from.full && hasBase, !from.full, from.channelId, newTopic)
  }

  /**
   * @param {Member} session @param {boolean} readsDeltas @param {boolean} follows false: always full payloads
   * @param {number} channelId see Cohort @param {() => string} newTopic
   */
  #place(session, readsDeltas, follows, channelId, newTopic) {
    const { codec } = session
    let cohort = this.#find(codec, channelId, readsDeltas, !follows)
    if (!cohort) {
      cohort = new Cohort('', newTopic(), codec, false, null, true)
      cohort.channelId = channelId
      cohort.full = !follows
      if (follows && !readsDeltas) cohort.fresh = new Set()
      this.cohorts = [...this.cohorts, cohort]
    }
    cohort.count++
    cohort.fresh?.add(session)
    return cohort
  }

  /** @param {Member} session @param {Cohort} cohort */
  leave(session, cohort) {
    cohort.fresh?.delete(session)
    if (--cohort.count === 0) this.#drop(cohort)
  }

  /** @param {Cohort} cohort */
  #drop(cohort) {
    this.cohorts = this.cohorts.filter(other => other !== cohort)
  }

  /** @param {Codec} codec @param {number} channelId @param {boolean} readsDeltas @param {boolean} full */
  #find(codec, channelId, readsDeltas, full) {
    return this.cohorts.find(
      cohort =>
        cohort.readsDeltas === readsDeltas &&
        cohort.full === full &&
        cohort.codec.name === codec.name &&
        cohort.channelId === channelId,
    )
  }

  get followed() {
    return this.cohorts.some(({ readsDeltas }) => readsDeltas)
  }

  /** @param {Publication} received @returns {boolean} whether it is the base; without followers it becomes the base */
  #isBase(received) {
    if (this.#base !== null && this.#offset === received.offset && this.#epoch === received.epoch) return true
    if (received.offset === 0 || this.followed) return false
    this.#setBase(received)
    return true
  }

  /** @param {Publication} publication @param {DeltaEncoder} encoder @returns {Buffer | null} delta against the base */
  encode({ data, offset, epoch, delta }, encoder) {
    if (!delta || this.#base === null) return null
    const next = offset === this.#offset + 1 && epoch === this.#epoch
    if (!next && !this.#channel.keepsLatest) return null
    return this.followed ? encoder.encode(this.#base, data) : null
  }

  /**
   * Deltas of a flush: each against the publication sent before it, the first against the base.
   * @param {readonly Publication[]} publications @param {DeltaEncoder} encoder
   */
  chain(publications, encoder) {
    let base = this.followed ? this.#base : null
    let last = { offset: this.#offset, epoch: this.#epoch }
    const { keepsLatest } = this.#channel
    return publications.map(({ data, offset, epoch, delta }) => {
      const next = keepsLatest || (offset > last.offset && epoch === last.epoch)
      const encoded = delta && next && base !== null ? encoder.encode(base, data) : null
      // As in #setBase: a publication outside the stream is not a base.
      base = offset === 0 && !keepsLatest ? null : data
      last = { offset, epoch }
      return encoded
    })
  }

  /** Call after the last cohort's delivery. @param {Publication} publication */
  advance(publication) {
    this.#setBase(publication)
    let moves = MAX_MOVES
    for (const cohort of this.cohorts) {
      if (cohort.fresh === null) continue
      const following = this.#find(cohort.codec, cohort.channelId, true, false)
      if (following) moves -= this.#move(cohort, following, moves)
      else cohort.fresh = null
    }
  }

  /** The next publication goes out in full. */
  clear() {
    this.#base = null
  }

  /** @param {Publication} publication */
  #setBase({ data, offset, epoch }) {
    this.#offset = offset
    this.#epoch = epoch
    const { length } = data
    // Clients would use a publication outside the stream as a base, but the history they recover from would not.
    if (this.#channel.keepsLatest ? length > MAX_LATEST : offset === 0) {
      this.#base = null
      return
    }
    if (this.#baseMemory.length < length || this.#baseMemory.length > 2 * length + 64) {
      this.#baseMemory = Buffer.allocUnsafeSlow(length + (length >>> 3))
    }
    this.#baseMemory.set(data)
    this.#base = this.#baseMemory.subarray(0, length)
  }

  /**
   * Moves fresh sessions, which now have the base, to `following`.
   * @param {Cohort} cohort @param {Cohort} following @param {number} max
   */
  #move(cohort, following, max) {
    const members = /** @type {Set<Member>} */ (cohort.fresh)
    let moved = 0
    for (const session of members) {
      if (moved === max) return moved
      // Follow first: a session without any topic may lose messages in transit from the old one.
      session.follow(following.topic)
      session.unfollow(cohort.topic)
      members.delete(session)
      moved++
      cohort.count--
      following.count++
      const subscription = session.subscription(this.#channel.name)
      if (subscription) subscription.cohort = following
    }
    this.#drop(cohort)
    return moved
  }
}

const MAX_BYTES = 1024 * 1024
/** Approximate bytes of an entry, excluding delta and key. */
const ENTRY_OVERHEAD = 200

/** Deltas between recovered publications: subscribers that reconnect together recover the same publications. */
export class DeltaCache {
  /** @type {Map<string, Buffer | null>} oldest first */
  #deltas = new Map()
  #bytes = 0
  #encoder

  /** @param {DeltaEncoder} encoder */
  constructor(encoder) {
    this.#encoder = encoder
  }

  /**
   * @param {string} channel @param {Publication[]} publications ascending
   * @returns {(Buffer | null)[]} deltas against the previous ones, null: send in full
   */
  between(channel, publications) {
    return publications.map((publication, index) => {
      const before = publications[index - 1]
      if (before?.offset !== publication.offset - 1) return null
      return this.#delta(channel, before, publication)
    })
  }

  /**
   * @param {string} channel a map @param {Publication[]} publications ascending changes, none missing
   * @param {boolean} joined parts of values have been joined: the values depend on the first publication
   * @returns {(Buffer | null)[]} deltas against the previous ones of the same key, null: send in full
   */
  betweenKeys(channel, publications, joined) {
    /** @type {Map<string, Publication>} */
    const last = new Map()
    return publications.map(publication => {
      const { key, removed } = /** @type {Keyed} */ (publication.keyed)
      const before = last.get(key)
      if (removed) last.delete(key)
      else last.set(key, publication)
      if (before === undefined || removed || publication.offset === 0) return null
      return joined
        ? this.#encoder.encode(before.data, publication.data)
        : this.#delta(channel, before, publication)
    })
  }

  /** @param {string} channel @param {Publication} before @param {Publication} publication */
  #delta(channel, before, { offset, epoch, data }) {
    const key = `${epoch}${offset} ${channel}`
    const known = this.#deltas.get(key)
    if (known !== undefined) return known
    const delta = this.#encoder.encode(before.data, data)
    this.#deltas.set(key, delta)
    this.#bytes += cost(key, delta)
    for (const [oldest, old] of this.#deltas) {
      if (this.#bytes <= MAX_BYTES) break
      this.#deltas.delete(oldest)
      this.#bytes -= cost(oldest, old)
    }
    return delta
  }
}

/** @param {string} key @param {Buffer | null} delta */
const cost = (key, delta) => 2 * key.length + (delta?.length ?? 0) + ENTRY_OVERHEAD
