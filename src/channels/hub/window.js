// The window of a channel: items (publications, joins, leaves) that this worker has got from the broker and not sent to
// its subscribers yet. One for each channel with `batch_max_size` or `batch_max_delay`; none for a connection.
//
//   broker -> hub: position checked -> window -> flush (batches.js) -> encoded for each codec -> fan-out
//                       |                  ^
//                       |                  '- join: a subscriber gets the items after it, in a cohort of its own until
//                       v                     the flush (Newcomers)
//                 buffers of subscribers without a reply: at once, not from the window
//
// Invariants:
// - `channel.offset` is the position of what has arrived; `sentTo` is the position of what a subscriber has got.
// - Items are flushed in the order of their arrival. Those that conflation drops are older than one that is sent.
// - All publications of a window have one epoch: a lost position flushes before the position changes.
// - A subscriber gets an item from its reply, from its buffer or from a flush, and only once: items below the `from`
//   of its cohort are in its reply or its buffer.
// - A window without items holds nothing: no timer, no memory.

import { Cohort } from './channel.js'

/** @import { Publication } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { Member } from './hub.js' */

/**
 * How the publications of a channel are batched (docs/batching.md).
 * @typedef {object} BatchOptions
 * @property {string} namespace '' for channels without one
 * @property {number} maxSize items that end a window; 0: no limit
 * @property {number} maxDelay ms from the first item to the end of its window
 * @property {number} maxBytes that end a window
 * @property {boolean} latest only the newest publication of a window is sent, of each value of `tag`
 * @property {string} tag '' = all publications of the channel count as one value
 */

/** Longest window of a channel that has a size and no delay, ms: no item may wait for ever. */
const SIZE_ONLY_DELAY_MS = 1000

/**
 * @param {string} namespace @param {any} options of the namespace
 * @param {number} queueMaxSize bytes; half of it must be left for other messages when a window is written
 * @returns {Readonly<BatchOptions> | null} null: publications are sent at once
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
 * @typedef {object} Item
 * @property {number} number its place in the window, ascending
 * @property {number} bytes
 * @property {Publication | null} publication with a payload of its own; null: a join or a leave
 * @property {string} info JSON ClientInfo of a join or a leave
 * @property {boolean} joined
 *
 * @typedef {'size' | 'delay' | 'bytes' | 'subscribe' | 'position' | 'close'} FlushReason
 */

/** Memory of an item besides its payload, tags and info, bytes. */
const ITEM_OVERHEAD = 200

/** Subscribers that join inside one window, and cohorts of them: above, the window is flushed first. */
const MAX_NEWCOMERS = 4096
const MAX_NEWCOMER_COHORTS = 64

/** Subscribers that have joined at the same place inside a window, with the same codec and filter. */
export class Newcomers extends Cohort {
  /** @type {Map<Member, Publication | null>} with deltas: the last publication that each one has received */
  members = new Map()
  /** With deltas: no publication of the window has been sent to them yet. */
  behind = true

  /**
   * @param {string} key @param {string} topic @param {Codec} codec @param {boolean} events
   * @param {Filter | null} filter @param {boolean} delta @param {number} from number of their first item
   * @param {number} sent offset of their position
   */
  constructor(key, topic, codec, events, filter, delta, from, sent) {
    super(key, topic, codec, events, filter, delta)
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

/**
 * From this delay on, payloads have memory of their own, ms. Short ones share 8 KB with whatever else is copied at that
 * time, which would stay in memory with the last of them: up to 40 times `batch_max_bytes`.
 */
const LONG_DELAY_MS = 1000

/**
 * The payload of a publication is valid only while it is handled.
 * @param {Publication} publication @param {boolean} own whether the copy shares no memory
 */
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
  /** Items of this window, also those that newer ones have replaced. */
  #taken = 0
  #next = 1
  /** @type {Newcomers[]} */
  newcomers = []
  #members = 0
  /** Offset up to which subscribers have got the channel; -1: all of it. */
  sent = -1
  /** When its first item is due, ms of a monotonic clock. */
  dueAt = 0

  /** @param {Readonly<BatchOptions>} options */
  constructor(options) {
    this.options = options
  }

  /** Whether another item would begin the window. */
  get empty() {
    return this.items === null
  }

  /**
   * @param {Publication} publication @param {number} before offset of the channel before it
   * @param {boolean} conflates whether it may replace an older one
   * @returns {boolean} whether it did
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
    // Publications without the tag are all kept.
    if (tag !== '' && (tags === null || !Object.hasOwn(tags, tag))) return false
    const value = tag === '' ? '' : /** @type {Record<string, string>} */ (tags)[tag]
    const newest = (this.#newest ??= new Map())
    const number = newest.get(value)
    newest.set(value, this.#next)
    if (number === undefined) return false
    this.#bytes -= /** @type {Item} */ (items.get(number)).bytes
    return items.delete(number)
  }

  /** @returns {FlushReason | null} why it has to be flushed now */
  get full() {
    const { maxSize, maxBytes } = this.options
    if (maxSize > 0 && this.#taken >= maxSize) return 'size'
    return this.#bytes >= maxBytes ? 'bytes' : null
  }

  // Subscribers that join inside the window

  /** Whether another subscriber may join before the next flush. */
  get hasRoom() {
    return this.#members < MAX_NEWCOMERS && this.newcomers.length < MAX_NEWCOMER_COHORTS
  }

  /**
   * The cohort of a subscriber that gets the items after this moment.
   * @param {Member} session @param {Cohort} like its properties
   * @param {number} offset of its position @param {Publication | null} received see `members`
   * @param {() => string} newTopic
   */
  join(session, { key, codec, events, filter, delta, full }, offset, received, newTopic) {
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
      cohort = new Newcomers(key, newTopic(), codec, events, filter, delta, from, offset)
      cohort.full = full
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

  // The flush

  /** Empties the window. @returns {Item[]} in order */
  takeItems() {
    const items = this.items === null ? [] : [...this.items.values()]
    this.items = this.#newest = null
    this.#bytes = this.#taken = 0
    return items
  }

  /** @returns {Newcomers[]} who follow the channel like all others from now on */
  takeNewcomers() {
    const { newcomers } = this
    this.newcomers = []
    this.#members = 0
    this.sent = -1
    return newcomers
  }
}
