// The result of a run: `result.json`. Durations are ms and sizes bytes unless a name says otherwise; CPU is in per
// cent of a core, as in the gateway's CSV. `null`: unknown.

import { COUNTERS } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @import { GatewayPlan } from '../scenarios/contract.js' */
/** @import { Counters, DistributionWire, DroneRow, FleetSnapshot, Reconciliation } from '../schema.js' */
/** @import { Figures } from './figures.js' */

/** Incremented when a field changes its meaning. */
export const RESULT_SCHEMA = 1

/**
 * @typedef {Record<'schema' | 'started' | 'ended' | 'scale', number> & Record<'scenario' | 'run' | 'load' | 'server' |
 *   'target' | 'provider', string> & RunParts} RunResult `run`: id of the fleet's run; `load`: in words; `server`:
 *   `halley`, `embedded`, the name of a control, or `target`
 * @typedef {object} RunParts
 * @property {'halley-fleet-run'} type
 * @property {boolean} partial it was interrupted
 * @property {boolean} ownGateway started for the run
 * @property {{halley: string, node: string, drones: string[]}} versions `drones`: of Node.js
 * @property {MachineFacts} machine the runner's
 * @property {Record<string, any>} overrides settings given with --set
 * @property {GatewayPlan | null} plan
 * @property {{source: string, machine: string, load: string, scaled: string} | null} published
 * @property {{label: string, value: string, note: string, ours: string}[]} comparison
 * @property {string[]} differs sentences
 * @property {string[]} notes deviations from the plan, in sentences
 * @property {StepResult[]} steps
 * @property {Accounting} accounting of the whole run
 * @property {GatewayResult | null} gateway
 * @property {{limit: string, asked: string, step: string, ours: string, broken: boolean}[]} limits
 * @property {{time: number, level: string, text: string}[]} events
 * @typedef {{system: string, cpu: string, cores: number, memory: number, files: number, kernel: Record<string, string>}}
 *   MachineFacts `files`: maximum open files of a process; `kernel`: relevant settings
 * @typedef {StepFigures & Record<'began' | 'ended' | 'seconds' | 'publishRate' | 'received' | 'published' | 'reopened' |
 *   'pings' | 'bytesIn' | 'bytesOut', number> & Record<'latency' | 'probe' | 'connect' | 'answer', Latency>} StepResult
 *   rates are means per second; `publishRate`: requested; `probe`: messages published on the machine that received
 *   them; `connect`: from the attempt to the ready connection, during the ramp; `answer`: from the intended time of
 *   publishing to the target's confirmation
 * @typedef {object} StepFigures
 * @property {string} name
 * @property {boolean} partial
 * @property {boolean} recover subscriptions requested recovery
 * @property {{wanted: number, open: number, min: number}} connections `min`: in the worst measured second
 * @property {{seconds: number, opened: number, peak: number, mean: number}} ramp connections per second
 * @property {Accounting} accounting
 * @property {{error: number, against: 'gateway' | 'none' | 'same machine'}} clock bound of the clocks' error, ms
 * @property {DroneResult[]} drones
 * @property {StepGateway | null} gateway from its CSV file
 * @property {StepServer | null} server from /proc; null: not started by the run
 * @property {Figures} figures of disturbances and of the scenario
 * @property {{at: number, text: string, left: boolean, forgotten: number}[]} disturbances `at`: s from the beginning of
 *   the measurement; `left`: connections closed on purpose; `forgotten`: subscriptions whose history was
 *   destroyed: the gateway must report them as not recovered
 * @typedef {Record<'count' | 'min' | 'mean' | 'max' | 'deviation' | 'p50' | 'p90' | 'p99' | 'p999', number> &
 *   Record<'mean90' | 'mean95', {low: number, high: number}> & {wire: DistributionWire}} Latency `mean90`: 90 %
 *   confidence interval of the mean
 * @typedef {Omit<Counters, 'gaps' | 'bytesIn' | 'bytesOut'> & {expected: number, unknown: number}} Accounting `lost`:
 *   in gaps, and at the end; `expected`: sum over all subscriptions at the end, 0: nothing was published; `unknown`:
 *   subscriptions without a verdict
 * @typedef {{id: string, where: string} & Record<'connections' | 'processes' | 'cpu' | 'memory' | 'bytesPerConnection' |
 *   'p99' | 'clockError', number>} DroneResult `cpu`, `memory`: of all processes; `bytesPerConnection`: user space
 *   above that of an idle process, 0: too few to measure
 * @typedef {{cpu: number, parts: Record<string, number>} & Record<'redisCpu' | 'connectCpu' | 'redisConnectCpu' |
 *   'connection' | 'memory' | 'redisMemory' | 'base', number | null>} StepServer all processes of the server, without
 *   Redis; `parts`: CPU of each part; `connectCpu`: us for each connection opened in the ramp; `connection`: bytes of
 *   user space for each, null: not an idle step; `base`: memory before the first connection
 * @typedef {Record<'cpu' | 'cpuPeak' | 'machineCpu' | 'gc' | 'heapUsed' | 'heapTotal' | 'rss' | 'connections' |
 *   'messagesOut' | 'tcpMemory' | 'slab' | 'sockets', number> & {ticks: Record<'average' | 'p90' | 'max' | 'opening',
 *   number>}} StepGateway means over the measured seconds; `opening`: the longest tick during the ramp; `gc`,
 *   `messagesOut`: per second; `tcpMemory`, `slab`, `sockets`: of the machine
 * @typedef {{facts: Record<string, string>, connection: Record<'heap' | 'native' | 'user' | 'kernel', number | null>,
 *   workerExits: number, listenOverflows: number}} GatewayResult from its CSV file
 */

const COUNTED = /** @type {Exclude<keyof Accounting, 'expected' | 'unknown'>[]} */ (
  COUNTERS.filter(name => !['gaps', 'bytesIn', 'bytesOut'].includes(name))
)

/** @param {DistributionWire} wire @returns {Latency} */
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
 * @param {Counters} now @param {Counters} before @param {Reconciliation | null} reconciliation of the publishers started since
 * @returns {Accounting} differences, at least 0: earlier lost messages may arrive late
 */
export function accountingOf(now, before, reconciliation) {
  const sums = noAccounting()
  for (const name of COUNTED) sums[name] = Math.max(0, now[name] - before[name])
  sums.expected = reconciliation?.expected ?? 0
  // The loss of the last messages leaves no gap: only the ledgers show it.
  sums.lost += reconciliation?.lost ?? 0
  sums.unknown = reconciliation?.unknown ?? 0
  return sums
}

/** Whether every expected message was received, lost or missed. @param {Accounting} accounting */
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
 * The rule of `--no-loss`. Without disturbances no connection may end and no subscription may be refused; with recovery
 * nothing may be missed. Each subscription whose history was destroyed may be reported as not recovered once: its
 * missed messages are declared, not lost.
 * @param {Accounting} accounting @param {Pick<StepResult, 'disturbances' | 'recover'>[]} steps covered
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

/** @param {string} text of a result.json @returns {RunResult} */
export function parseResult(text) {
  let result
  try {
    result = JSON.parse(text)
  } catch {
    throw new Error('not valid JSON')
  }
  if (result?.type !== 'halley-fleet-run') throw new Error('not a run result')
  if (result.schema !== RESULT_SCHEMA)
    throw new Error(`unsupported schema ${result.schema}; this version reads ${RESULT_SCHEMA}`)
  return result
}

/** @param {DroneRow} row @returns {number} CPU time of its current processes, ms */
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
      // The CPU time of exited processes is missing.
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
 * @param {Pick<StepResult, 'name' | 'ramp' | 'partial' | 'recover' | 'publishRate'> & {first: FleetSnapshot, last:
 *   FleetSnapshot, minOpen: number, connect: DistributionWire}} options `minOpen`: minimum open connections
 *   before a `leave`
 * @returns {StepResult} the accounting is added at the end of the step, `gateway` at the end of the run
 */
export function measured({ name, first, last, minOpen, ramp, connect, partial, recover, publishRate }) {
  const seconds = Math.max(0.001, (last.time - first.time) / 1000)
  const rate = (/** @type {keyof Counters} */ counter) =>
    Math.max(0, last.counters[counter] - first.counters[counter]) / seconds
  return {
    name,
    began: first.time,
    ended: last.time,
    seconds,
    partial,
    recover,
    publishRate,
    connections: { wanted: last.gauges.wanted, open: last.gauges.open, min: minOpen },
    ramp,
    received: rate('received'),
    published: rate('published'),
    reopened: rate('opened'),
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
    figures: {},
    disturbances: [],
  }
}
