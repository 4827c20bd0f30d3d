// Event-loop delay of workers: with many idle clients, and while all of them disconnect at once.

import { setTimeout as sleep } from 'node:timers/promises'
import { rounded } from '../fleet/runner/table.js'
import { parseFlags } from './flags.js'
import { endpointsOf, Load } from './load.js'
import { checkCapacity, printResult, ServerRun } from './servers.js'
import { tickMax } from './watcher.js'

/** @typedef {import('./watcher.js').Snapshot} Snapshot */

const DEFAULTS = { conns: 19_000, subscriptions: 2, workers: 1, ping: 25, check: 10, seconds: 30 }
/** pong_timeout as a share of the ping interval. */
const PONG_SHARE = 0.3
/** Time after which sessions that have not ended are reported. */
const LEAVE_WARNING_MS = 60_000

export const HELP = `Usage: npm run bench -- ticks [flags]

Each client subscribes to recoverable channels of its own and idles: it gets pings, and the positions of its channels
are checked. Then all clients are killed at once. Shows the longest event-loop delay of a worker in each phase.
The limit of open files bounds the clients of a worker. A shorter --ping puts the load of more clients on it.

  --conns N          clients (default ${DEFAULTS.conns})
  --subscriptions N  subscriptions of each client (default ${DEFAULTS.subscriptions})
  --workers N        workers of the gateway (default ${DEFAULTS.workers})
  --ping S           seconds between two pings to a client (default ${DEFAULTS.ping})
  --check S          seconds between two checks of a position (default ${DEFAULTS.check})
  --seconds N        duration of the idle phase (default ${DEFAULTS.seconds})
  --driver DRIVER    auto, uws or node (default auto)
  --json             a line of JSON instead of a table
  -h, --help         this text
`

/** @typedef {typeof DEFAULTS & {driver: string, json: boolean}} TickOptions */

/** @param {string[]} args @returns {TickOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { driver: 'auto' })
  if (options === null) return null
  checkCapacity(options.conns, options.workers)
  return /** @type {TickOptions} */ (options)
}

/** @extends {ServerRun<TickOptions>} */
export class Run extends ServerRun {
  async run() {
    const { conns, subscriptions, workers, ping, check, seconds, driver, json } = this.options
    const { progress, warning } = this.io
    const show = { progress: (/** @type {string} */ text) => progress(`ticks: ${text}`), warning }
    const client = {
      ping_interval: `${ping}s`,
      pong_timeout: `${Math.round(ping * PONG_SHARE * 1000)}ms`,
      channel_position_check_delay: `${check}s`,
    }
    const { server, watcher } = await this.spawnWatched({
      workers,
      driver,
      history: 1,
      subscriptions,
      config: { client },
    })
    const sizes = { conns, channels: 0, rate: 0, size: 64, publishers: 0, loaders: 0, seconds, subscriptions }
    const load = new Load(endpointsOf(server), sizes, show)
    this.ends.push(() => load.stop())
    const { ready, failed } = await load.connect()
    const { subscribed } = await load.subscribe()
    // The next snapshot may still include subscribes.
    await watcher.next()
    await watcher.next()
    show.progress(`idle for ${seconds} s`)
    const idleFrom = watcher.received.length
    await sleep(seconds * 1e3)
    const idle = watcher.received.slice(idleFrom)
    const { counters } = await load.sample()
    show.progress('all clients disconnect')
    const leaveFrom = watcher.received.length
    const began = performance.now()
    load.stop()
    const late = setTimeout(() => warning('not all sessions have ended'), LEAVE_WARNING_MS)
    const { at } = await watcher.next(({ totals }) => totals.connections.open === 0)
    clearTimeout(late)
    // A tick that ended after its sample was taken is in the next one.
    await watcher.next()
    const leave = watcher.received.slice(leaveFrom)
    progress('')
    printResult(this.io, json, { scenario: 'ticks' }, 'halley', {
      connections: ready,
      failed,
      closed: counters.ended,
      subscriptions: subscribed,
      idle_tick_max_ms: longest(idle),
      idle_tick_p99_ms: rounded(
        Math.max(0, ...idle.map(({ snapshot }) => snapshot.totals.loop.ticks.p99)),
        1,
      ),
      leave_tick_max_ms: longest(leave),
      left_ms: Math.round(at - began),
    })
  }
}

/** @param {{snapshot: Snapshot}[]} received @returns {number} longest event-loop delay of all workers, ms */
const longest = received =>
  rounded(Math.max(0, ...received.flatMap(({ snapshot }) => snapshot.workers.map(tickMax))), 1)
