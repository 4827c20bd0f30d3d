import { isUtf8 } from 'node:buffer'
import { isDeepStrictEqual } from 'node:util'
import { SlicedWork } from '../../base/slices.js'
import { BatchStats } from '../../metrics/batch-stats.js'
import { Cohort, cohortKey } from './channel.js'
import { Deltas } from './deltas.js'
import { Lanes } from './lanes.js'
import { Newcomers, Window } from './window.js'

/** @import { BatchOptions, FlushReason, Item } from './window.js' */
/** @import { Publication } from '../broker/contract.js' */
/** @import { Codec, Encoded } from '../../clients/protocol/contract.js' */
/** @import { DeltaEncoder } from '../../clients/protocol/delta.js' */
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { Channel } from './channel.js' */
/** @import { MonotonicClock } from './lanes.js' */
/** @import { Member } from './hub.js' */

/** Memory kept between two batches, bytes. */
const KEEP = 1024 * 1024

/** Separator of the pushes of a text codec. */
const LINE_FEED = 10

/** Encoded pushes of one codec, one behind the other, so that any run of them is a frame. */
export class Batch {
  #memory = Buffer.allocUnsafeSlow(64 * 1024)
  #end = 0
  /** @type {number[]} */
  #starts = []
  /** @type {number[]} */
  #ends = []
  /** @type {(Publication | null)[]} of each push; null: a join or a leave */
  publications = []
  #lines = false

  /** Begins a batch. @param {boolean} binary whether the codec is: its pushes need no separator */
  begin(binary) {
    if (this.#memory.length > KEEP) this.#memory = Buffer.allocUnsafeSlow(64 * 1024)
    this.#end = 0
    this.#starts = []
    this.#ends = []
    this.publications = []
    this.#lines = !binary
  }

  get size() {
    return this.publications.length
  }

  /** @param {Uint8Array} push copied @param {Publication | null} publication */
  add(push, publication) {
    const room = this.#end + push.length + 1
    if (room > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(room * 2)
      larger.set(this.#memory.subarray(0, this.#end))
      this.#memory = larger
    }
    if (this.#lines && this.size > 0) this.#memory[this.#end++] = LINE_FEED
    this.#starts.push(this.#end)
    this.#memory.set(push, this.#end)
    this.#end += push.length
    this.#ends.push(this.#end)
    this.publications.push(publication)
  }

  /**
   * @param {number} from index of the first push @param {number} to index after the last one
   * @returns {Buffer} these pushes as one frame; valid until the next `begin`
   */
  frame(from, to) {
    return this.#memory.subarray(this.#starts[from], this.#ends[to - 1])
  }
}

/** @typedef {(channel: string) => Readonly<BatchOptions> | null} BatchOptionsOf */

/**
 * @typedef {object} FanoutParts
 * @property {(cohort: Cohort, message: Uint8Array, publication: Publication | null) => void} publish
 * @property {(cohort: Cohort, batch: Batch, from: number, to: number, sending: Sending) => void} publishBatch
 *
 * @typedef {(publication: Publication | null) => void} Sending called before a publication of its own message, with
 *   carriers that need the position
 *
 * @typedef {object} HubParts what batches need of the hub
 * @property {Map<string, Channel>} channels
 * @property {FanoutParts} fanout
 * @property {DeltaEncoder} encoder
 * @property {() => string} newTopic
 * @property {(channel: Channel, like: Cohort) => Cohort} cohort the regular one with these properties, for one member more
 * @property {(name: string, cohort: Cohort) => void} disconnectJson
 * @property {(publications: number) => void} delivered
 * @property {MonotonicClock} [monotonic]
 */

/** In the place of a push that the codec cannot carry. */
const NOTHING = new Uint8Array(0)

/** @param {Publication} publication @param {Codec} codec @returns {boolean} whether the codec can carry it */
const fits = ({ json }, { binary }) => json || binary

/** @param {Cohort} cohort */
const filters = ({ filter }) => filter !== null

/** @param {Item} item of a run of publications */
const publicationOf = ({ publication }) => /** @type {Publication} */ (publication)

/** @param {Encoded} message */
export const toBytes = message => (typeof message === 'string' ? Buffer.from(message) : message)

/** @param {Cohort} cohort @param {readonly Item[]} run @returns {number} index of the first item for it */
function firstFor(cohort, run) {
  if (!(cohort instanceof Newcomers)) return 0
  const index = run.findIndex(({ number }) => number >= cohort.from)
  return index < 0 ? run.length : index
}

/** @type {BatchOptionsOf} */
const NONE = () => null

/** Windows of the channels that are batched, and their flushes. See window.js for the invariants. */
export class Batches {
  stats = new BatchStats()
  /** @type {BatchOptionsOf} */
  #optionsOf = NONE
  #hub
  #lanes
  /** @type {Batch[]} not in use; a flush may end sessions, whose other channels are flushed within it */
  #free = []

  /** @param {HubParts} hub */
  constructor(hub) {
    this.#hub = hub
    this.#lanes = new Lanes(channel => this.flush(channel, 'delay'), hub.monotonic)
  }

  /** Whether any channel may be batched. */
  get on() {
    return this.#optionsOf !== NONE
  }

  /** Windows with items. */
  get held() {
    return this.#lanes.size
  }

  /**
   * Uses the options of these rules from now on, also for channels that are there.
   * @param {{batches: boolean, resolve: (channel: string) => {batch: Readonly<BatchOptions> | null} | undefined}} rules
   */
  use(rules) {
    if (!rules.batches && !this.on) return
    this.#optionsOf = rules.batches ? channel => rules.resolve(channel)?.batch ?? null : NONE
    this.#eachChannel(channel => {
      const options = this.#optionsOf(channel.name)
      if (isDeepStrictEqual(options, channel.window?.options ?? null)) return
      this.flush(channel, 'close')
      channel.window = options === null ? null : new Window(options)
    })
  }

  /** Sends what all windows hold, in slices. */
  flushAll() {
    if (this.held > 0) this.#eachChannel(channel => this.flush(channel, 'close'))
  }

  /** @param {(channel: Channel) => void} visit in slices */
  #eachChannel(visit) {
    // Channels that come and go between two slices change nothing for the others: that is how Map iterators work.
    const channels = this.#hub.channels.values()
    new SlicedWork(() => {
      const { value: channel, done } = channels.next()
      if (!done) visit(channel)
      return !done
    }).run()
  }

  /** @param {string} name of a new channel @returns {Window | null} */
  window(name) {
    const options = this.#optionsOf(name)
    return options === null ? null : new Window(options)
  }

  /** @param {Channel} channel @returns {Cohort[]} without those that read deltas */
  cohorts({ cohorts, window }) {
    return window === null ? cohorts : [...cohorts, ...window.newcomers.filter(({ delta }) => !delta)]
  }

  /** @param {Channel} channel @returns {Iterable<Cohort>} the same, one of each filter */
  differentCohorts(channel) {
    const cohorts = this.cohorts(channel)
    return channel.window === null ? cohorts : new Map(cohorts.map(cohort => [cohort.key, cohort])).values()
  }

  /**
   * A subscriber joins inside a window: the items in it are part of its reply, or older than its subscription.
   * @param {Member} session @param {Channel} channel with a window
   * @param {{positioned: boolean, events: boolean, filter: Filter | null, delta?: boolean,
   *   received?: Publication | null}} options of `Hub.join`
   * @returns {{cohort: Cohort, events: Cohort | null} | null} null: the window is empty
   */
  join(session, channel, { positioned, events, filter, delta = false, received = null }) {
    const window = /** @type {Window} */ (channel.window)
    if (!window.empty && !window.hasRoom) this.flush(channel, 'subscribe')
    if (window.empty) return null
    const { codec } = session
    const { newTopic } = this.#hub
    const wanted = new Cohort(cohortKey(codec, false, filter), '', codec, false, filter, delta)
    wanted.full = delta && !positioned
    const cohort = window.join(session, wanted, channel.offset, received, newTopic)
    session.follow(cohort.topic)
    if (!events) return { cohort, events: null }
    const both = new Cohort(cohortKey(codec, true, null), '', codec, true, null, false)
    const others = window.join(session, both, channel.offset, null, newTopic)
    session.follow(others.topic)
    return { cohort, events: others }
  }

  /**
   * @param {Channel} channel with a window @param {Window} window @param {Publication} publication valid during the call
   */
  hold(channel, window, publication) {
    // A lost position may have ended the last subscription.
    if (channel.count === 0) return
    const { options } = window
    const { offset, previous = offset - 1 } = publication
    const before = offset > 0 ? previous : channel.offset
    // A filter would hide the older publication that a member wanted. Filters are refused with conflation, but may be
    // there from before a reload.
    const conflates = options.latest && !channel.cohorts.some(filters) && !window.newcomers.some(filters)
    const begins = window.empty
    if (window.addPublication(publication, before, conflates)) this.stats.conflated(options.namespace)
    this.#added(channel, window, begins)
  }

  /** @param {Channel} channel @param {Window} window @param {string} info @param {boolean} joined */
  holdEvent(channel, window, info, joined) {
    if (!this.cohorts(channel).some(({ events }) => events)) return
    const begins = window.empty
    window.addEvent(info, joined, channel.offset)
    this.#added(channel, window, begins)
  }

  /** @param {Channel} channel @param {Window} window @param {boolean} begins */
  #added(channel, window, begins) {
    const { full } = window
    if (full !== null) this.flush(channel, full)
    else if (begins) this.#lanes.add(channel, window)
  }

  /** The channel has no subscriptions any more. @param {Channel} channel */
  drop(channel) {
    const { window } = channel
    if (window === null || window.empty) return
    this.#lanes.remove(channel, window)
    window.takeItems()
  }

  /** Sends what the window of a channel holds. @param {Channel} channel @param {FlushReason} reason */
  flush(channel, reason) {
    const { window } = channel
    if (window === null || window.empty) return
    this.#lanes.remove(channel, window)
    const items = window.takeItems()
    this.stats.flushed(reason, items.length)
    let from = 0
    while (from < items.length) {
      // Joins and leaves have a topic of their own: they stay in their place if runs of one kind follow each other.
      const isEvent = items[from].publication === null
      let to = from + 1
      while (to < items.length && (items[to].publication === null) === isEvent) to++
      const run = items.slice(from, to)
      if (isEvent) this.#sendEvents(channel, window, run)
      else this.#sendPublications(channel, window, run)
      from = to
    }
    for (const cohort of window.takeNewcomers()) this.#settle(channel, cohort)
    // Those for whom it was made may have been disconnected.
    if (channel.deltas?.cohorts.length === 0) channel.deltas = null
  }

  /** @param {(batch: Batch) => void} work */
  #withBatch(work) {
    const batch = this.#free.pop() ?? new Batch()
    work(batch)
    // Neither its publications nor a large memory are kept until the next one.
    batch.begin(false)
    this.#free.push(batch)
  }

  /** @param {Window} window @param {Cohort} cohort @param {Batch} batch @param {number} from @param {number} to */
  #publish(window, cohort, batch, from, to) {
    if (from >= to || cohort.count === 0) return
    const position = cohort instanceof Newcomers ? cohort : window
    this.#hub.fanout.publishBatch(cohort, batch, from, to, publication => {
      if (publication !== null && publication.offset > 0) position.sent = publication.offset
    })
    if (!cohort.events) this.#hub.delivered(cohort.count * (to - from))
  }

  /** @param {Channel} channel @param {Window} window @param {readonly Item[]} run joins and leaves */
  #sendEvents(channel, window, run) {
    this.#withBatch(batch => {
      for (const cohort of this.cohorts(channel)) {
        if (!cohort.events) continue
        const { codec } = cohort
        batch.begin(codec.binary)
        for (const { info, joined } of run.slice(firstFor(cohort, run)))
          batch.add(toBytes(codec.event(channel.name, info, joined)), null)
        this.#publish(window, cohort, batch, 0, batch.size)
      }
    })
  }

  /** @param {Channel} channel @param {Window} window @param {readonly Item[]} run publications */
  #sendPublications(channel, window, run) {
    const cohorts = this.cohorts(channel).filter(({ events }) => !events)
    for (const codec of new Set(cohorts.map(cohort => cohort.codec))) {
      this.#withBatch(batch => {
        batch.begin(codec.binary)
        for (const item of run) {
          const publication = publicationOf(item)
          batch.add(
            fits(publication, codec) ? codec.publication(channel.name, publication) : NOTHING,
            publication,
          )
        }
        for (const cohort of cohorts)
          if (cohort.codec === codec) this.#sendTo(channel, window, cohort, batch, run)
      })
    }
    // The last of the others may have been disconnected by an earlier run.
    if (window.newcomers.some(({ delta }) => delta)) channel.deltas ??= new Deltas()
    if (channel.deltas !== null) this.#sendDeltas(channel, window, channel.deltas, run)
  }

  /**
   * @param {Channel} channel @param {Window} window @param {Cohort} cohort @param {Batch} batch the whole run
   * @param {readonly Item[]} run
   */
  #sendTo(channel, window, cohort, batch, run) {
    const { codec, filter } = cohort
    const first = firstFor(cohort, run)
    /** @type {number[]} */
    const chosen = []
    let refused = false
    for (let index = first; index < run.length && !refused; index++) {
      const publication = publicationOf(run[index])
      if (filter !== null && !filter.matches(publication.tags)) continue
      // The clients get what comes before the payload that their codec cannot carry.
      if (fits(publication, codec)) chosen.push(index)
      else refused = true
    }
    if (filter === null) this.#publish(window, cohort, batch, first, first + chosen.length)
    else {
      this.#withBatch(part => {
        part.begin(codec.binary)
        for (const index of chosen) part.add(batch.frame(index, index + 1), batch.publications[index])
        this.#publish(window, cohort, part, 0, part.size)
      })
    }
    if (refused) this.#hub.disconnectJson(channel.name, cohort)
  }

  /**
   * @param {Channel} channel @param {Window} window @param {Deltas} deltas @param {readonly Item[]} run publications
   */
  #sendDeltas(channel, window, deltas, run) {
    const { name } = channel
    const publications = run.map(publicationOf)
    const chain = deltas.chain(publications, this.#hub.encoder)
    const newcomers = window.newcomers.filter(({ delta, events }) => delta && !events)
    for (const cohort of [...deltas.cohorts, ...newcomers]) {
      const { codec } = cohort
      const first = firstFor(cohort, run)
      if (first === run.length) continue
      // The first one in full, for those who do not have the one before it.
      let full = cohort instanceof Newcomers ? cohort.behind : !cohort.readsDeltas
      this.#withBatch(batch => {
        batch.begin(codec.binary)
        let index = first
        for (; index < run.length && fits(publications[index], codec); index++) {
          const delta = full || cohort.full ? null : chain[index]
          const readable = delta !== null && (codec.binary || isUtf8(delta)) ? delta : null
          batch.add(codec.deltaPublication(name, publications[index], readable), publications[index])
          full = false
        }
        this.#publish(window, cohort, batch, 0, batch.size)
        if (index < run.length) this.#hub.disconnectJson(name, cohort)
      })
      if (cohort instanceof Newcomers) cohort.behind = false
    }
    deltas.advance(name, /** @type {Publication} */ (publications.at(-1)))
  }

  /** New members follow the channel like all others. @param {Channel} channel @param {Newcomers} cohort */
  #settle(channel, cohort) {
    const { name } = channel
    for (const [session, received] of cohort.members) {
      const regular = cohort.delta
        ? (channel.deltas ??= new Deltas()).settle(session, cohort, received, this.#hub.newTopic)
        : this.#hub.cohort(channel, cohort)
      // Follow first: a session without any topic for a moment may lose messages in transit from the old one.
      session.follow(regular.topic)
      session.unfollow(cohort.topic)
      const subscription = session.subscription(name)
      if (subscription === undefined) continue
      if (cohort.events) subscription.events = regular
      else subscription.cohort = regular
    }
  }
}
