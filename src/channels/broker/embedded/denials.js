import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { errors } from '../../../base/errors.js'
import { Denylist, KINDS } from '../denylist.js'
import { Frame } from './frames.js'

/** @import { Log } from '../../../base/log.js' */
/** @import { BrokerEvents } from '../contract.js' */
/** @import { Denial, DenialStore, Denials } from '../denials/contract.js' */
/** @import { Bus } from './client.js' */
/** @import { Link } from './host.js' */
/** @import { FrameCursor } from './records.js' */

/** Entries in one frame. */
const PER_FRAME = 200
/** Unread bytes above which the list of a starting worker waits. */
const BEHIND = 1024 * 1024
const WAIT_MS = 5

/** @param {Link} link @param {Denial[]} denials @param {boolean} last of the list of a starting worker */
function write({ writer }, denials, last) {
  writer
    .begin(Frame.DENIED)
    .u8(last ? 1 : 0)
    .u32(denials.length)
  for (const { kind, key, channel, seq, expireAt, issuedBefore, removed } of denials) {
    writer.u8(KINDS.indexOf(kind)).string(key).string(channel)
    writer
      .f64(seq)
      .f64(expireAt)
      .f64(issuedBefore)
      .u8(removed ? 1 : 0)
  }
}

/** @param {FrameCursor} cursor of a DENIED @returns {{last: boolean, denials: Denial[]}} */
function read(cursor) {
  const last = cursor.u8() === 1
  /** @type {Denial[]} */
  const denials = []
  for (let count = cursor.u32(); count > 0; count--) {
    const [kind, key, channel] = [KINDS[cursor.u8()], cursor.string(), cursor.string()]
    const [seq, expireAt, issuedBefore] = [cursor.f64(), cursor.f64(), cursor.f64()]
    denials.push({ kind, key, channel, seq, expireAt, issuedBefore, removed: cursor.u8() === 1 })
  }
  return { last, denials }
}

/** Denials in the primary: the list of the node, copied to its workers. */
export class HostDenials {
  list
  #sent
  /** @type {Set<Link>} workers */
  #links = new Set()
  /** @type {Record<string, DenialStore>} by kind */
  #stores = {}

  /** @param {(link: Link) => void} sent ends a frame @param {() => number} clock ms */
  constructor(sent, clock) {
    this.#sent = sent
    this.list = new Denylist(clock)
  }

  /** Before any worker is attached. @param {Record<string, DenialStore>} stores by kind @throws {Error} one line */
  async open(stores) {
    this.#stores = stores
    for (const store of new Set(Object.values(stores))) await store.open()
  }

  /** Applies changes that a store has kept or read. @param {Denial[]} denials */
  apply(denials) {
    for (const denial of denials) {
      if (denial.removed) this.list.forget(denial)
      else this.list.apply(denial)
    }
    for (const link of this.#links) {
      for (let from = 0; from < denials.length; from += PER_FRAME) {
        write(link, denials.slice(from, from + PER_FRAME), false)
        this.#sent(link)
      }
    }
  }

  /** @param {Link} link of a starting worker */
  addLink(link) {
    // Receives changes from now on; they may precede older ones in its list.
    this.#links.add(link)
    if (this.list.size > 0) return void this.#sendAll(link)
    write(link, [], true)
    this.#sent(link)
  }

  /** @param {Link} link */
  async #sendAll(link) {
    /** @type {Denial[]} */
    let denials = []
    for (const denial of this.list.all()) {
      if (denials.push(denial) < PER_FRAME) continue
      write(link, denials, false)
      this.#sent(link)
      denials = []
      await nextTurn()
      while (link.writer.backlog > BEHIND && this.#links.has(link)) await pause(WAIT_MS)
      if (!this.#links.has(link)) return
    }
    write(link, denials, true)
    this.#sent(link)
  }

  /** @param {Link} link */
  removeLink(link) {
    this.#links.delete(link)
  }

  /**
   * @param {Denial} denial from a worker, checked there
   * @param {(error: {code: number} | null, kept: Denial) => void} done all workers have received it
   */
  change(denial, done) {
    this.#stores[denial.kind].change(denial).then(
      kept => done(null, kept),
      error => done(error.code ? error : errors.internal, denial),
    )
  }

  sweep() {
    this.list.sweep()
  }

  /** @returns {Record<string, number>} entries by kind */
  get figures() {
    return Object.fromEntries(KINDS.map(kind => [kind, this.list.count(kind)]))
  }

  async close() {
    for (const store of new Set(Object.values(this.#stores))) await store.close()
  }
}

/** Denials in a worker. @implements {Denials} */
export class LocalDenials {
  #bus
  #list
  #events
  /** @type {() => void} */
  #onLoaded = () => {}
  /** @type {Promise<void>} */
  loaded = new Promise(resolve => (this.#onLoaded = resolve))

  /** @param {Bus} bus @param {BrokerEvents} events @param {Denylist} list the worker's copy */
  constructor(bus, events, list) {
    this.#bus = bus
    this.#events = events
    this.#list = list
  }

  /** @param {FrameCursor} cursor of a DENIED */
  receive(cursor) {
    const { last, denials } = read(cursor)
    this.apply(denials)
    if (last) this.#onLoaded()
  }

  /** @param {Denial[]} denials */
  apply(denials) {
    const fresh = denials.filter(denial => this.#list.apply(denial))
    if (fresh.length > 0) this.#events.denied?.(fresh)
  }

  /** @type {Denials['change']} */
  change(denial) {
    return this.#bus.ask(Frame.DENY, [JSON.stringify(denial)], cursor => JSON.parse(cursor.string()))
  }
}
