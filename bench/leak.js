// Looks for leaks: sessions over every transport start and end; heap and resident memory of each process must not grow.

import { setTimeout as sleep } from 'node:timers/promises'
import { rounded } from '../fleet/runner/table.js'
import { CHURN_CONFIG, Churn } from './churn.js'
import { parseFlags, UsageError } from './flags.js'
import { printResult, ServerRun } from './servers.js'

/** @typedef {import('../src/metrics/schema.js').Snapshot} Snapshot */

const DEFAULTS = { minutes: 60, rate: 10, visitors: 24, workers: 2, window: 10 }
/** Several collections in each window: the minimum of a window is that of live objects. */
const GC_INTERVAL_MS = 2000
/** Share of the run in which caches and pools may still fill. */
const WARM_UP_SHARE = 1 / 3
/** The primary keeps figures and idempotency keys for five minutes. */
const MIN_WARM_UP_HOURS = 0.1
const MIN_MINUTES = 10
/** Points that a trend needs. */
const MIN_WINDOWS = 6
/** Share of the mean by which memory may grow: pages move, code is compiled again. */
const TOLERATED_GROWTH = 0.02
const MIB = 2 ** 20

export const HELP = `Usage: npm run bench -- leak [flags]

Sessions over every transport connect, subscribe, publish, and end, by a close or by a lost connection. Each process
collects its garbage every two seconds. The first third of the run, at least six minutes, is for warming up. After it,
the minimum heap and resident memory of each window make a trend.
Exit status 1: the memory of a process grows (the 95 % interval of the slope is above 0, and the growth above 2 % of the
mean), a session failed, or the gateway ended.

  --minutes N     at least ${MIN_MINUTES} (default ${DEFAULTS.minutes})
  --rate N        sessions started a second; memory depends on it, so the machine must be able to keep it up
                  (default ${DEFAULTS.rate})
  --visitors N    maximum of concurrent sessions (default ${DEFAULTS.visitors})
  --workers N     workers of the gateway (default ${DEFAULTS.workers})
  --window S      seconds of each window (default ${DEFAULTS.window})
  --driver NAME   auto, uws or node (default auto)
  --json          a line of JSON instead of a table
  -h, --help      this text
`

/** @typedef {typeof DEFAULTS & {driver: string, json: boolean}} LeakOptions */

/** @param {string[]} args @returns {LeakOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { driver: 'auto' })
  if (options === null) return null
  if (options.minutes < MIN_MINUTES) throw new UsageError(`--minutes is at least ${MIN_MINUTES}`)
  const measured = Math.min(1 - WARM_UP_SHARE, 1 - (MIN_WARM_UP_HOURS * 60) / options.minutes)
  if ((options.minutes * 60 * measured) / options.window < MIN_WINDOWS)
    throw new UsageError(`--window is too long for --minutes ${options.minutes}`)
  return /** @type {LeakOptions} */ (options)
}

/**
 * @typedef {object} Point minimum memory of a process in one window
 * @property {number} x hours since the start
 * @property {number} y MiB
 */

/**
 * Linear regression by least squares.
 * @param {Point[]} points at least three
 * @returns {{mean: number, slope: number, error: number}} mean of y; slope in MiB per hour; `error`: half of its 95 %
 *   interval (normal approximation)
 */
export function trendOf(points) {
  const n = points.length
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / n
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / n
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  const slope = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread
  const residuals = points.reduce((sum, { x, y }) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0)
  return { mean: meanY, slope, error: 1.96 * Math.sqrt(residuals / (n - 2) / spread) }
}

/** @param {Point[]} points @returns {boolean} whether the growth is significant, and above TOLERATED_GROWTH */
export function grows(points) {
  const { mean, slope, error } = trendOf(points)
  const hours = points[points.length - 1].x - points[0].x
  return slope - error > 0 && slope * hours > TOLERATED_GROWTH * mean
}

/** Flags of Node.js that make each process of a gateway collect its garbage. */
const COLLECT = Object.freeze([
  '--expose-gc',
  '--max-semi-space-size=2',
  `--import=data:text/javascript,setInterval(()=>gc(),${GC_INTERVAL_MS}).unref()`,
])

/**
 * @param {Snapshot} snapshot
 * @returns {Map<string, {heap: number, rss: number}>} name of each process -> bytes
 */
function memoriesOf({ primary, workers }) {
  const memories = new Map([['primary', { heap: primary.memory.heap_used, rss: primary.memory.rss }]])
  for (const { index, sample } of workers)
    if (sample) memories.set(`worker_${index}`, { heap: sample.memory.heap_used, rss: sample.memory.rss })
  return memories
}

/** Minimum memory of each process in successive windows. */
export class MemoryTrends {
  /** @type {Map<string, {heap: Point[], rss: Point[]}>} */
  processes = new Map()

  /** @param {Snapshot[]} snapshots of one window @param {number} hours since the start */
  addWindow(snapshots, hours) {
    /** @type {Map<string, {heap: number, rss: number}>} */
    const minima = new Map()
    for (const snapshot of snapshots) {
      for (const [name, { heap, rss }] of memoriesOf(snapshot)) {
        const before = minima.get(name)
        minima.set(name, {
          heap: Math.min(heap, before?.heap ?? Infinity),
          rss: Math.min(rss, before?.rss ?? Infinity),
        })
      }
    }
    for (const [name, { heap, rss }] of minima) {
      const process = this.processes.get(name) ?? { heap: [], rss: [] }
      this.processes.set(name, process)
      process.heap.push({ x: hours, y: heap / MIB })
      process.rss.push({ x: hours, y: rss / MIB })
    }
  }

  /**
   * @returns {{figures: Record<string, number>, growing: string[]}} trends after the warm-up, in MiB and MiB per hour;
   *   names of what grows
   */
  result() {
    /** @type {Record<string, number>} */
    const figures = {}
    const growing = []
    for (const [name, kinds] of this.processes) {
      for (const [kind, all] of Object.entries(kinds)) {
        const points = all
          .slice(Math.floor(all.length * WARM_UP_SHARE))
          .filter(({ x }) => x >= MIN_WARM_UP_HOURS)
        const { mean, slope, error } = trendOf(points)
        figures[`${name}_${kind}_mib`] = rounded(mean, 2)
        figures[`${name}_${kind}_mib_per_h`] = rounded(slope, 2)
        figures[`${name}_${kind}_mib_per_h_ci95`] = rounded(error, 2)
        if (grows(points)) growing.push(`${name} ${kind}`)
      }
    }
    return { figures, growing }
  }
}

/** @extends {ServerRun<LeakOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether no memory grew and no session failed */
  async run() {
    const { minutes, rate, visitors, workers, window, driver, json } = this.options
    const { progress, warning } = this.io
    const { server, watcher } = await this.spawnWatched({
      workers,
      driver,
      flags: [...COLLECT],
      config: CHURN_CONFIG,
    })
    const ws = `${server.url.replace('http', 'ws')}/connection/websocket`
    const churn = new Churn({ url: server.url, ws, api: server.api }, { visitors, rate })
    const trends = new MemoryTrends()
    const began = Date.now()
    for (let passed = 0; !server.hasEnded && passed < minutes * 60; passed = (Date.now() - began) / 1000) {
      await sleep(window * 1000)
      trends.addWindow(
        watcher.received.splice(0).map(({ snapshot }) => snapshot),
        passed / 3600,
      )
      const sizes = [...trends.processes].map(([name, { heap }]) => `${name} ${heap.at(-1)?.y.toFixed(2)}`)
      progress(`leak: ${Math.round(passed)} s, ${churn.sessions} sessions, heap in MiB: ${sizes.join(', ')}`)
    }
    const seconds = (Date.now() - began) / 1000
    await churn.stop()
    if (server.hasEnded) throw new Error(`the gateway ended after ${Math.round(seconds)} s`)
    progress('')
    const { figures, growing } = trends.result()
    for (const fault of churn.faults) warning(`leak: a session failed: ${fault}`)
    for (const name of growing) warning(`leak: ${name} grows`)
    const result = {
      seconds: rounded(seconds, 0),
      sessions: churn.sessions,
      sessions_per_s: rounded(churn.sessions / seconds, 1),
      ...figures,
    }
    printResult(this.io, json, { scenario: 'leak', driver }, 'halley', result)
    return growing.length === 0 && churn.faults.length === 0
  }
}
