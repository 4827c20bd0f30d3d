// Tracked channels of all nodes: events for the backend and counts of clients (docs/access.md). The scripts of presence
// change the state of a channel (scripts/states.lua). In each partition of the states one worker, the leader, reports
// the events, publishes the counts, and removes the clients of dead workers in channels without others.

import { encode, Kind } from './inboxes.js'
import { hash } from './placement.js'
import * as scripts from './scripts.js'

/** @import { StateEvent, Tracking } from '../contract.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { Partition } from './partition.js' */

const TICK_MS = 1000
/** Time after which another worker leads, ms; half of the lease of workers, so that it sweeps in time. */
const LEADER_LEASE = Object.freeze({ least: 2000, most: 5000 })
const MAX_EVENTS = 100_000
/** Events in a call. */
const MAX_BATCH = 100
/** Channels swept or counted in a turn. */
const MAX_CHANNELS = 200
/** Time in which changes of a partition are collected, ms. */
const WAKE_MS = 5
/** Delay before a failed call is repeated, ms; doubles with each failure. */
const RETRY = Object.freeze({ first: 100, last: 20_000 })

const KINDS = Object.freeze(['leases', 'leaving', 'events', 'due', 'counts', 'leader'])
/** Places of their keys. */
const [EVENTS, DUE, COUNTS] = [2, 3, 4]

/**
 * @typedef {Pick<RedisParts, 'placement' | 'uid' | 'events' | 'log'> & {ttl: number, delay: number, partitions: number}} StatesParts
 *   `ttl`: of dead workers' clients, ms; `delay`: in LEAVING, ms; `partitions`: of the states of all channels, at least
 *
 * @typedef {(partition: Partition, channel: string, tracking: Tracking) => void} Sweep removes the clients of dead workers
 */

/** A part of the channels of a partition. */
class StatePartition {
  leads = false
  #parts
  #index
  #states
  #running = false
  #again = false
  /** Whether a report is in progress, or waits to be repeated. */
  #reporting = false
  #failures = 0
  /** Ids recorded before their first report. @type {Set<string>} */
  #recorded = new Set()
  /** When to try to lead, ms of performance.now(). */
  #restUntil = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #timerAt = Infinity

  /** @param {StatesParts} parts @param {Partition} partition @param {number} number in it @param {number} index of all @param {RedisStates} states */
  constructor(parts, partition, number, index, states) {
    this.#parts = parts
    this.partition = partition
    this.#index = index
    this.#states = states
    this.keys = KINDS.map(kind => partition.key('state', `${number}.${kind}`))
  }

  tick() {
    if (!this.partition.up) this.leads = false
    else if (this.leads || performance.now() >= this.#restUntil) this.#run()
  }

  /** Runs soon. @param {number} ms */
  wake(ms) {
    const at = performance.now() + ms
    if (!this.leads || at >= this.#timerAt) return
    clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity
      if (this.partition.up) this.#run()
    }, ms)
  }

  close() {
    clearTimeout(this.#timer)
    this.leads = false
    this.#restUntil = Infinity
  }

  #run() {
    if (this.#running) {
      this.#again = true
      return
    }
    this.#running = true
    const { uid, ttl, delay } = this.#parts
    const lease = Math.max(LEADER_LEASE.least, Math.min(LEADER_LEASE.most, ttl / 2))
    const batch = this.#reporting ? 0 : MAX_BATCH
    const args = [uid, Math.floor(lease), delay, MAX_EVENTS, MAX_CHANNELS, batch]
    this.partition.run(scripts.stateTick, this.keys, args, (error, reply) => {
      this.#running = false
      if (error) {
        this.leads = false
        return
      }
      if (!Array.isArray(reply)) {
        this.leads = false
        this.#restUntil = performance.now() + Math.max(TICK_MS, reply)
        return
      }
      this.leads = true
      const [late, found, due, next] = reply
      for (const channel of late) this.#states.sweep(this.partition, String(channel))
      this.#report(found)
      for (const channel of due) this.#count(String(channel))
      const more = late.length === MAX_CHANNELS || due.length === MAX_CHANNELS
      if (this.#again || more) this.wake(WAKE_MS)
      else if (next >= 0 && next < TICK_MS) this.wake(next + 1)
      this.#again = false
    })
  }

  /** @param {Buffer[]} found id, channel, type, time ... */
  #report(found) {
    if (found.length === 0 || this.#reporting) return
    this.#reporting = true
    const { events } = this.#parts
    /** @type {string[]} */
    const ids = []
    /** @type {StateEvent[]} */
    const list = []
    for (let i = 0; i < found.length; i += 4) {
      const [id, channel, type, time] = found.slice(i, i + 4).map(String)
      ids.push(id)
      list.push({
        id: `${this.#index}-${id}`,
        channel,
        type: /** @type {StateEvent['type']} */ (type),
        time_ms: Number(time),
      })
    }
    for (const event of list) if (!this.#recorded.has(event.id)) events.stateAdded?.(event)
    this.#recorded = new Set(list.map(({ id }) => id))
    events.states?.(list, this.#states.takeDropped(), accepted => {
      if (!accepted) return this.#retry()
      this.#failures = 0
      this.partition.send('xdel', [this.keys[EVENTS], ...ids], error => {
        if (error) return this.#retry()
        this.#reporting = false
        this.wake(0)
      })
    })
  }

  #retry() {
    const delay = Math.min(RETRY.last, RETRY.first * 2 ** Math.min(this.#failures++, 10))
    setTimeout(() => {
      this.#reporting = false
      this.wake(0)
    }, delay).unref()
  }

  /** @param {string} channel */
  #count(channel) {
    const { events } = this.#parts
    const interval = events.tracking?.(channel)?.interval ?? 0
    const keys = [this.keys[DUE], this.keys[COUNTS], ...presenceKeys(this.partition, channel)]
    this.partition.run(scripts.stateCount, keys, [channel, interval], (error, clients) => {
      if (error || clients < 0) return
      events.occupancy?.(channel, clients, published => {
        if (!published) this.partition.send('sadd', [this.keys[COUNTS], channel], () => {})
      })
      this.wake(interval)
    })
  }
}

/** @param {Partition} partition @param {string} channel @returns {string[]} keys, see presence.lua */
export function presenceKeys(partition, channel) {
  return [partition.key('presence', channel), partition.key('presence-workers', channel)]
}

export class RedisStates {
  #parts
  /** Of each partition of the channels; empty until a channel is tracked. @type {Map<Partition, StatePartition[]>} */
  #byPartition = new Map()
  /** @type {StatePartition[]} */
  #all = []
  #dropped = 0
  /** @type {Sweep} */
  #sweep
  /** Sends a message to another worker. @type {(uid: string, message: string | Buffer) => void} */
  #send

  /** @param {StatesParts} parts @param {Sweep} sweep @param {(uid: string, message: string | Buffer) => void} send */
  constructor(parts, sweep, send) {
    this.#parts = parts
    this.#sweep = sweep
    this.#send = send
  }

  #open() {
    const { placement, partitions } = this.#parts
    const all = placement.partitions
    const each = Math.ceil(partitions / all.length)
    for (const partition of all) {
      const own = Array.from(
        { length: each },
        (_, i) => new StatePartition(this.#parts, partition, i, this.#all.length + i, this),
      )
      this.#all.push(...own)
      this.#byPartition.set(partition, own)
    }
  }

  /** Call once a second. */
  tick() {
    if (!this.#parts.events.tracks?.()) return
    if (this.#all.length === 0) this.#open()
    for (const own of this.#all) own.tick()
  }

  /** @param {Partition} partition @param {string} channel */
  #of(partition, channel) {
    if (this.#all.length === 0) this.#open()
    const own = /** @type {StatePartition[]} */ (this.#byPartition.get(partition))
    return own[(hash(channel) >>> 8) % own.length]
  }

  /** Keys and arguments for a script that changes presence. @param {Partition} partition @param {string} channel @param {Tracking} tracking */
  change(partition, channel, { events, interval }) {
    return {
      keys: this.#of(partition, channel).keys,
      args: [channel, events ? 1 : 0, interval, MAX_EVENTS],
    }
  }

  /** Handles the reply of such a script. @param {Partition} partition @param {string} channel @param {string} reply leader, or '-': no room */
  changed(partition, channel, reply) {
    if (reply === '-') {
      this.#dropped++
      return
    }
    const own = this.#of(partition, channel)
    if (reply === this.#parts.uid) own.wake(WAKE_MS)
    else this.#send(reply, encode(Kind.STATE, [this.#all.indexOf(own)]))
  }

  /** Another worker has changed a channel. @param {number} index */
  wake(index) {
    this.#all[index]?.wake(WAKE_MS)
  }

  /** @param {Partition} partition @param {string} channel */
  sweep(partition, channel) {
    // Also of a namespace that is gone: its events are dropped.
    const tracking = this.#parts.events.tracking?.(channel) ?? { events: true, interval: 0 }
    this.#sweep(partition, channel, tracking)
  }

  takeDropped() {
    const dropped = this.#dropped
    this.#dropped = 0
    return dropped
  }

  close() {
    for (const own of this.#all) own.close()
  }
}
