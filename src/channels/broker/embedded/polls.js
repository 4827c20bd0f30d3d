// Shared polls in the primary. A channel has the keys that its workers track. Once per interval, the backend is asked
// for each of them, in calls that are spread over the interval; for some keys also at once (see Polls in contract.js):
//
//   worker -- POLL_TRACK ------> host: adds keys, asks for those the client has no data of
//   worker <- POLL_REFRESH ----- host: one worker asks the backend
//   worker -- POLL_REFRESHED --> host: changed keys
//   workers <- POLL_UPDATE ----- host: each changed key, to the workers that track it

import { errors } from '../../../base/errors.js'
import { SlicedWork } from '../../../base/slices.js'
import { newEpoch } from '../epoch.js'
import { Frame } from './frames.js'
import { readPollChange, writePollUpdate } from './poll-frames.js'

/** @import { PollChange, PollResult, PollRules } from '../contract.js' */
/** @import { PollCounts } from '../../../metrics/schema.js' */
/** @import { Link } from './host.js' */
/** @import { FrameCursor } from './records.js' */

/** Limit of the node's tracked keys: their bytes, and what each costs besides. */
const MAX_BYTES = 256 * 1024 * 1024
const KEY_BYTES = 200
/** Calls for keys without data of one channel at a time: a client may ask for many. */
const MAX_COLD_CALLS = 4
/** Timeout of a call, ms; backends have shorter ones. */
const CALL_MS = 30_000

/** @returns {PollCounts} */
const NO_COUNTS = () => ({ calls: 0, keys: 0, failures: 0, updates: 0 })

/**
 * `turn`: cycle in which the backend was last asked for it; `coldCall`: number of the last call for clients without data;
 * `fresh`: published directly since the last cycle.
 */
class TrackedKey {
  version = 0n
  hash = ''
  turn = 0
  coldCall = 0
  fresh = false
  /** Workers that track it. @type {Link[]} */
  links = []
}

/** A call of the backend. `cold`: for keys that clients have no data of; `epoch`: the channel's when it began. */
class Refresh {
  /** @type {Link | null} the worker that makes it */
  link = null
  epoch = ''
  /** ms of performance.now() */
  since = 0

  /** @param {PollChannel} channel @param {string[]} keys @param {boolean} cold */
  constructor(channel, keys, cold) {
    this.channel = channel
    this.keys = keys
    this.cold = cold
  }
}

class PollChannel {
  /** @type {Map<string, TrackedKey>} */
  keys = new Map()
  /** Workers with subscribers. @type {Set<Link>} */
  links = new Set()
  /** Keys to ask for at once. @type {Set<string>} */
  cold = new Set()
  /** Keys to ask for in the same way when the next cycle begins. @type {Set<string>} */
  late = new Set()
  /** Whether a call for `cold` is scheduled, and those in progress. */
  coldWaits = false
  coldCalls = 0
  /** Number of the last version without versions of the backend. */
  last = 0n
  cycle = 0
  cycleBegan = 0
  /** Calls that this cycle has begun, and those without a response. */
  begun = 0
  open = 0
  /** Rest of the keys of this cycle; null: between cycles. @type {IterableIterator<string> | null} */
  rest = null
  /** Of the next cycle or call, or of the shutdown. @type {NodeJS.Timeout | undefined} */
  timer
  shutdown = /** @type {NodeJS.Timeout | undefined} */ (undefined)

  /** @param {string} name @param {PollRules} rules */
  constructor(name, rules) {
    this.name = name
    this.rules = rules
    this.epoch = rules.versioned ? '' : newEpoch()
  }
}

export class HostPolls {
  /** Tracked keys. */
  keys = 0
  /** Since the last drain. */
  counts = NO_COUNTS()
  /** @type {Map<string, PollChannel>} */
  #channels = new Map()
  /** Calls in progress. @type {Map<number, Refresh>} */
  #calls = new Map()
  /** Calls of cycles that wait: `concurrency` are in progress. @type {Refresh[]} */
  #waiting = []
  /** Channels whose calls for `cold` wait: `concurrency` are in progress. @type {Set<PollChannel>} */
  #cold = new Set()
  #concurrency = 1
  #lastCall = 0
  #bytes = 0
  #sent

  /** @param {(link: Link) => void} sent ends a frame to a worker */
  constructor(sent) {
    this.#sent = sent
  }

  /**
   * @param {Link} link @param {string} name @param {PollRules} rules
   * @returns {string} epoch of the versions, '' = none yet
   */
  open(link, name, rules) {
    let channel = this.#channels.get(name)
    if (channel === undefined) this.#channels.set(name, (channel = new PollChannel(name, rules)))
    else if (channel.rules.versioned !== rules.versioned)
      this.#setEpoch(channel, rules.versioned ? '' : newEpoch())
    const { interval } = channel.rules
    channel.rules = rules
    if (rules.interval !== interval && channel.rest === null && channel.timer !== undefined) {
      clearTimeout(channel.timer)
      channel.timer = undefined
      this.#checkCycle(channel)
    }
    this.#concurrency = rules.concurrency
    channel.links.add(link)
    clearTimeout(channel.shutdown)
    return channel.epoch
  }

  /** @param {Link} link @param {string} name */
  close(link, name) {
    const channel = this.#channels.get(name)
    if (!channel?.links.delete(link) || channel.links.size > 0) return
    channel.shutdown = setTimeout(() => this.#remove(channel), channel.rules.shutdownDelay)
  }

  /** @param {PollChannel} channel */
  #remove(channel) {
    clearTimeout(channel.timer)
    clearTimeout(channel.shutdown)
    for (const [key, entry] of channel.keys) this.#forget(channel, key, entry)
    this.#cold.delete(channel)
    this.#channels.delete(channel.name)
  }

  /** @param {Link} link @param {FrameCursor} cursor @throws {Error} too many keys */
  track(link, cursor) {
    const channel = this.#channels.get(cursor.string())
    // Its worker has opened it.
    if (channel === undefined) throw errors.internal
    for (let count = cursor.u32(); count > 0; count--)
      this.#track(channel, link, cursor.string(), cursor.u64())
    const idle = channel.rest === null && channel.open === 0 && channel.timer === undefined
    if (idle && channel.keys.size > 0) this.#schedule(channel, channel.rules.interval)
  }

  /** @param {PollChannel} channel @param {Link} link @param {string} key @param {bigint} version of the client */
  #track(channel, link, key, version) {
    let entry = channel.keys.get(key)
    if (entry === undefined) {
      const bytes = keyBytes(key)
      if (this.#bytes + bytes > MAX_BYTES) throw errors.limitExceeded
      this.#bytes += bytes
      this.keys++
      channel.keys.set(key, (entry = new TrackedKey()))
    }
    if (!entry.links.includes(link)) entry.links.push(link)
    // The response to a call in progress is for this client, too.
    if ((version === 0n || version < entry.version) && !this.#calls.has(entry.coldCall))
      this.#ask(channel, key)
  }

  /** @param {PollChannel} channel @param {string} key @param {TrackedKey} entry */
  #forget(channel, key, entry) {
    entry.links = []
    channel.keys.delete(key)
    channel.cold.delete(key)
    channel.late.delete(key)
    this.#bytes -= keyBytes(key)
    this.keys--
  }

  /** @param {Link} link @param {FrameCursor} cursor */
  untrack(link, cursor) {
    const channel = this.#channels.get(cursor.string())
    for (let count = cursor.u32(); count > 0; count--) this.#leave(channel, link, cursor.string())
  }

  /** @param {PollChannel | undefined} channel @param {Link} link @param {string} key */
  #leave(channel, link, key) {
    const entry = channel?.keys.get(key)
    if (channel === undefined || entry === undefined) return
    const at = entry.links.indexOf(link)
    if (at < 0) return
    entry.links.splice(at, 1)
    if (entry.links.length === 0) this.#forget(channel, key, entry)
  }

  /** The worker of this link has exited. @param {Link} link */
  removeLink(link) {
    for (const [number, { link: caller }] of this.#calls)
      if (caller === link) this.refreshed(link, number, null)
    for (const channel of this.#channels.values()) {
      if (!channel.links.has(link)) continue
      // A Map iterator allows keys to be added and removed between two slices.
      const keys = channel.keys.keys()
      new SlicedWork(() => {
        const { value: key, done } = keys.next()
        if (!done) this.#leave(channel, link, key)
        return !done
      }).start()
      this.close(link, channel.name)
    }
  }

  /**
   * A direct publication has reached a worker that tracks the key.
   * @param {string} name @param {string} key @param {bigint} version @param {string} epoch '' = unknown
   */
  published(name, key, version, epoch) {
    const channel = this.#channels.get(name)
    if (channel === undefined) return
    if (epoch !== '' && epoch !== channel.epoch) this.#setEpoch(channel, epoch)
    const entry = channel.keys.get(key)
    if (entry === undefined || version <= entry.version) return
    entry.version = version
    entry.fresh = true
  }

  /** @param {PollChannel} channel @param {string} epoch */
  #setEpoch(channel, epoch) {
    channel.epoch = epoch
    channel.last = 0n
    for (const entry of channel.keys.values()) {
      entry.version = 0n
      entry.hash = ''
    }
    for (const link of channel.links) {
      link.writer.begin(Frame.POLL_EPOCH).string(channel.name).string(epoch)
      this.#sent(link)
    }
  }

  // Asking the backend

  /** @param {PollChannel} channel @param {string} key */
  #ask(channel, key) {
    channel.cold.add(key)
    if (channel.coldWaits) return
    channel.coldWaits = true
    // All keys of this turn in few calls.
    setImmediate(() => this.#askCold(channel))
  }

  /** @param {PollChannel} channel */
  #askCold(channel) {
    channel.coldWaits = false
    this.#cold.delete(channel)
    while (channel.cold.size > 0 && channel.coldCalls < MAX_COLD_CALLS) {
      if (this.#calls.size >= this.#concurrency) {
        this.#cold.add(channel)
        return
      }
      const keys = firstOf(channel.cold.values(), channel.rules.batchSize)
      for (const key of keys) channel.cold.delete(key)
      channel.coldCalls++
      this.#start(new Refresh(channel, keys, true))
    }
  }

  /** @param {PollChannel} channel @param {number} delay ms */
  #schedule(channel, delay) {
    channel.timer = setTimeout(() => this.#advance(channel), Math.max(0, delay))
  }

  /** Begins a cycle or its next call. @param {PollChannel} channel */
  #advance(channel) {
    channel.timer = undefined
    const { rules, keys } = channel
    if (channel.rest === null) {
      if (keys.size === 0) return
      channel.cycle++
      channel.cycleBegan = performance.now()
      channel.begun = 0
      channel.rest = keys.keys()
      for (const key of channel.late) this.#ask(channel, key)
      channel.late.clear()
    }
    const due = firstOf(channel.rest, rules.batchSize, key => this.#isDue(channel, key))
    if (due.length > 0) {
      channel.begun++
      channel.open++
      const refresh = new Refresh(channel, due, false)
      if (this.#calls.size < this.#concurrency) this.#start(refresh)
      else this.#waiting.push(refresh)
    }
    if (due.length < rules.batchSize) {
      channel.rest = null
      return this.#checkCycle(channel)
    }
    const calls = Math.ceil(keys.size / rules.batchSize)
    const next = channel.cycleBegan + (channel.begun * rules.interval) / calls
    this.#schedule(channel, next - performance.now())
  }

  /** @param {PollChannel} channel @param {string} key of this cycle */
  #isDue({ keys, cycle, cold }, key) {
    const entry = keys.get(key)
    if (entry === undefined || entry.turn === cycle || cold.has(key) || this.#calls.has(entry.coldCall))
      return false
    entry.turn = cycle
    const { fresh } = entry
    entry.fresh = false
    return !fresh
  }

  /** Schedules the next cycle when all calls of this one have responses. @param {PollChannel} channel */
  #checkCycle(channel) {
    if (channel.open > 0 || channel.rest !== null || channel.timer !== undefined) return
    if (channel.keys.size === 0 || this.#channels.get(channel.name) !== channel) return
    this.#schedule(channel, channel.cycleBegan + channel.rules.interval - performance.now())
  }

  /** @param {Refresh} refresh */
  #start(refresh) {
    const { channel, keys, cold } = refresh
    const link = nextOf(channel.links)
    const known = keys.filter(key => channel.keys.has(key))
    if (link === undefined || known.length === 0) {
      if (cold) this.#askLater(channel, known)
      return this.#finished(refresh)
    }
    this.#lastCall = (this.#lastCall + 1) >>> 0
    refresh.link = link
    refresh.epoch = channel.epoch
    refresh.since = performance.now()
    this.#calls.set(this.#lastCall, refresh)
    const writer = link.writer.begin(Frame.POLL_REFRESH).u32(this.#lastCall).string(channel.name)
    writer.u8(cold ? 1 : 0).u32(known.length)
    for (const key of known) {
      const entry = /** @type {TrackedKey} */ (channel.keys.get(key))
      if (cold) {
        entry.turn = channel.cycle
        entry.coldCall = this.#lastCall
      }
      writer
        .string(key)
        .u64(cold ? 0n : entry.version)
        .bytes(entry.hash)
    }
    this.counts.calls++
    this.counts.keys += known.length
    this.#sent(link)
  }

  /** @param {Refresh} refresh */
  #finished({ channel, cold }) {
    if (cold) {
      channel.coldCalls--
      if (channel.cold.size > 0) this.#cold.add(channel)
      return
    }
    channel.open--
    this.#checkCycle(channel)
  }

  /** @param {Link} link @param {number} number @param {PollResult | null} result null: the call failed */
  refreshed(link, number, result) {
    const refresh = this.#calls.get(number)
    if (refresh?.link !== link) return
    this.#calls.delete(number)
    if (result === null) this.#failed(refresh)
    else this.#apply(refresh, result)
    this.#finished(refresh)
    for (const channel of this.#cold) {
      if (this.#calls.size >= this.#concurrency) break
      this.#askCold(channel)
    }
    while (this.#waiting.length > 0 && this.#calls.size < this.#concurrency)
      this.#start(/** @type {Refresh} */ (this.#waiting.shift()))
  }

  /** @param {Refresh} refresh */
  #failed({ channel, keys, cold }) {
    this.counts.failures++
    if (cold) this.#askLater(channel, keys)
  }

  /** A cycle sends only changes: clients without data wait for another call. @param {PollChannel} channel @param {string[]} keys */
  #askLater({ keys: tracked, late }, keys) {
    for (const key of keys) if (tracked.has(key)) late.add(key)
  }

  /** Call once a second. */
  tick() {
    const end = performance.now() - CALL_MS
    for (const [number, { link, since }] of this.#calls)
      if (since < end) this.refreshed(/** @type {Link} */ (link), number, null)
  }

  /** @param {Refresh} refresh @param {PollResult} result */
  #apply({ channel, epoch: former, cold }, { changes, epoch }) {
    if (channel.rules.versioned && epoch !== channel.epoch) {
      // A late response: a later call or a direct publication has brought the new epoch.
      if (channel.epoch !== former) return
      this.#setEpoch(channel, epoch)
    }
    for (const change of changes) this.#change(channel, change, cold)
  }

  /** @param {PollChannel} channel @param {PollChange} change @param {boolean} cold also if it is unchanged */
  #change(channel, change, cold) {
    const { key, removed, hash } = change
    const entry = channel.keys.get(key)
    if (entry === undefined) return
    let { version } = change
    if (!channel.rules.versioned && !removed) {
      if (hash !== entry.hash) entry.version = ++channel.last
      version = entry.version
      entry.hash = hash
    } else if (version > entry.version) entry.version = version
    else if (!removed && (version < entry.version || !cold)) return
    const { links } = entry
    if (removed) this.#forget(channel, key, entry)
    for (const link of links) {
      writePollUpdate(link.writer.begin(Frame.POLL_UPDATE), channel.name, { ...change, version })
      this.#sent(link)
    }
    this.counts.updates++
  }

  /** Counts since the last call. */
  drain() {
    const { keys, counts } = this
    this.counts = NO_COUNTS()
    return { keys, counts }
  }

  end() {
    for (const channel of [...this.#channels.values()]) this.#remove(channel)
  }
}

/** @param {FrameCursor} cursor after the number of a POLL_REFRESHED @returns {PollResult | null} */
export function readPollResult(cursor) {
  if (cursor.u8() === 0) return null
  const epoch = cursor.string()
  /** @type {PollChange[]} */
  const changes = []
  for (let count = cursor.u32(); count > 0; count--) changes.push(readPollChange(cursor))
  return { changes, epoch }
}

/** @param {string} key */
const keyBytes = key => key.length * 2 + KEY_BYTES

/**
 * The first values for which `matches` is true.
 * @template T @param {IterableIterator<T>} values @param {number} limit @param {(value: T) => boolean} [matches]
 */
function firstOf(values, limit, matches = () => true) {
  /** @type {T[]} */
  const first = []
  while (first.length < limit) {
    const { value, done } = values.next()
    if (done) break
    if (matches(value)) first.push(value)
  }
  return first
}

/** The least recently used worker that reads its frames. @param {Set<Link>} links */
function nextOf(links) {
  for (const link of links) {
    if (link.behind || link.socket.destroyed) continue
    links.delete(link)
    links.add(link)
    return link
  }
  return undefined
}
