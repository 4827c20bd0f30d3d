// Figures of this process: CPU, event loop, memory, garbage collections, open files.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { constants, PerformanceObserver, performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { LoopTicks } from './loop-ticks.js'
import { noGc, tenThousandths } from './merge.js'
import { wholeMicroseconds } from './tick-histogram.js'

/** @import { GcKinds, ProcessSample } from './schema.js' */

/** V8's minor mark-sweep (`--minor-ms`); Node.js names it only since version 24. */
const MINOR_MARK = 2

/** @param {number} kind of `perf_hooks` */
function gcKind(kind) {
  switch (kind) {
    case constants.NODE_PERFORMANCE_GC_MINOR:
    case MINOR_MARK:
      return 'minor'
    case constants.NODE_PERFORMANCE_GC_INCREMENTAL:
      return 'incremental'
    case constants.NODE_PERFORMANCE_GC_WEAKCB:
      return 'weak'
    default:
      return 'major'
  }
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
      const kind = this.#kinds[gcKind(detail.kind)]
      kind.count++
      kind.pause += duration
    }
  }

  /** @returns {GcKinds} since the last sample */
  sample() {
    // Entries that the observer has not delivered yet.
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
/** Listing descriptors may use at most 1/4000 of the time. */
const PAUSE_FACTOR = 4000
/** Listing more would block the event loop for a millisecond or longer. */
const MAX_COUNTED = 4096

/** @returns {number | null} limit of open files; null if unknown */
export function softLimit() {
  try {
    const [, limit] =
      /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined || limit === 'unlimited' ? null : Number(limit)
  } catch {
    return null
  }
}

/** @returns {number | null} resident memory of this process, bytes; null if there is no free descriptor to read it */
export function residentMemory() {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}

/** Open descriptors of this process, on systems with /proc. */
export class OpenFiles {
  /** Node.js raises it at its start and never again. */
  limit = softLimit()
  #folder
  /** @type {number | null} */
  #counted = null
  #nextCount = 0

  /** @param {string} [folder] one entry per open file */
  constructor(folder = FD_FOLDER) {
    this.#folder = folder
  }

  /** @returns {number | null} null if unknown */
  count() {
    try {
      // Since Linux 6.2 the size of the folder is the count.
      return statSync(this.#folder).size || this.#countEntries()
    } catch {
      return null
    }
  }

  /** For older kernels: rarely, and never with very many descriptors. */
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
const SPACE = /_space$/
const US_PER_MS = 1000

/** Figures cover the time since the previous sample. */
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
   * @param {object} [options] @param {number} [options.resolution] of the event-loop ticks, ms
   * @param {{state: ProcessSample['log']} | null} [options.log] LogOutput; null: not ours
   */
  constructor({ resolution, log = null } = {}) {
    this.#log = log
    this.#usage()
    this.#ticks = new LoopTicks(resolution)
  }

  /** @returns {ProcessSample & {interval: number}} interval: ms since the previous sample */
  sample() {
    const at = performance.now()
    const cpu = process.cpuUsage()
    const loop = performance.eventLoopUtilization()
    const interval = Math.max(1, at - this.#at)
    const share = (/** @type {number} */ us) => tenThousandths(us / US_PER_MS / interval)
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
    /** @type {Record<string, {used: number, total: number}>} */
    const spaces = {}
    for (const { space_name, space_used_size, space_size } of v8.getHeapSpaceStatistics()) {
      spaces[space_name.replace(SPACE, '')] = { used: space_used_size, total: space_size }
    }
    return {
      rss,
      heap_used: heapUsed,
      heap_total: heapTotal,
      heap_limit: this.#heapLimit,
      external,
      array_buffers: arrayBuffers,
      spaces,
    }
  }

  /** Node.js opens a file for it, which fails without a free descriptor: then the last figures count. */
  #usage() {
    try {
      this.#lastUsage = process.memoryUsage()
    } catch {
      // EMFILE, ENFILE.
    }
    return this.#lastUsage
  }

  stop() {
    this.#ticks.stop()
    this.#gc.stop()
  }
}
