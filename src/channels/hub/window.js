// Window of a channel: items (publications, joins, leaves) received from the broker but not sent to subscribers yet.
// One per channel with `batch_max_size` or `batch_max_delay`, not per connection.
//
//   broker -> hub: position checked -> window -> flush (batches.js) -> encoded for each codec -> fan-out
//                       |                  ^
//                       |                  '- join: a subscriber gets the items after it, in a separate cohort until
//                       v                     the flush (Newcomers)
//                 buffers of subscribers without a reply: bypass the window
//
// Invariants:
// - `channel.offset` is the position of the last received item; `sentTo` that of the last item sent to a subscriber.
// - Items are flushed in order. Conflation drops only items older than a sent one.
// - All publications of a window have one epoch: a lost position flushes before the position changes.
// - A subscriber gets an item from its reply, from its buffer or from a flush, and only once: items below the `from`
//   of its cohort are in its reply or its buffer.
// - An empty window has no timer and uses no memory.

import { Cohort } from './channel.js'

/** @import { Publication } from '../broker/contract.js' */
/** @import { Member } from './hub.js' */

/**
 * Batching of a channel (docs/batching.md). `maxSize` (items, 0: no limit), `maxBytes` and `maxDelay` (ms from the
 * first item) end a window. `latest`: only the newest publication of each `tag` value is sent.
 * @typedef {{namespace: string, maxSize: number, maxDelay: number, maxBytes: number, latest: boolean,
 *   tag: string}} BatchOptions
 */

const SIZE_ONLY_DELAY_MS = 1000

/**
 * @param {string} namespace @param {any} options of the namespace
 * @param {number} queueMaxSize bytes; a window uses at most half of it
 * @returns {Readonly<BatchOptions> | null} null: publications are sent immediately
 */
export function batchOptions(namespace, options, queueMaxSize) {
  const { batch_max_size: maxSize, batch_max_delay: delay } = options
  if (!(maxSize > 0 || delay > 0)) return null
  return Object.freeze({
    namespace,
    maxSize,
    maxDelay: delay || SIZE_ONLY_DELAY_MS,
    maxBytes: Math.min(options.batch_max_bytes, Math.ceil(queueMaxSize / 2)),
    latest: options.batch_flush_latest,
    tag: options.batch_conflate_tag,
  })
}

/**
 * `number`: ascending; `publication`: null for a join or a leave, with its ClientInfo in `info`.
 * @typedef {{number: number, bytes: number, publication: Publication | null, info: string, joined: boolean}} Item
 *
 * @typedef {'size' | 'delay' | 'bytes' | 'subscribe' | 'position' | 'close' | 'target'} FlushReason
 */

/** Bytes of an item, excluding payload, tags and info. */
const ITEM_OVERHEAD = 200

/** Maximum newcomers and newcomer cohorts of a window; above, it is flushed first. */
const MAX_NEWCOMERS = 4096
const MAX_NEWCOMER_COHORTS = 64

/** Subscribers that joined at the same point of a window, with the same codec and filter. */
export class Newcomers extends Cohort {
  /** @type {Map<Member, Publication | null>} with deltas: last publication received by each */
  members = new Map()
  /** With deltas: no publication of the window has been sent to them yet. */
  behind = true

  /**
   * @param {Cohort} like copied properties @param {string} topic
   * @param {number} from number of their first item @param {number} sent their offset
   */
  constructor({ key, codec, events, filter, delta, full, channelId }, topic, from, sent) {
    super(key, topic, codec, events, filter, delta)
    this.full = full
    this.channelId = channelId
    this.from = from
    this.sent = sent
  }
}

/** @param {Publication} publication */
function sizeOf({ data, info, tags }) {
  let bytes = ITEM_OVERHEAD + data.length + info.length
  if (tags) for (const name of Object.keys(tags)) bytes += name.length + tags[name].length
  return bytes
}

/** From this delay on, ms, payloads are copied outside the 8 KB pool, which a single copy would retain. */
const LONG_DELAY_MS = 1000

/** @param {Publication} publication @param {boolean} own copy outside the Buffer pool */
function kept(publication, own) {
  const { data } = publication
  if (!own) return { ...publication, data: Buffer.from(data) }
  const copy = Buffer.allocUnsafeSlow(data.length)
  copy.set(data)
  return { ...publication, data: copy }
}

export class Window {
  /** @type {Map<number, Item> | null} by number, in order; null: none */
  items = null
  /** @type {Map<string, number> | null} value of the tag -> number of its newest publication */
  #newest = null
  #bytes = 0
  /** Items of this window, including conflated ones. */
  #taken = 0
  #next = 1
  /** @type {Newcomers[]} */
  newcomers = []
  #members = 0
  /** Offset of the last publication sent to subscribers; -1: all sent. */
  sent = -1
  /** When its first item is due, ms of a monotonic clock. */
  dueAt = 0

  /** @param {Readonly<BatchOptions>} options */
  constructor(options) {
    this.options = options
  }

  get empty() {
    return this.items === null
  }

  /**
   * @param {Publication} publication @param {number} before offset of the channel before it
   * @param {boolean} conflates may replace an older one; returns whether it did
   */
  addPublication(publication, before, conflates) {
    const items = this.#begin(before)
    const replaced = conflates && this.#replaced(items, publication)
    this.#add(items, {
      number: this.#next,
      bytes: sizeOf(publication),
      publication: kept(publication, this.options.maxDelay >= LONG_DELAY_MS),
      info: '',
      joined: false,
    })
    return replaced
  }

  /** @param {string} info JSON ClientInfo @param {boolean} joined @param {number} before offset of the channel */
  addEvent(info, joined, before) {
    const bytes = ITEM_OVERHEAD + info.length
    this.#add(this.#begin(before), { number: this.#next, bytes, publication: null, info, joined })
  }

  /** @param {number} before */
  #begin(before) {
    if (this.items === null) {
      this.items = new Map()
      this.sent = before
    }
    return this.items
  }

  /** @param {Map<number, Item>} items @param {Item} item */
  #add(items, item) {
    items.set(this.#next++, item)
    this.#bytes += item.bytes
    this.#taken++
  }

  /** @param {Map<number, Item>} items @param {Publication} publication @returns {boolean} whether it replaces one */
  #replaced(items, { tags }) {
    const { tag } = this.options
    // Untagged publications are never replaced.
    if (tag !== '' && (tags === null || !Object.hasOwn(tags, tag))) return false
    const value = tag === '' ? '' : /** @type {Record<string, string>} */ (tags)[tag]
    const newest = (this.#newest ??= new Map())
    const number = newest.get(value)
    newest.set(value, this.#next)
    if (number === undefined) return false
    this.#bytes -= /** @type {Item} */ (items.get(number)).bytes
    return items.delete(number)
  }

  get full() {
    const { maxSize, maxBytes } = this.options
    if (maxSize > 0 && this.#taken >= maxSize) return 'size'
    return this.#bytes >= maxBytes ? 'bytes' : null
  }

  get hasRoom() {
    return this.#members < MAX_NEWCOMERS && this.newcomers.length < MAX_NEWCOMER_COHORTS
  }

  /**
   * Adds a subscriber that receives only later items.
   * @param {Member} session @param {Cohort} like copied properties
   * @param {number} offset of its position @param {Publication | null} received see `members`
   * @param {() => string} newTopic
   */
  join(session, like, offset, received, newTopic) {
    const { key, codec, delta, full } = like
    const from = this.#next
    let cohort = this.newcomers.find(
      other =>
        other.from === from &&
        other.sent === offset &&
        other.key === key &&
        other.delta === delta &&
        other.full === full &&
        other.codec === codec,
    )
    if (!cohort) {
      cohort = new Newcomers(like, newTopic(), from, offset)
      this.newcomers.push(cohort)
    }
    cohort.count++
    cohort.members.set(session, received)
    this.#members++
    return cohort
  }

  /** @param {Member} session @param {Newcomers} cohort */
  leave(session, cohort) {
    cohort.members.delete(session)
    this.#members--
    if (--cohort.count === 0) this.newcomers = this.newcomers.filter(other => other !== cohort)
  }

  /** @param {Cohort} cohort @param {number} arrived offset of the channel @returns {number} position of its members */
  sentTo(cohort, arrived) {
    if (cohort instanceof Newcomers) return cohort.sent
    return this.sent < 0 ? arrived : this.sent
  }

  /** Empties the window. @returns {Item[]} in order */
  takeItems() {
    const items = this.items === null ? [] : [...this.items.values()]
    this.items = this.#newest = null
    this.#bytes = this.#taken = 0
    return items
  }

  takeNewcomers() {
    const { newcomers } = this
    this.newcomers = []
    this.#members = 0
    this.sent = -1
    return newcomers
  }
}
