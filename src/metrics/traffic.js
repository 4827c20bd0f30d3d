import { add, emptyCounts } from './merge.js'

/** @import { Connections, Counts, NamedCounter, TransportCounts } from './schema.js' */

/** @param {string | Uint8Array} message */
export const sizeOf = message => (typeof message === 'string' ? Buffer.byteLength(message) : message.length)

/** Plain numbers: updated for every message. */
export class TransportTraffic {
  inMessages = 0
  inBytes = 0
  outMessages = 0
  outBytes = 0
  connects = 0
  json = 0
  protobuf = 0

  /** @param {number} messages @param {number} bytes */
  received(messages, bytes) {
    this.inMessages += messages
    this.inBytes += bytes
  }

  /** @param {number} messages @param {number} bytes */
  sent(messages, bytes) {
    this.outMessages += messages
    this.outBytes += bytes
  }

  /** Returns `clients`. @param {number} clients @param {number} bytes of the message @param {number} [pushes] in it */
  fannedOut(clients, bytes, pushes = 1) {
    this.outMessages += clients * pushes
    this.outBytes += clients * bytes
    return clients
  }

  /** @param {{binary: boolean}} codec */
  connected({ binary }) {
    this.connects++
    if (binary) this.protobuf++
    else this.json++
  }

  /** @param {{binary: boolean}} codec */
  left({ binary }) {
    if (binary) this.protobuf--
    else this.json--
  }

  /** Since the last drain; null: nothing. @returns {TransportCounts | null} */
  drain() {
    const { connects, inMessages, inBytes, outMessages, outBytes } = this
    if (inMessages === 0 && outMessages === 0 && connects === 0) return null
    this.connects = this.inMessages = this.inBytes = this.outMessages = this.outBytes = 0
    return {
      connects,
      in: { messages: inMessages, bytes: inBytes },
      out: { messages: outMessages, bytes: outBytes },
    }
  }
}

class Counter {
  count = 0
}

/** @typedef {{accepts: number, connects: number, deliveries: number}} Totals since the start */

export class Traffic {
  /** Replaced by each drain: keep no reference. */
  counts = emptyCounts()
  /** By index of the method. */
  commands
  #methods
  /** @type {Map<string, TransportTraffic>} */
  #transports = new Map()
  /** @type {Map<string, Counter>} */
  #api = new Map()
  /** @type {Totals} */
  #before = { accepts: 0, connects: 0, deliveries: 0 }

  /** @param {readonly string[]} methods */
  constructor(methods) {
    this.#methods = methods
    this.commands = new Float64Array(methods.length)
  }

  /** @param {string} name */
  of(name) {
    let traffic = this.#transports.get(name)
    if (traffic === undefined) this.#transports.set(name, (traffic = new TransportTraffic()))
    return traffic
  }

  /** @param {string} method of the server API */
  api(method) {
    let counter = this.#api.get(method)
    if (counter === undefined) this.#api.set(method, (counter = new Counter()))
    return counter
  }

  /** @param {NamedCounter} counter @param {string | number} name a label: few values */
  add(counter, name) {
    const counts = this.counts[counter]
    counts[name] = (counts[name] ?? 0) + 1
  }

  /** @returns {Connections['by']} */
  connections() {
    /** @type {Record<string, Record<string, number>>} */
    const by = {}
    for (const [name, { json, protobuf }] of this.#transports) {
      if (json === 0 && protobuf === 0) continue
      by[name] = {}
      if (json > 0) by[name].json = json
      if (protobuf > 0) by[name].protobuf = protobuf
    }
    return by
  }

  /** Since the last drain. @param {Totals} [totals] */
  drain(totals = { accepts: 0, connects: 0, deliveries: 0 }) {
    const { counts } = this
    this.counts = emptyCounts()
    for (const [name, traffic] of this.#transports) {
      const flows = traffic.drain()
      if (flows === null) continue
      counts.transports[name] = flows
      add(counts.in, flows.in)
      add(counts.out, flows.out)
    }
    for (const name of /** @type {const} */ (['accepts', 'connects', 'deliveries']))
      counts[name] = totals[name] - this.#before[name]
    this.#before = totals
    for (const [i, method] of this.#methods.entries())
      if (this.commands[i] > 0) counts.commands[method] = this.commands[i]
    this.commands.fill(0)
    for (const [method, counter] of this.#api) {
      if (counter.count > 0) counts.api[method] = counter.count
      counter.count = 0
    }
    return counts
  }
}

/** Growth of counters between the last two calls of `roll`. */
export class CounterWindow {
  #read
  #start
  /** @type {Record<string, number> | undefined} */
  last

  /** @param {() => Record<string, number>} read */
  constructor(read) {
    this.#read = read
    this.#start = read()
  }

  roll() {
    const now = this.#read()
    this.last = Object.fromEntries(
      Object.entries(now).map(([name, count]) => [name, count - this.#start[name]]),
    )
    this.#start = now
  }
}
