/** @import { Connections, Counts, Flow, TransportCounts } from './schema.js' */

/** @param {string | Uint8Array} message @returns {number} bytes */
export const sizeOf = message => (typeof message === 'string' ? Buffer.byteLength(message) : message.length)

/** Counts of one transport. Plain numbers: they change with every message. */
export class TransportTraffic {
  inMessages = 0
  inBytes = 0
  outMessages = 0
  outBytes = 0
  connects = 0
  /** Connected clients, by codec. */
  json = 0
  protobuf = 0

  /** @param {number} messages @param {number} bytes of all of them */
  received(messages, bytes) {
    this.inMessages += messages
    this.inBytes += bytes
  }

  /** @param {number} messages @param {number} bytes of all of them */
  sent(messages, bytes) {
    this.outMessages += messages
    this.outBytes += bytes
  }

  /**
   * One message to many.
   * @param {number} clients @param {number} bytes of the message @param {number} [pushes] in it
   * @returns {number} `clients`
   */
  fannedOut(clients, bytes, pushes = 1) {
    this.outMessages += clients * pushes
    this.outBytes += clients * bytes
    return clients
  }

  /** @param {{binary: boolean}} codec of the client */
  connected({ binary }) {
    this.connects++
    if (binary) this.protobuf++
    else this.json++
  }

  /** @param {{binary: boolean}} codec of the client */
  left({ binary }) {
    if (binary) this.protobuf--
    else this.json--
  }

  /** @returns {TransportCounts | null} since the last drain; null if nothing happened */
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

/** Counts by name or code, for events rarer than messages. */
class Tally {
  /** @type {Map<string | number, number>} */
  #counts = new Map()

  /** @param {string | number} name */
  add(name) {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** @returns {Record<string, number>} since the last drain */
  drain() {
    const counts = Object.fromEntries(this.#counts)
    this.#counts.clear()
    return counts
  }
}

/**
 * Codes of the protocols end below; beyond, an application may use any number, and each would be a label of a metric.
 */
const CODES_END = 5000

/** Counts by code. */
class CodeTally extends Tally {
  /** @param {number} code */
  add(code) {
    super.add(code < CODES_END ? code : 'other')
  }
}

class Counter {
  count = 0
}

/** @typedef {{accepts: number, connects: number, deliveries: number}} Totals counted by other parts since the start */

/** Counts of one worker. */
export class Traffic {
  publishes = 0
  /** Subscriptions that requested recovery, by success. */
  recovered = 0
  unrecovered = 0
  /** Client commands, by index of the method. */
  commands
  /** Error replies, by code; `other`: 5000 and more. */
  errors = new CodeTally()
  /** Closed connections, by code. */
  closes = new Tally()
  /** Subscriptions ended by the server, by code. */
  unsubscribes = new Tally()
  /** Errors of the server API, by code. */
  apiErrors = new Tally()
  /** Clients turned away, by reason. */
  refusals = new Tally()
  #methods
  /** @type {Map<string, TransportTraffic>} */
  #transports = new Map()
  /** @type {Map<string, Counter>} */
  #api = new Map()
  /** @type {Totals} */
  #before = { accepts: 0, connects: 0, deliveries: 0 }

  /** @param {readonly string[]} methods of clients */
  constructor(methods) {
    this.#methods = methods
    this.commands = new Float64Array(methods.length)
  }

  /** @param {string} name of a transport @returns {TransportTraffic} always the same one */
  of(name) {
    let traffic = this.#transports.get(name)
    if (traffic === undefined) this.#transports.set(name, (traffic = new TransportTraffic()))
    return traffic
  }

  /** @param {string} method of the server API @returns {Counter} of its calls; always the same one */
  api(method) {
    let counter = this.#api.get(method)
    if (counter === undefined) this.#api.set(method, (counter = new Counter()))
    return counter
  }

  /** @returns {Connections['by']} connected clients now */
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

  /** @param {Totals} totals @returns {Omit<Counts, 'hooks' | 'batches'>} since the last drain */
  drain(totals) {
    /** @type {Counts['transports']} */
    const transports = {}
    const into = { messages: 0, bytes: 0 }
    const out = { messages: 0, bytes: 0 }
    for (const [name, traffic] of this.#transports) {
      const flows = traffic.drain()
      if (flows === null) continue
      transports[name] = flows
      into.messages += flows.in.messages
      into.bytes += flows.in.bytes
      out.messages += flows.out.messages
      out.bytes += flows.out.bytes
    }
    const before = this.#before
    this.#before = totals
    const { publishes, recovered, unrecovered } = this
    this.publishes = this.recovered = this.unrecovered = 0
    return {
      accepts: totals.accepts - before.accepts,
      connects: totals.connects - before.connects,
      in: into,
      out,
      transports,
      publishes,
      deliveries: totals.deliveries - before.deliveries,
      commands: this.#drainCommands(),
      errors: this.errors.drain(),
      closes: this.closes.drain(),
      unsubscribes: this.unsubscribes.drain(),
      recoveries: { recovered, failed: unrecovered },
      api: this.#drainApi(),
      api_errors: this.apiErrors.drain(),
      refusals: this.refusals.drain(),
    }
  }

  #drainCommands() {
    /** @type {Record<string, number>} */
    const counts = {}
    for (let i = 0; i < this.#methods.length; i++) {
      if (this.commands[i] > 0) counts[this.#methods[i]] = this.commands[i]
    }
    this.commands.fill(0)
    return counts
  }

  #drainApi() {
    /** @type {Record<string, number>} */
    const counts = {}
    for (const [method, counter] of this.#api) {
      if (counter.count > 0) counts[method] = counter.count
      counter.count = 0
    }
    return counts
  }
}

/** Growth of counters over the last complete window; windows are ended by `roll`. */
export class CounterWindow {
  #read
  #start
  /** @type {Record<string, number> | undefined} undefined until the first window has passed */
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
