// Checks a gateway's statistics: compares its figures with those of the kernel and of the load generator, and measures
// how soon a blocked worker and a killed one become visible.

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuOf, processTree } from '../fleet/runner/proc.js'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags, UsageError } from './flags.js'
import { endpointsOf, Load } from './load.js'
import { checkCapacity, printResult, ServerRun } from './servers.js'
import { tickMax } from './watcher.js'

/** @typedef {import('./watcher.js').Watcher} Watcher */
/** @typedef {import('../src/metrics/schema.js').Snapshot} Snapshot */

const DEFAULTS = { conns: 10_000, channels: 100, rate: 300, seconds: 20, workers: 2, block: 200 }

export const HELP = `Usage: npm run bench -- watch [flags]

Clients get messages, and what the gateway tells of it each second is compared with what the load generator and the
kernel say. Then a worker stands still for a moment, and then one is killed.

  --conns N       clients (default ${DEFAULTS.conns})
  --channels N    (default ${DEFAULTS.channels})
  --rate N        publishes a second (default ${DEFAULTS.rate})
  --seconds N     of publishing, at least 15 (default ${DEFAULTS.seconds})
  --workers N     of the gateway, at least 2 (default ${DEFAULTS.workers})
  --block MS      for which a worker stands still (default ${DEFAULTS.block})
  --json          a line of JSON instead of a table
  -h, --help      this text
`

/** @typedef {typeof DEFAULTS & {json: boolean}} WatchOptions */

/** @param {string[]} args @returns {WatchOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS)
  if (options === null) return null
  if (options.workers < 2) throw new UsageError('--workers is at least 2: one of them is killed')
  // Processor time is compared over ten snapshots of that time.
  if (options.seconds < 15) throw new UsageError('--seconds is at least 15')
  checkCapacity(options.conns, options.workers)
  return options
}

/** @param {number} reported by the gateway @param {number} measured @returns {number} per cent */
const deviation = (reported, measured) => rounded((reported / measured - 1) * 100, 2)

/** @extends {ServerRun<WatchOptions>} */
export class Run extends ServerRun {
  async run() {
    const { conns, channels, rate, seconds, workers, block, json } = this.options
    const { progress, warning } = this.io
    const show = { progress: (/** @type {string} */ text) => progress(`watch: ${text}`), warning }
    const { server, watcher } = await this.spawnWatched({ workers })
    const sizes = { conns, channels, rate, size: 200, publishers: 4, loaders: 1, seconds }
    const load = new Load(endpointsOf(server), sizes, show)
    this.ends.push(() => load.stop())
    const { ready } = await load.connect()
    show.progress(`${rate} publishes a second for ${seconds} s`)
    const end = (await load.publish(1)) + seconds * 1e3
    const cpu = await this.#compareCpu(watcher, server.pid)
    await sleep(Math.max(0, end - Date.now()))
    const { all } = await load.finish()
    const { received } = all.counters
    // The next snapshot may have begun before the end of the load, the one after it not.
    await watcher.next()
    const { snapshot } = await watcher.next()
    const { totals, counters } = snapshot
    const rss = processTree(server.pid).reduce((sum, pid) => sum + residentOf(pid), 0)
    show.progress(`a worker stands still for ${block} ms`)
    const result = {
      connections: totals.connections.connected,
      connections_off_pct: deviation(totals.connections.connected, ready),
      accepts_off_pct: deviation(counters.accepts, ready),
      deliveries: counters.deliveries,
      deliveries_off_pct: deviation(counters.deliveries, received),
      publishes_off_pct: deviation(counters.publishes, all.publisher.published),
      cpu_off_pct: deviation(cpu.reported, cpu.measured),
      rss_off_pct: deviation(totals.memory.rss, rss),
      ...(await this.#blockWorker(watcher, snapshot, block)),
      kill_shown_ms: await this.#killWorker(watcher, snapshot),
    }
    progress('')
    printResult(this.io, json, { scenario: 'watch' }, 'halley', result)
  }

  /**
   * Seconds of processor time over ten snapshots, from the gateway and from the kernel.
   * @param {Watcher} watcher @param {number} pid
   */
  async #compareCpu(watcher, pid) {
    await watcher.next()
    const before = cpuOf(pid)
    let reported = 0
    for (let second = 0; second < 10; second++) {
      const { totals, interval } = (await watcher.next()).snapshot
      reported += ((totals.cpu.user + totals.cpu.system) * interval) / 1000
    }
    return { reported, measured: cpuOf(pid) - before }
  }

  /** @param {Watcher} watcher @param {Snapshot} snapshot @param {number} block ms */
  async #blockWorker(watcher, snapshot, block) {
    const pid = pidOf(snapshot, 0)
    const began = performance.now()
    // The gateway measures every 10 ms, so its figure is a little below the block.
    const shown = watcher.next(({ workers }) => tickMax(workers[0]) > block * 0.75)
    process.kill(pid, 'SIGSTOP')
    await sleep(block)
    process.kill(pid, 'SIGCONT')
    const { at, snapshot: found } = await shown
    return {
      block_shown_ms: Math.round(at - began),
      block_tick_max_ms: rounded(tickMax(found.workers[0]), 1),
      block_others_max_ms: rounded(Math.max(...found.workers.slice(1).map(tickMax)), 1),
    }
  }

  /** @param {Watcher} watcher @param {Snapshot} snapshot */
  async #killWorker(watcher, snapshot) {
    const shown = watcher.next(({ events }) => events.some(({ kind }) => kind === 'worker_died'))
    const began = performance.now()
    process.kill(pidOf(snapshot, 1), 'SIGKILL')
    return Math.round((await shown).at - began)
  }
}

/** @param {Snapshot} snapshot @param {number} worker @returns {number} */
const pidOf = ({ workers }, worker) => /** @type {any} */ (workers[worker].sample).pid

/** @param {number} pid @returns {number} bytes, from `ps` */
const residentOf = pid => Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)])) * 1024
