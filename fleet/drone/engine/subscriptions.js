import { channelNumber } from '../../channel-template.js'
import { readLedger, startNumber } from './payload.js'

/** @import { ChannelTemplate } from '../../channel-template.js' */
/** @import { Counters, Ledger, Reconciliation } from '../../schema.js' */

/** Confirmed by the server, and the connection is open. */
const READY = 1
/** Was ready before publishing began: must receive sequence 1. */
const KNOWS = 2
/** Disconnected without recovery: a gap before the next publication is `missed`, not `lost`. */
const AWAY = 4
/** Has a position in a stream for recovery. */
const POSITION = 8
/** Not recovered, and no message since: a later recovery does not fill that gap. */
const UNRECOVERED = 16

/** Missing publications recorded per gap and in total, to distinguish late ones from duplicates. */
const OF_HOLE = 100
const OF_ALL = 50_000
/** More than any sequence: a publication's key is subscription * SEQUENCES + sequence. */
const SEQUENCES = 2 ** 32

/**
 * All subscriptions of a process, by index: slot * width + place in the list of templates. One subscription is five
 * numbers, plus offset and epoch for recovery.
 *
 * For each subscription and publisher start `e`, sequences are 1, 2, 3 ... A jump leaves a gap. A lower sequence fills a
 * gap (late) or is a duplicate. The first sequence of a later start must be 1, except for a subscription that has
 * received nothing and began after publishing did.
 */
export class Subscriptions {
  #templates
  #recover
  #counters
  /** Start of publishing, as startNumber; 0: not publishing. */
  #phase = 0
  /** Greatest sequence received from publisher #start. @type {number[]} */
  #last = []
  /** @type {number[]} */
  #start = []
  /** Last sequence published before the subscription. @type {number[]} */
  #baseline = []
  /** @type {number[]} */
  #channel = []
  /** @type {number[]} */
  #flags = []
  /** @type {number[]} */
  #offset = []
  /** @type {string[]} */
  #epoch = []
  /** Key of a missing publication -> AWAY if the subscription was away, else 0. @type {Map<number, number>} */
  #missing = new Map()
  #latest = 0

  /** @param {ChannelTemplate[]} templates @param {boolean} recover @param {Counters} counters */
  constructor(templates, recover, counters) {
    this.#templates = templates
    this.#recover = recover
    this.#counters = counters
    this.width = templates.length
  }

  /** @param {number} slot new, or reused: at most the number of slots so far */
  begin(slot) {
    for (let i = slot * this.width; i < (slot + 1) * this.width; i++) {
      if (i < this.#flags.length) this.#missing.clear()
      this.#last[i] = this.#start[i] = this.#baseline[i] = this.#channel[i] = this.#flags[i] = 0
      if (this.#recover) this.#offset[i] = 0
    }
  }

  /** @param {number} from start of the publishers, Unix ms; 0: not publishing @param {number} now */
  publishing(from, now) {
    const phase = from > 0 ? startNumber(from) : 0
    if (phase === this.#phase) return
    this.#phase = phase
    // The controller's link may be slower than the publishers: accept a late notice.
    if (phase === 0 || now > from + 5000) return
    for (let i = 0; i < this.#flags.length; i++) if (this.#flags[i] & READY) this.#here(i)
  }

  /** @param {number} i of a subscription before publishing */
  #here(i) {
    this.#flags[i] = (this.#flags[i] | KNOWS) & ~AWAY
  }

  /** SubscribeRequests. @param {number} slot @param {number} number of the connection @returns {{channel: string}[]} */
  requests(slot, number) {
    return this.#templates.map((template, place) => {
      const i = slot * this.width + place
      const channel = template.at(number)
      this.#channel[i] = channelNumber(channel)
      return {
        channel,
        ...(this.#recover && { recoverable: true }),
        ...(this.#flags[i] & POSITION && { recover: true, offset: this.#offset[i], epoch: this.#epoch[i] }),
      }
    })
  }

  /**
   * The caller then passes the recovered publications to receive().
   * @param {number} i @param {any} result SubscribeResult @param {number} now @param {number} from see publishing()
   */
  answered(i, result, now, from) {
    const requested = this.#flags[i] & POSITION
    this.#flags[i] |= READY
    if (requested && !result.recovered) this.#flags[i] |= UNRECOVERED
    if (requested && !(this.#flags[i] & UNRECOVERED)) this.#flags[i] &= ~AWAY
    if (requested) this.#counters[result.recovered ? 'recovered' : 'unrecovered']++
    if (from > 0 && now < from) this.#here(i)
    if (!this.#recover) return
    this.#flags[i] &= ~POSITION
    if (!result.recoverable) return
    this.#flags[i] |= POSITION
    this.#offset[i] = result.offset ?? 0
    this.#epoch[i] = result.epoch ?? ''
  }

  /** @param {number} slot with a lost connection */
  away(slot) {
    for (let i = slot * this.width; i < (slot + 1) * this.width; i++)
      this.#flags[i] = (this.#flags[i] & ~READY) | AWAY
  }

  /** @param {number} slot @param {number} channel its number @returns {number} the subscription; -1: none */
  find(slot, channel) {
    for (let i = slot * this.width; i < (slot + 1) * this.width; i++)
      if (this.#channel[i] === channel) return i
    return -1
  }

  /** @param {number} i @param {number} start of its publisher @param {number} sequence @param {boolean} again @param {number} offset */
  receive(i, start, sequence, again, offset) {
    const counters = this.#counters
    counters.received++
    if (offset > this.#offset[i]) this.#offset[i] = offset
    if (start !== this.#start[i] && !this.#begin(i, start, sequence)) return
    const missing = sequence - this.#last[i] - 1
    if (missing < 0) return this.#late(i, sequence, again)
    if (missing > 0) {
      const away = this.#flags[i] & AWAY
      if (away) counters.missed += missing
      else {
        counters.gaps++
        counters.lost += missing
      }
      const keys = this.#missing
      for (let key = i * SEQUENCES + sequence - 1, n = 0; n < Math.min(missing, OF_HOLE); n++)
        keys.set(key - n, away)
      for (const key of keys.keys()) {
        if (keys.size <= OF_ALL) break
        keys.delete(key)
      }
    }
    this.#last[i] = sequence
    this.#flags[i] &= ~(AWAY | UNRECOVERED)
  }

  /** False: a replaced publisher. @param {number} i @param {number} start @param {number} sequence */
  #begin(i, start, sequence) {
    if (start < this.#start[i]) {
      this.#counters.disordered++
      return false
    }
    const known = this.#start[i] > 0 || (this.#flags[i] & KNOWS && this.#phase > 0 && start >= this.#phase)
    this.#start[i] = start
    this.#last[i] = this.#baseline[i] = known ? 0 : sequence - 1
    if (start > this.#latest) this.#missing.clear()
    this.#latest = Math.max(start, this.#latest)
    return true
  }

  /** @param {number} i @param {number} sequence below the last one @param {boolean} again */
  #late(i, sequence, again) {
    const counters = this.#counters
    const keys = this.#missing
    const key = i * SEQUENCES + sequence
    const away = keys.get(key)
    const before = sequence <= this.#baseline[i]
    if (away === undefined && !before) {
      if (again) counters.received--
      else counters.duplicates++
      return
    }
    // A message published again is expected to be late.
    if (!again) counters.disordered++
    if (sequence === this.#baseline[i]) this.#baseline[i]--
    keys.delete(key)
    if (away) counters.missed--
    else if (!before) {
      counters.lost--
      counters.gaps += Number(keys.has(key - 1)) + Number(keys.has(key + 1)) - 1
    }
  }

  /**
   * Compares the subscriptions with the publishers' ledgers, at the end.
   * @param {Ledger[]} ledgers @param {number} slots @param {number} first number of the connection in slot 0
   * @returns {Reconciliation} @throws {Error} an invalid ledger
   */
  reconcile(ledgers, slots, first) {
    const sum = { expected: 0, lost: 0, unknown: 0 }
    for (const ledger of ledgers) {
      const published = readLedger(ledger)
      for (let i = 0; i < slots * this.width; i++) {
        const last = published(this.#templates[i % this.width].at(first + Math.floor(i / this.width)))
        const start = this.#start[i]
        if (start > ledger.start || last === 0) continue
        const here = start === ledger.start
        const lost = here ? Math.max(0, last - this.#last[i]) : last
        const known = start > 0 || this.#flags[i] & KNOWS
        sum.expected += last - (here ? this.#baseline[i] : 0)
        if (known && (this.#flags[i] & (READY | AWAY)) === READY) sum.lost += lost
        else if (lost > 0) {
          sum.expected -= lost
          sum.unknown++
        }
      }
    }
    return sum
  }
}
