import { readdirSync, readFileSync, statSync } from 'node:fs'
import { constants, PerformanceObserver, performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { LoopTicks } from './loop-ticks.js'
import { noGc, tenThousandths } from './merge.js'
import { wholeMicroseconds } from './tick-histogram.js'

/** @import { GcKinds, ProcessSample } from './schema.js' */

/** V8's minor mark-sweep (`--minor-ms`), in Node.js since 24. */
const MINOR_MARK = 2

/** All others are major. @type {Record<number, keyof GcKinds>} */
const KINDS = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [MINOR_MARK]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak',
}

export class GcSampler {
  #kinds = noGc()
  #observer = new PerformanceObserver(list => this.#add(list.getEntries()))

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  /** @param {any[]} entries */
  #add(entries) {
    for (const { duration, detail } of entries) {
      const kind = this.#kinds[KINDS[detail.kind] ?? 'major']
      kind.count++
      kind.pause += duration
    }
  }

  sample() {
    this.#add(this.#observer.takeRecords())
    const kinds = this.#kinds
    this.#kinds = noGc()
    for (const kind of Object.values(kinds)) kind.pause = wholeMicroseconds(kind.pause)
    return kinds
  }

  stop() {
    this.#observer.disconnect()
  }
}

const FD_FOLDER = '/proc/self/fd'
/** At most 1/4000 of the time for listing descriptors. */
const PAUSE_FACTOR = 4000
/** Listing more blocks the event loop for a millisecond. */
const MAX_COUNTED = 4096

/** Limit of open files; null if unknown. */
export function softLimit() {
  try {
    const [, limit] =
      /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined || limit === 'unlimited' ? null : Number(limit)
  } catch {
    return null
  }
}

/** Bytes; null: no free descriptor to read it. */
export function residentMemory() {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}

export class OpenFiles {
  /** Constant: Node.js raises the limit only at its start. */
  limit = softLimit()
  #folder
  /** @type {number | null} */
  #counted = null
  #nextCount = 0

  /** @param {string} [folder] an entry per open file */
  constructor(folder = FD_FOLDER) {
    this.#folder = folder
  }

  count() {
    try {
      // The size is the number of entries since Linux 6.2.
      return statSync(this.#folder).size || this.#countEntries()
    } catch {
      return null
    }
  }

  /** For older kernels. */
  #countEntries() {
    const now = performance.now()
    if (now < this.#nextCount) return this.#counted
    const names = readdirSync(this.#folder).length
    const taken = performance.now() - now
    this.#nextCount = names > MAX_COUNTED ? Infinity : now + taken * PAUSE_FACTOR
    this.#counted = names > MAX_COUNTED ? null : names
    return this.#counted
  }
}

/** @type {ProcessSample['log']} */
const NO_LOG = Object.freeze({ dropped: 0, error: null })

/** Samples cover the time since the previous one. */
export class ProcessSampler {
  #ticks
  #gc = new GcSampler()
  #files = new OpenFiles()
  #log
  /** @type {NodeJS.MemoryUsage} */
  #lastUsage = { rss: 0, heapUsed: 0, heapTotal: 0, external: 0, arrayBuffers: 0 }
  #heapLimit = v8.getHeapStatistics().heap_size_limit
  #at = performance.now()
  #cpu = process.cpuUsage()
  #loop = performance.eventLoopUtilization()

  /**
   * @param {object} [options]
   * @param {number} [options.resolution] ms
   * @param {{state: ProcessSample['log']} | null} [options.log]
   */
  constructor({ resolution, log = null } = {}) {
    this.#log = log
    this.#usage()
    this.#ticks = new LoopTicks(resolution)
  }

  /** @returns {ProcessSample & {interval: number}} ms */
  sample() {
    const at = performance.now()
    const cpu = process.cpuUsage()
    const loop = performance.eventLoopUtilization()
    const interval = Math.max(1, at - this.#at)
    const share = (/** @type {number} */ us) => tenThousandths(us / 1000 / interval)
    const sample = {
      pid: process.pid,
      uptime: Math.round(process.uptime() * 1000),
      interval: Math.round(interval),
      cpu: { user: share(cpu.user - this.#cpu.user), system: share(cpu.system - this.#cpu.system) },
      loop: {
        utilization: tenThousandths(performance.eventLoopUtilization(loop, this.#loop).utilization),
        ticks: this.#ticks.sample(),
      },
      memory: this.#memory(),
      gc: this.#gc.sample(),
      files: { open: this.#files.count(), limit: this.#files.limit },
      log: this.#log?.state ?? NO_LOG,
    }
    this.#at = at
    this.#cpu = cpu
    this.#loop = loop
    return sample
  }

  /** @returns {ProcessSample['memory']} */
  #memory() {
    const { rss, heapUsed, heapTotal, external, arrayBuffers } = this.#usage()
    const spaces = v8
      .getHeapSpaceStatistics()
      .map(({ space_name, space_used_size: used, space_size: total }) => [
        space_name.replace(/_space$/, ''),
        { used, total },
      ])
    return {
      rss,
      heap_used: heapUsed,
      heap_total: heapTotal,
      heap_limit: this.#heapLimit,
      external,
      array_buffers: arrayBuffers,
      spaces: Object.fromEntries(spaces),
    }
  }

  /** Node.js opens a file for it; without a free descriptor, the last figures are used. */
  #usage() {
    try {
      this.#lastUsage = process.memoryUsage()
    } catch {
      // EMFILE, ENFILE
    }
    return this.#lastUsage
  }

  stop() {
    this.#ticks.stop()
    this.#gc.stop()
  }
}
