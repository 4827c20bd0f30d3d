// Tracked channels in the primary: who is occupied, events for the backend, counts of clients (docs/access.md). The
// states are in the contract of presence (contract.js).
//
//   presence -- changed() --> ChannelState -- event --> queue -- STATES -----> a worker: calls the backend
//                                  |                       <--- STATES_DONE ---
//                                  +-- count -- OCCUPANCY --> a worker: publishes it

import { Timer, TimerWheel } from '../../../base/timers.js'
import { newEpoch } from '../epoch.js'
import { Frame } from './frames.js'

/** @import { LimitedLog } from '../../../base/log.js' */
/** @import { StateEvent, Tracking } from '../contract.js' */
/** @import { Presence } from './channel.js' */
/** @import { Link } from './host.js' */
/** @import { StateJournal } from './state-journal.js' */

const TICK_MS = 50
/** Events in the queue. */
const MAX_EVENTS = 100_000
/** Events in a call. */
const MAX_BATCH = 100
/** Delay before a failed call is repeated, ms; doubles with each failure. */
const RETRY = Object.freeze({ first: 100, last: 20_000 })
/** Channels that wait for a client; further ones are vacated at once. */
const MAX_LEAVING = 1_000_000
/** Minimum time for clients to return after a start, ms. */
const RETURN_MS = 60_000
/** Delay before a count is published again, ms. */
const COUNT_RETRY_MS = 1000

/** Publishes the count of a channel: at once, then at most once per interval. */
class Occupancy extends Timer {
  #states
  #state
  /** Whether the count has changed since it was sent. */
  #dirty = false
  #sending = false

  /** @param {ChannelStates} states @param {ChannelState} state */
  constructor(states, state) {
    super()
    this.#states = states
    this.#state = state
  }

  get idle() {
    return !this.armed && !this.#sending && !this.#dirty
  }

  changed() {
    this.#dirty = true
    // All changes of this turn are one count.
    if (!this.armed && !this.#sending) this.#states.schedule(this, 0)
  }

  onTimer() {
    if (!this.#dirty) return this.#states.settle(this.#state)
    this.#dirty = false
    this.#sending = true
    const { interval } = this.#state.tracking
    this.#states.sendCount(this.#state, published => {
      this.#sending = false
      if (!published) this.#dirty = true
      this.#states.schedule(this, published ? interval : Math.max(interval, COUNT_RETRY_MS))
    })
  }
}

/** A channel with tracked clients, or whose `vacated` is to come. */
export class ChannelState extends Timer {
  clients = 0
  /** Whether its last event is `occupied`. */
  occupied = false
  /** When its last client left, unix ms; 0: not LEAVING. */
  leftAt = 0
  /** @type {Occupancy | null} */
  occupancy = null
  #states

  /** @param {ChannelStates} states @param {string} name @param {Tracking} tracking */
  constructor(states, name, tracking) {
    super()
    this.#states = states
    this.name = name
    this.tracking = tracking
    this.track(tracking)
  }

  /** @param {Tracking} tracking of the current configuration */
  track(tracking) {
    this.tracking = tracking
    if (tracking.interval === 0) this.occupancy = null
    else this.occupancy ??= new Occupancy(this.#states, this)
  }

  /** @param {number} clients in presence */
  changed(clients) {
    if (clients === this.clients) return
    this.clients = clients
    if (clients === 0) this.#states.left(this)
    else this.#states.entered(this)
    this.occupancy?.changed()
    this.#states.settle(this)
  }

  onTimer() {
    this.#states.vacate(this)
  }
}

export class ChannelStates {
  /** @type {Map<string, ChannelState>} */
  #states = new Map()
  /** @type {StateEvent[]} not accepted yet */
  #queue = []
  /** Call in progress. @type {{number: number, link: Link, events: number} | null} */
  #call = null
  /** Publications in progress. @type {Map<number, {link: Link, done: (published: boolean) => void}>} */
  #counts = new Map()
  #lastCall = 0
  #leaving = 0
  #dropped = 0
  #failures = 0
  #scheduled = false
  /** @type {NodeJS.Timeout | undefined} */
  #retry
  #ended = false
  /** Clients may return after the next start: channels stay LEAVING. */
  #stopping = false
  #run = newEpoch()
  #lastEvent = 0
  #delay
  #links
  #sent
  #clock
  #onEvent
  #log
  /** @type {StateJournal | null} */
  #journal = null
  #timers

  /**
   * @param {object} parts @param {number} parts.delay time in LEAVING, ms @param {Iterable<Link>} parts.links
   * @param {(link: Link) => void} parts.sent ends a frame to a worker @param {() => number} parts.clock unix ms
   * @param {(event: StateEvent) => void} parts.onEvent called once per event @param {LimitedLog} parts.log
   */
  constructor({ delay, links, sent, clock, onEvent, log }) {
    this.#delay = delay
    this.#links = links
    this.#sent = sent
    this.#clock = clock
    this.#onEvent = onEvent
    this.#log = log
    this.#timers = new TimerWheel(TICK_MS, clock)
    this.#timers.start()
  }

  /**
   * Continues the last run, before any worker is attached: its channels are LEAVING, its events are repeated.
   * @param {StateJournal} journal
   */
  async restore(journal) {
    const { occupied, events } = await journal.open(() => this.#content())
    const now = this.#clock()
    for (const [name, interval] of occupied) {
      const state = new ChannelState(this, name, { events: true, interval })
      this.#states.set(name, state)
      state.occupied = true
      state.leftAt = now
      this.#leaving++
      this.#timers.schedule(state, now + Math.max(this.#delay, RETURN_MS))
      state.occupancy?.changed()
    }
    this.#queue = events
    await journal.begin()
    this.#journal = journal
    if (events.length > 0) this.#deliverSoon()
  }

  /** @returns {Iterable<any[]>} records from which `restore` continues */
  *#content() {
    for (const { name, tracking, occupied } of this.#states.values())
      if (occupied) yield ['c', name, tracking.interval]
    for (const event of this.#queue) yield this.#recordOf(event)
  }

  /** @param {StateEvent} event @returns {any[]} */
  #recordOf({ id, channel, type, time_ms }) {
    return ['e', id, channel, type, time_ms, this.#states.get(channel)?.tracking.interval ?? 0]
  }

  /** @param {Presence<Link>} presence with a client @param {string} name of its channel @param {Tracking} tracking */
  track(presence, name, tracking) {
    let state = this.#states.get(name)
    if (state === undefined) this.#states.set(name, (state = new ChannelState(this, name, tracking)))
    else state.track(tracking)
    presence.state = state
    state.changed(presence.clients.size)
  }

  /** @param {Timer} timer @param {number} delay ms */
  schedule(timer, delay) {
    if (!this.#ended) this.#timers.schedule(timer, this.#clock() + delay)
  }

  /** @param {ChannelState} state with clients */
  entered(state) {
    if (state.leftAt > 0) {
      state.leftAt = 0
      this.#leaving--
      this.#timers.cancel(state)
    }
    if (!state.occupied && state.tracking.events) this.#add(state, 'occupied', this.#clock())
  }

  /** @param {ChannelState} state without clients */
  left(state) {
    if (!state.occupied) return
    state.leftAt = this.#clock()
    this.#leaving++
    const delay = this.#leaving > MAX_LEAVING ? 0 : this.#delay
    if (delay === 0) this.vacate(state)
    else this.#timers.schedule(state, state.leftAt + delay)
  }

  /** @param {ChannelState} state LEAVING, its delay is over */
  vacate(state) {
    if (this.#stopping) return
    if (!this.#add(state, 'vacated', state.leftAt)) return this.schedule(state, 1000)
    state.leftAt = 0
    this.#leaving--
    this.settle(state)
  }

  /** Forgets a state without content. @param {ChannelState} state */
  settle({ name, clients, occupied, occupancy }) {
    if (clients === 0 && !occupied && (occupancy === null || occupancy.idle)) this.#states.delete(name)
  }

  /**
   * @param {ChannelState} state @param {StateEvent['type']} type @param {number} time_ms
   * @returns {boolean} false: no room
   */
  #add(state, type, time_ms) {
    if (this.#queue.length >= MAX_EVENTS) {
      if (type === 'occupied') this.#dropped++
      return false
    }
    state.occupied = type === 'occupied'
    const event = { id: `${this.#run}-${++this.#lastEvent}`, channel: state.name, type, time_ms }
    this.#queue.push(event)
    this.#journal?.add(this.#recordOf(event))
    this.#onEvent(event)
    this.#deliverSoon()
    return true
  }

  // Reports

  #deliverSoon() {
    if (this.#scheduled || this.#call !== null || this.#retry !== undefined || this.#ended) return
    this.#scheduled = true
    const deliver = () => {
      this.#scheduled = false
      this.#deliver()
    }
    // The backend gets no event that a crash could take back.
    if (this.#journal === null) setImmediate(deliver)
    else this.#journal.written(deliver)
  }

  #deliver() {
    if (this.#call !== null || this.#queue.length === 0 || this.#ended) return
    const link = this.#nextLink()
    if (link === undefined) return this.#again()
    const events = this.#queue.slice(0, MAX_BATCH)
    this.#call = { number: this.#nextCall(), link, events: events.length }
    link.writer.begin(Frame.STATES).u32(this.#call.number).u32(this.#dropped).string(JSON.stringify(events))
    this.#dropped = 0
    this.#sent(link)
  }

  #again() {
    if (this.#ended) return
    const delay = Math.min(RETRY.last, RETRY.first * 2 ** Math.min(this.#failures++, 10))
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#deliver()
    }, delay)
  }

  /** @param {ChannelState} state @param {(published: boolean) => void} done */
  sendCount({ name, clients }, done) {
    const link = this.#nextLink()
    if (link === undefined) return done(false)
    const number = this.#nextCall()
    this.#counts.set(number, { link, done })
    link.writer.begin(Frame.OCCUPANCY).u32(number).string(name).u32(clients)
    this.#sent(link)
  }

  /** A worker answers a STATES or an OCCUPANCY. @param {Link} link @param {number} number @param {boolean} accepted */
  done(link, number, accepted) {
    const count = this.#counts.get(number)
    if (count?.link === link) {
      this.#counts.delete(number)
      return count.done(accepted)
    }
    const call = this.#call
    if (call === null || call.number !== number || call.link !== link) return
    this.#call = null
    if (!accepted) return this.#again()
    this.#failures = 0
    this.#queue.splice(0, call.events)
    this.#journal?.add(['d', call.events])
    if (this.#queue.length > 0) this.#deliverSoon()
  }

  /** @param {Link} link of an exited worker */
  removeLink(link) {
    for (const [number, count] of this.#counts) if (count.link === link) this.done(link, number, false)
    if (this.#call?.link === link) this.done(link, this.#call.number, false)
  }

  #nextCall() {
    return (this.#lastCall = (this.#lastCall + 1) >>> 0)
  }

  /** @returns {Link | undefined} a worker that reads its frames */
  #nextLink() {
    const links = [...this.#links].filter(
      ({ surveyed, behind, socket }) => surveyed && !behind && !socket.destroyed,
    )
    return links[this.#lastCall % links.length]
  }

  stopping() {
    this.#stopping = this.#journal !== null
  }

  /** Call after all clients have left. */
  async end() {
    this.#ended = true
    clearTimeout(this.#retry)
    for (const state of this.#states.values()) {
      this.#timers.cancel(state)
      if (state.occupancy !== null) this.#timers.cancel(state.occupancy)
    }
    if (this.#queue.length > 0) {
      const text =
        this.#journal === null
          ? 'channel events are lost: the backend has not accepted them'
          : 'channel events are reported after the next start'
      this.#log.warn({ events: this.#queue.length }, text)
    }
    await this.#journal?.close()
  }
}
