// Looks for leaks: sessions of every kind come and go, and heap and resident memory of every process must stay flat.

import { setTimeout as sleep } from 'node:timers/promises'
import { CHURN_CONFIG, Churn } from './churn.js'
import { parseFlags, UsageError } from './flags.js'
import { printResult, rounded } from './report.js'
import { ServerRun } from './servers.js'

/** @typedef {import('../src/stats/schema.js').Snapshot} Snapshot */

const DEFAULTS = { minutes: 60, rate: 10, visitors: 24, workers: 2, window: 10 }
/** Interval of collections, several for each figure: only live objects count. */
const GC_EVERY_MS = 2000
/** Share of the time in which caches and pools may still fill. */
const WARM_UP = 1 / 3
/** Hours at least: the primary keeps five minutes of figures, and of idempotency keys. */
const LEAST_WARM_UP = 0.1
const LEAST_MINUTES = 10
/** At least so many windows make a trend. */
const LEAST_WINDOWS = 6
/** Growth over the measured time that is no leak, as a share of the mean: pages move, code is compiled again. */
const NO_GROWTH = 0.02
const MB = 1024 ** 2

export const HELP = `Usage: npm run bench -- leak [flags]

Sessions over every transport come, subscribe, publish, and leave, politely or not. Each process collects its garbage
every two seconds; the least heap and resident memory of each window make a trend, after a third of the time, and at
least six minutes, for warming up.
Ends with 1 if a process grows: the 95 % interval of its slope lies above 0, and the growth is above 2 % of its memory.

  --minutes N     at least ${LEAST_MINUTES} (default ${DEFAULTS.minutes})
  --rate N        sessions a second: memory follows the rate, so it must not change with the machine's other work
                  (default ${DEFAULTS.rate})
  --visitors N    sessions at once, at most (default ${DEFAULTS.visitors})
  --workers N     of the gateway (default ${DEFAULTS.workers})
  --window S      seconds of one point of the trend (default ${DEFAULTS.window})
  --driver NAME   auto, uws or node (default auto)
  --json          a line of JSON instead of a table
  -h, --help      this text
`

/** @typedef {typeof DEFAULTS & {driver: string, json: boolean}} LeakOptions */

/** @param {string[]} args @returns {LeakOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { driver: 'auto' })
  if (options === null) return null
  if (options.minutes < LEAST_MINUTES) throw new UsageError(`--minutes is at least ${LEAST_MINUTES}`)
  const measured = Math.min(1 - WARM_UP, 1 - (LEAST_WARM_UP * 60) / options.minutes)
  if ((options.minutes * 60 * measured) / options.window < LEAST_WINDOWS)
    throw new UsageError(`--window is too long for --minutes ${options.minutes}`)
  return /** @type {LeakOptions} */ (options)
}

/**
 * A straight line through points, by least squares.
 * @param {{x: number, y: number}[]} points at least three
 * @returns {{mean: number, slope: number, error: number}} `error`: half of the 95 % interval of the slope (normal
 *   approximation)
 */
export function trendOf(points) {
  const n = points.length
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / n
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / n
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0)
  const slope = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread
  const rest = points.reduce((sum, { x, y }) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0)
  return { mean: meanY, slope, error: 1.96 * Math.sqrt(rest / (n - 2) / spread) }
}

/**
 * @param {{x: number, y: number}[]} points x: hours @returns {boolean} whether the growth is more than chance and more
 *   than a little
 */
export function grows(points) {
  const { mean, slope, error } = trendOf(points)
  const hours = points[points.length - 1].x - points[0].x
  return slope - error > 0 && slope * hours > NO_GROWTH * mean
}

/** Flags of Node.js that make each process of a gateway collect its garbage. */
const COLLECT = Object.freeze([
  '--expose-gc',
  '--max-semi-space-size=2',
  `--import=data:text/javascript,setInterval(()=>gc(),${GC_EVERY_MS}).unref()`,
])

/**
 * @param {Snapshot} snapshot
 * @returns {Map<string, {heap: number, rss: number}>} bytes of each process, by its name
 */
function memoriesOf({ primary, workers }) {
  const memories = new Map([['primary', { heap: primary.memory.heap_used, rss: primary.memory.rss }]])
  for (const { index, sample } of workers)
    if (sample) memories.set(`worker_${index}`, { heap: sample.memory.heap_used, rss: sample.memory.rss })
  return memories
}

/** The least memory of each process in one window after another. */
export class Windows {
  /** @type {Map<string, {heap: {x: number, y: number}[], rss: {x: number, y: number}[]}>} x: hours, y: MB */
  processes = new Map()

  /** @param {Snapshot[]} snapshots of one window @param {number} hours since the beginning */
  add(snapshots, hours) {
    /** @type {Map<string, {heap: number, rss: number}>} */
    const least = new Map()
    for (const snapshot of snapshots) {
      for (const [name, { heap, rss }] of memoriesOf(snapshot)) {
        const before = least.get(name)
        least.set(name, {
          heap: Math.min(heap, before?.heap ?? Infinity),
          rss: Math.min(rss, before?.rss ?? Infinity),
        })
      }
    }
    for (const [name, { heap, rss }] of least) {
      const process = this.processes.get(name) ?? { heap: [], rss: [] }
      this.processes.set(name, process)
      process.heap.push({ x: hours, y: heap / MB })
      process.rss.push({ x: hours, y: rss / MB })
    }
  }

  /** @returns {{figures: Record<string, number>, growing: string[]}} of the time after the warm-up */
  result() {
    /** @type {Record<string, number>} */
    const figures = {}
    const growing = []
    for (const [name, kinds] of this.processes) {
      for (const [kind, all] of Object.entries(kinds)) {
        const points = all.slice(Math.floor(all.length * WARM_UP)).filter(({ x }) => x >= LEAST_WARM_UP)
        const { mean, slope, error } = trendOf(points)
        figures[`${name}_${kind}_mb`] = rounded(mean, 2)
        figures[`${name}_${kind}_mb_per_h`] = rounded(slope, 2)
        figures[`${name}_${kind}_mb_per_h_ci95`] = rounded(error, 2)
        if (grows(points)) growing.push(`${name} ${kind}`)
      }
    }
    return { figures, growing }
  }
}

/** @extends {ServerRun<LeakOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether everything stayed flat and no session failed */
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
    const windows = new Windows()
    const began = Date.now()
    for (let passed = 0; passed < minutes * 60; passed = (Date.now() - began) / 1000) {
      await sleep(window * 1000)
      windows.add(
        watcher.received.splice(0).map(({ snapshot }) => snapshot),
        passed / 3600,
      )
      const sizes = [...windows.processes].map(([name, { heap }]) => `${name} ${heap.at(-1)?.y.toFixed(2)}`)
      progress(`leak: ${Math.round(passed)} s, ${churn.sessions} sessions, heap in MB: ${sizes.join(', ')}`)
    }
    const seconds = (Date.now() - began) / 1000
    await churn.stop()
    progress('')
    const { figures, growing } = windows.result()
    for (const fault of churn.faults) warning(`leak: a session failed: ${fault}`)
    for (const name of growing) warning(`leak: ${name} grows`)
    const result = {
      seconds: rounded(seconds, 0),
      sessions: churn.sessions,
      sessions_per_s: rounded(churn.sessions / seconds, 1),
      ...figures,
    }
    printResult(this.io, json, { scenario: 'leak', driver }, 'halley', result)
    return growing.length === 0 && churn.faults.length === 0 && server.runs
  }
}
