import { performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { GcWatch } from './gc-watch.js'
import { LoopTicks } from './loop-ticks.js'
import { OpenFiles } from './open-files.js'

/** @typedef {import('./schema.js').ProcessSample} ProcessSample */

const SPACE = /_space$/
const US_PER_MS = 1000

/** @param {number} share */
const tenThousandths = share => Math.round(share * 10_000) / 10_000

/** This process, since it was looked at last. */
export class ProcessSampler {
  #ticks
  #gc = new GcWatch()
  #files = new OpenFiles()
  #heapLimit = v8.getHeapStatistics().heap_size_limit
  #at = performance.now()
  #cpu = process.cpuUsage()
  #loop = performance.eventLoopUtilization()

  /** @param {number} [grid] of the ticks, ms */
  constructor(grid) {
    this.#ticks = new LoopTicks(grid)
  }

  /** @returns {ProcessSample & {interval: number}} `interval`: ms since the sample before */
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
    }
    this.#at = at
    this.#cpu = cpu
    this.#loop = loop
    return sample
  }

  /** @returns {ProcessSample['memory']} */
  #memory() {
    const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage()
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

  /** Measures no more. */
  stop() {
    this.#ticks.stop()
    this.#gc.stop()
  }
}
