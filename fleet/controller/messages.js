// Validates drones' messages: a drone of another version, or another peer with the secret, must not crash the
// controller.

import {
  ledger,
  listOf,
  mapOf,
  matching,
  number,
  object,
  oneOf,
  orNull,
  shape,
  text,
  whole,
} from '../link/shape.js'
import { COUNTERS } from '../statistics/counters.js'

/** @import { Shape } from '../link/shape.js' */

const BUCKETS = 1664
const name = matching(/^[\w.-]{1,64}$/, 'a short name')
const signed = number(-1e15)

const hello = object({
  id: name,
  run: name,
  start: text(100, 1),
  version: text(100),
  facts: object({
    hostname: text(),
    bootId: text(),
    node: text(100),
    system: text(),
    cores: whole(1, 1e5),
    memory: number(),
    files: number(),
    capacity: whole(0, 1e9),
    pid: whole(1),
  }),
})

const buckets = shape(
  value =>
    Array.isArray(value) &&
    value.length <= 2 * BUCKETS &&
    value.length % 2 === 0 &&
    value.every((n, i) => Number.isInteger(n) && n >= 0 && (i % 2 === 1 || n < BUCKETS)),
  `pairs of a bucket below ${BUCKETS} and a count`,
)
const distribution = object({
  count: whole(),
  min: signed,
  max: signed,
  mean: signed,
  m2: number(0, Number.MAX_VALUE),
  buckets,
})

const sample = object({
  gauges: object({ wanted: whole(), opening: whole(), open: whole() }),
  counters: object(Object.fromEntries(COUNTERS.map(counted => [counted, signed]))),
  latency: distribution,
  probe: distribution,
  connect: distribution,
  answer: distribution,
  faults: mapOf(whole(), 100),
  clock: object({ offset: signed, error: number(), against: oneOf('gateway', 'none') }),
  at: number(),
  up: number(),
  revision: whole(),
  exits: whole(),
  processes: listOf(
    object({
      pid: whole(1),
      role: oneOf('agent', 'connections', 'publisher'),
      connections: whole(),
      cpu: number(),
      rss: number(),
      private: number(),
      base: number(),
    }),
    10_000,
  ),
  machine: orNull(
    object({
      cores: whole(1, 1e5),
      cpuBusy: number(),
      memory: number(),
      memoryFree: number(),
      netIn: number(),
      netOut: number(),
      tcpMemory: number(),
      sockets: number(),
      timeWait: number(),
    }),
  ),
})

/** @type {Record<string, Shape>} */
const MESSAGES = {
  hello,
  sample: object({ sample }),
  // A machine without a drone requests the program.
  program: object({ id: name, run: name, ask: whole(1) }),
  event: object({ level: oneOf('info', 'warn', 'error'), text: text(10_000) }),
}

/** @param {any} message an object @returns {any} the same */
export function checkMessage(message) {
  const { type } = message
  if (typeof type !== 'string' || !Object.hasOwn(MESSAGES, type))
    throw new Error(`unknown message ${JSON.stringify(type)?.slice(0, 50)} from a drone`)
  MESSAGES[type](message, type)
  return message
}

const nothing = object({})

/** Results of requests. @type {Record<string, Shape>} */
const RESULTS = {
  settings: nothing,
  cut: object({ cut: whole() }),
  ledgers: listOf(ledger),
  reconcile: object({ expected: whole(), lost: whole(), unknown: whole() }),
  restart: nothing,
  stop: nothing,
}

/** @param {string} type of the request @param {any} result of a drone @returns {any} the same */
export function checkResult(type, result) {
  RESULTS[type](result, `the reply to ${type}`)
  return result
}
