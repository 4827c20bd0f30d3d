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
/** @import { Filter } from '../../clients/protocol/filter.js' */
/** @import { Channel } from './channel.js' */
/** @import { MonotonicClock } from './lanes.js' */
/** @import { Hub, Member } from './hub.js' */

/** Memory kept between two batches, bytes. */
const KEEP = 1024 * 1024

const LINE_FEED = 10

/** Concatenated encoded pushes of one codec: any consecutive ones form a frame. */
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

  /** Begins a batch. @param {boolean} binary binary codec: no separators */
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

  /** @param {number} from @param {number} to after the last push @returns {Buffer} valid until the next `begin` */
  frame(from, to) {
    return this.#memory.subarray(this.#starts[from], this.#ends[to - 1])
  }
}

/** @typedef {(channel: string) => Readonly<BatchOptions> | null} BatchOptionsOf */

/**
 * @typedef {{publish: (cohort: Pick<Cohort, 'topic' | 'codec' | 'count'>, message: Uint8Array, publication: Publication | null) => void,
 *   publishBatch: (cohort: Cohort, batch: Batch, from: number, to: number, sending: Sending) => void}} FanoutParts
 *
 * @typedef {(publication: Publication | null) => void} Sending called before each separate publication message, for
 *   transports needing the position
 */

const NOTHING = new Uint8Array(0)

/** @param {Publication} publication @param {Codec} codec @returns {boolean} whether the codec can encode it */
const fits = ({ json }, { binary }) => json || binary

/** @param {Cohort} cohort */
const filters = ({ filter }) => filter !== null

/** @param {Cohort} a @param {Cohort} b @returns {boolean} whether they get the same messages */
const encodedAlike = (a, b) => a.codec === b.codec && a.channelId === b.channelId

/** @param {Cohort[]} cohorts @returns {Cohort[]} the first one of each encoding */
const encodings = cohorts =>
  cohorts.filter((cohort, i) => cohorts.findIndex(other => encodedAlike(other, cohort)) === i)

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

/** Windows of batched channels, and their flushes. See window.js for the invariants. */
export class Batches {
  stats = new BatchStats()
  /** @type {BatchOptionsOf} */
  #optionsOf = NONE
  #hub
  #lanes
  /** @type {Batch[]} unused; flushes nest: one may end sessions and so flush their other channels */
  #free = []

  /** @param {Hub} hub @param {MonotonicClock} [monotonic] */
  constructor(hub, monotonic) {
    this.#hub = hub
    this.#lanes = new Lanes(channel => this.flush(channel, 'delay'), monotonic)
  }

  get on() {
    return this.#optionsOf !== NONE
  }

  get held() {
    return this.#lanes.size
  }

  /**
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

  flushAll() {
    if (this.held > 0) this.#eachChannel(channel => this.flush(channel, 'close'))
  }

  /** @param {(channel: Channel) => void} visit in slices */
  #eachChannel(visit) {
    // A Map iterator allows channels to be added and removed between two slices.
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

  /** @param {Channel} channel @returns {Cohort[]} except delta cohorts */
  cohorts({ cohorts, window }) {
    return window === null ? cohorts : [...cohorts, ...window.newcomers.filter(({ delta }) => !delta)]
  }

  /** @param {Channel} channel @returns {Iterable<Cohort>} the same, one per filter */
  differentCohorts(channel) {
    const cohorts = this.cohorts(channel)
    return channel.window === null ? cohorts : new Map(cohorts.map(cohort => [cohort.key, cohort])).values()
  }

  /**
   * Items in the window are in the reply, or older than the subscription.
   * @param {Member} session @param {Channel} channel with a window
   * @param {{positioned: boolean, events: boolean, filter: Filter | null, delta?: boolean,
   *   received?: Publication | null, channelId?: number}} options of `Hub.join`
   * @returns {{cohort: Cohort, events: Cohort | null} | null} null: the window is empty
   */
  join(session, channel, { positioned, events, filter, delta = false, received = null, channelId = 0 }) {
    const window = /** @type {Window} */ (channel.window)
    if (!window.empty && !window.hasRoom) this.flush(channel, 'subscribe')
    if (window.empty) return null
    const { codec } = session
    const { newTopic } = this.#hub
    const wanted = new Cohort(cohortKey(codec, false, filter, channelId), '', codec, false, filter, delta)
    wanted.channelId = channelId
    wanted.full = delta && !positioned && !channel.keepsLatest
    const cohort = window.join(session, wanted, channel.offset, received, newTopic)
    session.follow(cohort.topic)
    if (!events) return { cohort, events: null }
    const both = new Cohort(cohortKey(codec, true, null, channelId), '', codec, true, null, false)
    both.channelId = channelId
    const others = window.join(session, both, channel.offset, null, newTopic)
    session.follow(others.topic)
    return { cohort, events: others }
  }

  /** @param {Channel} channel @param {Window} window of it @param {Publication} publication valid during the call */
  hold(channel, window, publication) {
    // A lost position may have removed the last subscription.
    if (channel.count === 0) return
    const { options } = window
    const { offset, previous = offset - 1 } = publication
    const before = offset > 0 ? previous : channel.offset
    // No conflation with filters: members may match only the older publication. Filters may predate a reload.
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

  /** The channel has no more subscriptions. @param {Channel} channel */
  drop(channel) {
    const { window } = channel
    if (window === null || window.empty) return
    this.#lanes.remove(channel, window)
    window.takeItems()
  }

  /** Flushes the window of a channel. @param {Channel} channel @param {FlushReason} reason */
  flush(channel, reason) {
    const { window } = channel
    if (window === null || window.empty) return
    this.#lanes.remove(channel, window)
    const items = window.takeItems()
    this.stats.flushed(reason, items.length)
    let from = 0
    while (from < items.length) {
      // Joins and leaves have a separate topic: runs of one kind keep order.
      const isEvent = items[from].publication === null
      let to = from + 1
      while (to < items.length && (items[to].publication === null) === isEvent) to++
      const run = items.slice(from, to)
      if (isEvent) this.#sendEvents(channel, window, run)
      else this.#sendPublications(channel, window, run)
      from = to
    }
    for (const cohort of window.takeNewcomers()) this.#settle(channel, cohort)
    // The flush may have disconnected all.
    if (channel.deltas?.cohorts.length === 0) channel.deltas = null
  }

  /** @param {(batch: Batch) => void} work */
  #withBatch(work) {
    const batch = this.#free.pop() ?? new Batch()
    work(batch)
    // Releases the publications and a large buffer.
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
    if (!cohort.events) this.#hub.delivered += cohort.count * (to - from)
  }

  /** @param {Channel} channel @param {Window} window @param {readonly Item[]} run joins and leaves */
  #sendEvents(channel, window, run) {
    this.#withBatch(batch => {
      for (const cohort of this.cohorts(channel)) {
        if (!cohort.events) continue
        const { codec } = cohort
        batch.begin(codec.binary)
        for (const { info, joined } of run.slice(firstFor(cohort, run)))
          batch.add(toBytes(codec.event(cohort.channelId || channel.name, info, joined)), null)
        this.#publish(window, cohort, batch, 0, batch.size)
      }
    })
  }

  /** @param {Channel} channel @param {Window} window @param {readonly Item[]} run publications */
  #sendPublications(channel, window, run) {
    const cohorts = this.cohorts(channel).filter(({ events }) => !events)
    for (const encoding of encodings(cohorts)) {
      const { codec, channelId } = encoding
      this.#withBatch(batch => {
        batch.begin(codec.binary)
        for (const item of run) {
          const publication = publicationOf(item)
          batch.add(
            fits(publication, codec) ? codec.publication(channelId || channel.name, publication) : NOTHING,
            publication,
          )
        }
        for (const cohort of cohorts)
          if (encodedAlike(cohort, encoding)) this.#sendTo(channel, window, cohort, batch, run)
      })
    }
    // An earlier run may have disconnected the last other subscriber.
    if (window.newcomers.some(({ delta }) => delta)) channel.deltas ??= new Deltas(channel)
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
      // Clients get the items before the first payload their codec cannot encode.
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

  /** @param {Channel} channel @param {Window} window @param {Deltas} deltas @param {readonly Item[]} run */
  #sendDeltas(channel, window, deltas, run) {
    const { name } = channel
    const publications = run.map(publicationOf)
    const chain = deltas.chain(publications, this.#hub.encoder)
    const newcomers = window.newcomers.filter(({ delta, events }) => delta && !events)
    for (const cohort of [...deltas.cohorts, ...newcomers]) {
      const { codec } = cohort
      const first = firstFor(cohort, run)
      if (first === run.length) continue
      // The first one in full for subscribers without its base.
      let full = cohort instanceof Newcomers ? cohort.behind : !cohort.readsDeltas
      this.#withBatch(batch => {
        batch.begin(codec.binary)
        let index = first
        for (; index < run.length && fits(publications[index], codec); index++) {
          const delta = full || cohort.full ? null : chain[index]
          const readable = delta !== null && (codec.binary || isUtf8(delta)) ? delta : null
          const message = codec.deltaPublication(cohort.channelId || name, publications[index], readable)
          batch.add(message, publications[index])
          full = false
        }
        this.#publish(window, cohort, batch, 0, batch.size)
        if (index < run.length) this.#hub.disconnectJson(name, cohort)
      })
      if (cohort instanceof Newcomers) cohort.behind = false
    }
    deltas.advance(/** @type {Publication} */ (publications.at(-1)))
  }

  /** Moves newcomers to regular cohorts. @param {Channel} channel @param {Newcomers} cohort */
  #settle(channel, cohort) {
    const { name } = channel
    for (const [session, received] of cohort.members) {
      const regular = cohort.delta
        ? (channel.deltas ??= new Deltas(channel)).settle(session, cohort, received, this.#hub.newTopic)
        : this.#hub.cohort(channel, cohort.codec, cohort.events, cohort.filter, cohort.channelId)
      // Follow first: a session without any topic may lose messages in transit from the old one.
      session.follow(regular.topic)
      session.unfollow(cohort.topic)
      const subscription = session.subscription(name)
      if (subscription === undefined) continue
      if (cohort.events) subscription.events = regular
      else subscription.cohort = regular
    }
  }
}
