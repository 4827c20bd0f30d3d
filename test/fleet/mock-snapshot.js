// Made-up snapshots of a fleet.

import { SETTINGS } from '../../fleet/settings.js'
import { addCounters, zeroCounters } from '../../fleet/statistics/counters.js'
import { Distribution, Distributions } from '../../fleet/statistics/distribution.js'

/** @import { Counters, DroneRow, FleetSnapshot } from '../../fleet/schema.js' */

/** @param {number} seed @returns {() => number} 0 to 1, the same ones each time (mulberry32) */
function random(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Log-normal, with a tail. @param {() => number} next @param {number} median ms @param {number} times of each of 200 */
function durations(next, median, times) {
  const distribution = new Distribution()
  if (times > 0)
    for (let i = 0; i < 200; i++) {
      const normal = Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next())
      distribution.record(median * Math.exp(0.6 * normal) * (i % 50 === 0 ? 12 : 1), times)
    }
  return distribution.toWire()
}

/** @param {number} n @param {number} parts @param {number} index */
const share = (n, parts, index) => Math.floor((n * (index + 1)) / parts) - Math.floor((n * index) / parts)

const REGIONS = ['eu-west-1', 'us-east-1', 'ap-southeast-2']

/** @returns {FleetSnapshot[]} one a second: a ramp of `ramp` s to `n` connections, then messages, each to ten subscribers */
export function mockSnapshots({
  drones = 4,
  seconds = 60,
  n = 100_000,
  ramp = 40,
  publish = 2000,
  counters = /** @type {Partial<Counters>} */ ({}),
  faults = /** @type {Record<string, number>} */ ({}),
  states = /** @type {Record<string, DroneRow['state']>} */ ({}),
  provider = /** @type {'local' | 'ec2'} */ ('local'),
  time = Date.UTC(2026, 0, 5, 13, 0, 0),
  seed = 1,
} = {}) {
  const next = random(seed)
  const began = time - (seconds + 5) * 1000
  /** @type {FleetSnapshot['events']} */
  const events = [{ time: began + 2000, level: 'info', text: `${drones} drones are up` }]
  if (Object.keys(faults).length > 0)
    events.push({ time: time - 20_000, level: 'warn', text: 'd2: a process exited and was replaced' })
  return Array.from({ length: seconds }, (_, at) => {
    const now = time - (seconds - 1 - at) * 1000
    const open = Math.min(n, Math.round((n * (at + 1)) / ramp))
    const opened = open - Math.min(n, Math.round((n * at) / ramp))
    const published = open === n ? publish : 0
    const rows = Array.from({ length: drones }, (_, index) =>
      droneRow({ index, drones, n, open, opened, published, at, now, provider, states, next }),
    )
    const all = addCounters(zeroCounters(), { ...zeroCounters(), ...counters })
    for (const { sample } of rows) if (sample !== null) addCounters(all, sample.counters)
    const received = published * 10
    const past = Math.max(0, at - ramp + 2)
    return {
      time: now,
      run: 'r-7f3a90',
      provider,
      began,
      settings: settingsOf(n, publish),
      ramp: at + 1 < ramp ? { from: 0, to: n, began, ends: time - (seconds - ramp) * 1000 } : null,
      drones: rows,
      gauges: { wanted: Math.min(n, Math.round((n * (at + 2)) / ramp)), opening: opened > 0 ? 500 : 0, open },
      counters: all,
      rates: ratesOf(opened, received, published, opened * 200),
      faults,
      latency: durations(next, 1.8, published > 0 ? past * 100 : 0),
      latencyNow: durations(next, 1.6, published > 0 ? 500 : 0),
      probe: durations(next, 1.2, published > 0 ? past * 25 : 0),
      connect: durations(next, 14, Math.ceil(open / 200)),
      answer: durations(next, 2.2, published > 0 ? past * 10 : 0),
      events,
    }
  })
}

/** @param {number} n @param {number} publish @returns {import('../../fleet/schema.js').FleetSettings} */
const settingsOf = (n, publish) => ({
  .../** @type {any} */ (Object.fromEntries(SETTINGS.map(({ name, default: value }) => [name, value]))),
  n,
  host: ['http://127.0.0.1:8000'],
  channels: ['g:{group 10}'],
  publish_rate: publish,
  publish_channels: ['g:{1..10000}'],
})

/** @param {number} opened @param {number} received @param {number} published @param {number} [more] bytes sent */
const ratesOf = (opened, received, published, more = 0) => ({
  ...{ opened, failed: 0, ended: 0, received, published },
  ...{ bytesIn: received * 560, bytesOut: published * 600 + more },
})

/** @returns {DroneRow} @param {any} about */
function droneRow({ index, drones, n, open, opened, published, at, now, provider, states, next }) {
  const id = `d${index + 1}`
  const state = states[id] ?? 'up'
  const where = provider === 'local' ? 'local' : REGIONS[index % REGIONS.length]
  const handle = provider === 'local' ? `${40_000 + index}` : `i-0${(0xabc123 + index).toString(16)}f9e8d7c6`
  const mine = share(open, drones, index)
  const received = share(published * 10, drones, index)
  const publishing = index === 0 ? published : 0
  const processes = Math.max(1, Math.ceil(share(n, drones, index) / 18_000))
  const base = 44 * 2 ** 20
  /** @type {DroneRow} */
  const row = {
    id,
    where,
    handle,
    state,
    facts: {
      hostname: `host-${index + 1}`,
      bootId: 'b',
      node: 'v20.19.0',
      system: 'Linux 6.1.0 x64',
      cores: 2,
      memory: 4 * 2 ** 30,
      files: 1_048_576,
      capacity: 120_000,
      pid: 40_000 + index,
    },
    sample: {
      at: now,
      up: (at + 4) * 1000,
      revision: 3,
      exits: index === 1 ? 1 : 0,
      gauges: { wanted: share(n, drones, index), opening: opened > 0 ? 100 : 0, open: mine },
      counters: {
        ...zeroCounters(),
        opened: mine,
        pings: mine * Math.floor(at / 20),
        received: received * Math.max(0, at - 38),
        published: publishing * Math.max(0, at - 38),
        failed: index === 1 ? 17 : 0,
        bytesIn: received * 560,
        bytesOut: publishing * 600,
      },
      ...new Distributions().toWire(),
      faults: index === 1 ? { ECONNREFUSED: 17 } : {},
      clock: { offset: (index - 1) * 0.41, error: 0.08 + index * 0.01, against: 'gateway' },
      processes: [
        {
          pid: 40_000 + index,
          role: 'agent',
          connections: 0,
          cpu: 900,
          rss: base,
          private: base / 2,
          base: base / 2,
        },
        ...Array.from({ length: processes }, (_, child) => ({
          pid: 50_000 + index * 10 + child,
          role: /** @type {const} */ ('connections'),
          connections: share(mine, processes, child),
          cpu: 1200 + at * 400,
          rss: base + share(mine, processes, child) * 3300,
          private: base / 2 + share(mine, processes, child) * 3100,
          base: base / 2,
        })),
      ],
      machine: {
        cores: 2,
        cpuBusy: at * 900,
        memory: 4 * 2 ** 30,
        memoryFree: 2.6 * 2 ** 30,
        netIn: at * 12e6,
        netOut: at * 3e6,
        tcpMemory: mine * 800,
        sockets: mine + 12,
        timeWait: 40,
      },
    },
    rates: ratesOf(share(opened, drones, index), received, publishing),
    p99: received > 0 ? 3 + next() * 4 : 0,
    cpu: 0.2 + next() * 0.3,
    bytesPerConnection: mine > 1000 ? 3000 + next() * 300 : 0,
    restarts: index === 2 ? 1 : 0,
  }
  return state === 'launching'
    ? { ...row, facts: null, sample: null, p99: 0, cpu: 0, bytesPerConnection: 0 }
    : row
}
