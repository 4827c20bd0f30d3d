import { Cohort } from './channel.js'

/** @import { Publication } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { DeltaEncoder } from '../../clients/protocol/delta.js' */
/** @import { Newcomers } from './window.js' */
/** @import { Member } from './hub.js' */

/** Subscribers moved to deltas by one publication, which limits its delay. The rest receives full payloads longer. */
const MAX_MOVES = 4096

/**
 * The delta-negotiated subscribers of a channel (client protocol), and the last publication that all of
 * them have received: the base of the next delta.
 *
 *              recovered the base
 *   join ------------------------------------+
 *     |                                      v
 *     +--> fresh -- one full payload --> following -- deltas
 *
 * A full payload is right for every subscriber at any time, a delta only for those that follow. Subscribers that do
 * not rely on their position receive only full payloads: nobody would notice that they missed a base.
 */
export class Deltas {
  /** @type {Cohort[]} for each codec at most one that is fresh, one that follows, and one of full payloads */
  cohorts = []
  /** @type {Buffer | null} payload of the base; null: the next publication goes out in full */
  #base = null
  #offset = 0
  #epoch = ''
  /** Memory of the base's payload. */
  #baseMemory = Buffer.alloc(0)

  /**
   * @param {Member} session @param {boolean} positioned relies on its position
   * @param {Publication | null} received last publication of the stream that it has received, null: none
   * @param {() => string} newTopic @returns {Cohort}
   */
  join(session, positioned, received, newTopic) {
    const readsDeltas = positioned && received !== null && this.#isBase(received)
    return this.#place(session, readsDeltas, positioned, newTopic)
  }

  /**
   * A subscriber that joined inside a window follows like all others.
   * @param {Member} session @param {Newcomers} from its cohort until now
   * @param {Publication | null} received before the items of the window @param {() => string} newTopic
   * @returns {Cohort}
   */
  settle(session, from, received, newTopic) {
    const hasBase = !from.behind || (received !== null && this.#isBase(received))
    return this.#place(session, !from.full && hasBase, !from.full, newTopic)
  }

  /**
   * @param {Member} session @param {boolean} readsDeltas @param {boolean} positioned @param {() => string} newTopic
   */
  #place(session, readsDeltas, positioned, newTopic) {
    const { codec } = session
    let cohort = this.#find(codec, readsDeltas, !positioned)
    if (!cohort) {
      cohort = new Cohort('', newTopic(), codec, false, null, true)
      cohort.full = !positioned
      if (positioned && !readsDeltas) cohort.fresh = new Set()
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

  /** @param {Codec} codec @param {boolean} readsDeltas @param {boolean} full */
  #find(codec, readsDeltas, full) {
    return this.cohorts.find(
      cohort =>
        cohort.readsDeltas === readsDeltas && cohort.full === full && cohort.codec.name === codec.name,
    )
  }

  /** Whether any subscriber can read a delta. */
  get #followed() {
    return this.cohorts.some(({ readsDeltas }) => readsDeltas)
  }

  /** @param {Publication} received @returns {boolean} whether it is the base; without followers it becomes the base */
  #isBase(received) {
    if (this.#base !== null && this.#offset === received.offset && this.#epoch === received.epoch) return true
    if (received.offset === 0 || this.#followed) return false
    this.#setBase(received)
    return true
  }

  /** @param {Publication} publication @param {DeltaEncoder} encoder @returns {Buffer | null} delta against the base */
  encode({ data, offset, epoch, delta }, encoder) {
    if (!delta || this.#base === null || offset !== this.#offset + 1 || epoch !== this.#epoch) return null
    return this.#followed ? encoder.encode(this.#base, data) : null
  }

  /**
   * The same for the publications of a flush. Each delta refers to the publication sent before it, which need not be
   * the previous one of the stream.
   * @param {readonly Publication[]} publications @param {DeltaEncoder} encoder
   * @returns {(Buffer | null)[]} of each publication against the one before it, of the first against the base
   */
  chain(publications, encoder) {
    let base = this.#followed ? this.#base : null
    let last = { offset: this.#offset, epoch: this.#epoch }
    return publications.map(({ data, offset, epoch, delta }) => {
      const follows = delta && base !== null && offset > last.offset && epoch === last.epoch
      const encoded = follows && base !== null ? encoder.encode(base, data) : null
      // As in #setBase: one outside the stream is the base of none.
      base = offset === 0 ? null : data
      last = { offset, epoch }
      return encoded
    })
  }

  /** All cohorts have received the publication. @param {string} channel @param {Publication} publication */
  advance(channel, publication) {
    this.#setBase(publication)
    let moves = MAX_MOVES
    for (const cohort of this.cohorts) {
      if (cohort.fresh === null) continue
      const following = this.#find(cohort.codec, true, false)
      if (following) moves -= this.#move(channel, cohort, following, moves)
      else cohort.fresh = null
    }
  }

  /** @param {Publication} publication */
  #setBase({ data, offset, epoch }) {
    this.#offset = offset
    this.#epoch = epoch
    // A publication outside the stream is a base to clients, but not to the history from which they may recover.
    if (offset === 0) {
      this.#base = null
      return
    }
    const { length } = data
    if (this.#baseMemory.length < length || this.#baseMemory.length > 2 * length + 64) {
      this.#baseMemory = Buffer.allocUnsafeSlow(length + (length >>> 3))
    }
    this.#baseMemory.set(data)
    this.#base = this.#baseMemory.subarray(0, length)
  }

  /**
   * Makes fresh sessions follow, since they have received the base.
   * @param {string} channel @param {Cohort} cohort @param {Cohort} following @param {number} most
   * @returns {number} moved sessions
   */
  #move(channel, cohort, following, most) {
    const members = /** @type {Set<Member>} */ (cohort.fresh)
    let moved = 0
    for (const session of members) {
      if (moved === most) return moved
      // Follow first: a session without any topic for a moment may lose messages in transit from the old one.
      session.follow(following.topic)
      session.unfollow(cohort.topic)
      members.delete(session)
      moved++
      cohort.count--
      following.count++
      const subscription = session.subscription(channel)
      if (subscription) subscription.cohort = following
    }
    this.#drop(cohort)
    return moved
  }
}

/** Limit of the cached deltas. */
const MAX_BYTES = 1024 * 1024
/** Approximate cost of an entry besides its delta and its key. */
const ENTRY_OVERHEAD = 200

/** Deltas between recovered publications: many subscribers that return at the same time recover the same ones. */
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
   * @returns {(Buffer | null)[]} for each the delta against the previous one, null: send in full
   */
  between(channel, publications) {
    return publications.map((publication, index) => {
      const before = publications[index - 1]
      if (before?.offset !== publication.offset - 1) return null
      return this.#delta(channel, before, publication)
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
