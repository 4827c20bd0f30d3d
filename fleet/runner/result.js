// The result of a run: `result.json`. Durations are ms and sizes bytes unless a name says otherwise; CPU is in per
// cent of a core, as in the gateway's CSV. `null`: unknown.

import { COUNTERS } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @typedef {import('../schema.js').Counters} Counters */

/** Incremented when a field changes its meaning. */
export const RESULT_SCHEMA = 1

/**
 * @typedef {object} RunResult
 * @property {'halley-fleet-run'} type
 * @property {number} schema
 * @property {string} scenario
 * @property {string} run id of the fleet's run
 * @property {number} started Unix ms
 * @property {number} ended Unix ms
 * @property {boolean} partial it was interrupted
 * @property {number} scale
 * @property {string} load in words
 * @property {string} server `halley`, `embedded`, the name of a control, or `target`
 * @property {string} target URLs
 * @property {boolean} ownGateway it was started for the run
 * @property {string} provider
 * @property {{halley: string, node: string, drones: string[]}} versions `drones`: of Node.js
 * @property {MachineFacts} machine the runner's
 * @property {Record<string, any>} overrides settings given with --set
 * @property {import('../scenarios/contract.js').GatewayPlan | null} plan of the gateway
 * @property {{source: string, machine: string, load: string, scaled: string} | null} published
 * @property {{label: string, value: string, note: string, ours: string}[]} comparison
 * @property {string[]} differs sentences
 * @property {string[]} notes deviations from the plan, in sentences
 * @property {StepResult[]} steps
 * @property {Accounting} accounting of the whole run
 * @property {GatewayResult | null} gateway
 * @property {{limit: string, asked: string, step: string, ours: string, broken: boolean}[]} limits
 * @property {{time: number, level: string, text: string}[]} events
 * @typedef {object} MachineFacts
 * @property {string} system
 * @property {string} cpu model
 * @property {number} cores
 * @property {number} memory
 * @property {number} files maximum open files of a process
 * @property {Record<string, string>} kernel relevant settings, by name
 * @typedef {object} StepResult
 * @property {string} name
 * @property {number} began Unix ms, of the measurement
 * @property {number} ended
 * @property {number} seconds
 * @property {boolean} partial
 * @property {boolean} recover subscriptions requested recovery
 * @property {number} publishRate requested, per second
 * @property {{wanted: number, open: number, least: number}} connections `least`: in the worst measured second
 * @property {{seconds: number, opened: number, peak: number, mean: number}} ramp connections per second
 * @property {number} received publications per second, mean
 * @property {number} published per second, mean
 * @property {number} pings per second, mean
 * @property {number} bytesIn per second, mean
 * @property {number} bytesOut
 * @property {Latency} latency all messages
 * @property {Latency} probe messages published on the machine that received them: one clock
 * @property {Latency} connect from the attempt to the ready connection, during the ramp
 * @property {Latency} answer from the intended time of publishing to the target's confirmation
 * @property {Accounting} accounting
 * @property {{error: number, against: 'gateway' | 'none' | 'same machine'}} clock bound of the clocks' error, ms
 * @property {DroneResult[]} drones
 * @property {StepGateway | null} gateway from its CSV file
 * @property {StepServer | null} server from /proc; null: the run has not started it
 * @property {{at: number, text: string, left: boolean, forgotten: number}[]} disturbances `at`: s from the beginning of
 *   the measurement; `left`: connections left on request, which disturbs no other; `forgotten`: subscriptions whose
 *   history was destroyed, so that the gateway must report them as not recovered
 * @typedef {object} Latency
 * @property {number} count
 * @property {number} min
 * @property {number} mean
 * @property {number} max
 * @property {number} deviation
 * @property {{low: number, high: number}} mean90 90 % confidence interval of the mean
 * @property {{low: number, high: number}} mean95
 * @property {number} p50
 * @property {number} p90
 * @property {number} p99
 * @property {number} p999
 * @property {import('../schema.js').DistributionWire} wire the histogram
 * @typedef {Omit<Counters, 'gaps' | 'bytesIn' | 'bytesOut'> & {expected: number, unknown: number}} Accounting `lost`:
 *   in gaps, and at the end; `expected`: sum over all subscriptions at the end, 0: nothing was published; `unknown`:
 *   subscriptions without a verdict
 * @typedef {object} DroneResult
 * @property {string} id
 * @property {string} where
 * @property {number} connections
 * @property {number} processes
 * @property {number} cpu % of a core, all its processes together
 * @property {number} memory bytes of all its processes
 * @property {number} bytesPerConnection user space, beyond a process without connections; 0: too few to measure
 * @property {number} p99 ms
 * @property {number} clockError ms
 * @typedef {object} StepServer all processes of the server
 * @property {number} cpu % of a core, without Redis
 * @property {number | null} redisCpu % of a core; null: the run has not started one
 * @property {number | null} connectCpu us of processor time for each connection opened in the ramp
 * @property {number | null} connection bytes of user space for each connection; null: not an idle step
 * @property {number | null} base bytes of user space before the first connection
 * @typedef {object} StepGateway means over the measured seconds
 * @property {number} cpu
 * @property {number} cpuPeak
 * @property {number} machineCpu % of a core: 200 are two cores
 * @property {{average: number, p90: number, max: number}} ticks ms
 * @property {number} rss
 * @property {number} connections
 * @property {number} messagesOut per second
 * @property {number} tcpMemory of the machine
 * @property {number} slab of the machine
 * @property {number} sockets TCP, of the machine
 * @typedef {object} GatewayResult
 * @property {Record<string, string>} facts from its CSV file
 * @property {{heap: number | null, native: number | null, user: number | null, kernel: number | null}} connection
 *   bytes
 * @property {number} workerDeaths
 * @property {number} listenOverflows
 */

/** Counters that an accounting contains unchanged. */
const COUNTED = /** @type {Exclude<keyof Accounting, 'expected' | 'unknown'>[]} */ (
  COUNTERS.filter(name => !['gaps', 'bytesIn', 'bytesOut'].includes(name))
)

/** @param {import('../schema.js').DistributionWire} wire @returns {Latency} */
export function latencyOf(wire) {
  const all = Distribution.from(wire)
  const finite = (/** @type {number} */ value) => (Number.isFinite(value) ? value : 0)
  const interval = (/** @type {{low: number, high: number}} */ { low, high }) => ({
    low: finite(low),
    high: finite(high),
  })
  return {
    count: all.count,
    min: finite(all.min),
    mean: finite(all.mean),
    max: finite(all.max),
    deviation: finite(all.deviation),
    mean90: interval(all.confidence(0.9)),
    mean95: interval(all.confidence(0.95)),
    p50: finite(all.percentile(50)),
    p90: finite(all.percentile(90)),
    p99: finite(all.percentile(99)),
    p999: finite(all.percentile(99.9)),
    wire,
  }
}

/** @returns {Accounting} */
export const noAccounting = () =>
  /** @type {any} */ ({ expected: 0, unknown: 0, ...Object.fromEntries(COUNTED.map(name => [name, 0])) })

/**
 * @param {Counters} now @param {Counters} before
 * @param {import('../schema.js').Reckoning | null} reckoning of the publishers that began since
 * @returns {Accounting} of the time between; at least 0, since messages lost before may have arrived late
 */
export function accountingOf(now, before, reckoning) {
  const sums = noAccounting()
  for (const name of COUNTED) sums[name] = Math.max(0, now[name] - before[name])
  sums.expected = reckoning?.expected ?? 0
  // A subscription that lost its last messages sees no gap: only the ledgers show it.
  sums.lost += reckoning?.lost ?? 0
  sums.unknown = reckoning?.unknown ?? 0
  return sums
}

/**
 * Whether every message that was due was received, lost or missed.
 * @param {Accounting} accounting
 */
export const isBalanced = ({ expected, received, duplicates, lost, missed, unknown }) =>
  unknown > 0 || received - duplicates + lost + missed === expected

/** @param {Accounting[]} parts @returns {Accounting} their sum */
export function accountingSum(parts) {
  const sums = noAccounting()
  for (const name of /** @type {(keyof Accounting)[]} */ (Object.keys(sums)))
    sums[name] = parts.reduce((sum, part) => sum + part[name], 0)
  return sums
}

/** Whether nothing disturbed the steps. @param {Pick<StepResult, 'disturbances'>[]} steps */
export const areCalm = steps => steps.every(({ disturbances }) => disturbances.every(({ left }) => left))

/** Subscriptions whose history was destroyed on purpose. @param {Pick<StepResult, 'disturbances'>[]} steps */
export const forgottenIn = steps =>
  steps.reduce(
    (sum, { disturbances }) => sum + disturbances.reduce((own, { forgotten = 0 }) => own + forgotten, 0),
    0,
  )

/**
 * The rule of `--no-loss`: without disturbances no connection may end and no subscription may be refused temporarily;
 * with recovery nothing may be missed while a connection was away. Where history was destroyed, each of its
 * subscriptions may be reported as not recovered once; what such a subscription missed was declared, not lost.
 * @param {Accounting} accounting @param {Pick<StepResult, 'disturbances' | 'recover'>[]} steps that it covers
 * @returns {{name: string, count: number}[]} counts above 0
 */
export function losses(accounting, steps) {
  const recover = steps.every(step => step.recover)
  const forgotten = forgottenIn(steps)
  const names = /** @type {(keyof Accounting)[]} */ ([
    ...['lost', 'unknown', 'duplicates', 'disordered', 'damaged', 'unrecovered'],
    ...(areCalm(steps) ? ['refused', 'ended'] : []),
    ...(recover && forgotten === 0 ? ['missed'] : []),
  ])
  return names
    .map(name => ({ name, count: accounting[name] - (name === 'unrecovered' ? forgotten : 0) }))
    .filter(({ count }) => count > 0)
}

/** @param {string} text of a result.json @returns {RunResult} @throws {Error} one line */
export function parseResult(text) {
  let result
  try {
    result = JSON.parse(text)
  } catch {
    throw new Error('not valid JSON')
  }
  if (result?.type !== 'halley-fleet-run') throw new Error('not the result of a run')
  if (result.schema !== RESULT_SCHEMA)
    throw new Error(`schema ${result.schema} is not supported by this version, which reads ${RESULT_SCHEMA}`)
  return result
}

// Differences between two snapshots.

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../schema.js').DroneRow} DroneRow */

/** @param {DroneRow} row @returns {number} ms of processor time of its current processes */
const cpuOf = ({ sample }) => (sample?.processes ?? []).reduce((sum, { cpu }) => sum + cpu, 0)

/** @param {FleetSnapshot} first @param {FleetSnapshot} last @returns {DroneResult[]} */
function droneResults(first, last) {
  return last.drones.map(row => {
    const before = first.drones.find(({ id }) => id === row.id)
    const { sample } = row
    const elapsed = (sample?.at ?? 0) - (before?.sample?.at ?? 0)
    const used = before ? cpuOf(row) - cpuOf(before) : 0
    return {
      id: row.id,
      where: row.where,
      connections: sample?.gauges.open ?? 0,
      processes: sample?.processes.length ?? 0,
      // The processor time of a process that died is missing.
      cpu:
        elapsed > 0 && used >= 0 && before?.restarts === row.restarts
          ? (used / elapsed) * 100
          : row.cpu * 100,
      memory: (sample?.processes ?? []).reduce((sum, process) => sum + process.private, 0),
      bytesPerConnection: row.bytesPerConnection,
      p99: row.p99,
      clockError: sample?.clock.error ?? 0,
    }
  })
}

/** @param {FleetSnapshot} snapshot @returns {StepResult['clock']} publisher's and receiver's errors add up */
function clockOf({ drones, latency, probe }) {
  if (latency.count === probe.count) return { error: 0, against: 'same machine' }
  const clocks = drones.map(({ sample }) => sample?.clock).filter(clock => clock !== undefined)
  const unknown = clocks.some(({ against }) => against === 'none')
  return {
    error: unknown ? 0 : 2 * Math.max(0, ...clocks.map(({ error }) => error)),
    against: unknown ? 'none' : 'gateway',
  }
}

/**
 * @param {object} options @param {string} options.name @param {FleetSnapshot} options.first
 * @param {FleetSnapshot} options.last
 * @param {number} options.least open connections in the worst second before any were to leave
 * @param {StepResult['ramp']} options.ramp @param {import('../schema.js').DistributionWire} options.connect
 * @param {boolean} options.partial @param {boolean} options.recover @param {number} options.publishRate
 * @returns {StepResult} its accounting is added at the end of the step, its gateway at the end of the run
 */
export function measured({ name, first, last, least, ramp, connect, partial, recover, publishRate }) {
  const seconds = Math.max(0.001, (last.time - first.time) / 1000)
  const rate = (/** @type {'received' | 'published' | 'pings' | 'bytesIn' | 'bytesOut'} */ counter) =>
    Math.max(0, last.counters[counter] - first.counters[counter]) / seconds
  return {
    name,
    began: first.time,
    ended: last.time,
    seconds,
    partial,
    recover,
    publishRate,
    connections: { wanted: last.gauges.wanted, open: last.gauges.open, least },
    ramp,
    received: rate('received'),
    published: rate('published'),
    pings: rate('pings'),
    bytesIn: rate('bytesIn'),
    bytesOut: rate('bytesOut'),
    latency: latencyOf(last.latency),
    probe: latencyOf(last.probe),
    connect: latencyOf(connect),
    answer: latencyOf(last.answer),
    accounting: noAccounting(),
    clock: clockOf(last),
    drones: droneResults(first, last),
    gateway: null,
    server: null,
    disturbances: [],
  }
}
