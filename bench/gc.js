// Repeats the published garbage-collection runs with current versions: many idle Comet connections get a ping every
// 20 s, then a share of them leaves at once. There is a run for each set of V8 flags. Each writes a CSV file; a report
// compares them.

import { copyFile, mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { rounded, table } from '../fleet/runner/table.js'
import { readCsv } from '../src/metrics/csv-reader.js'
import { writeReport } from '../src/pages/report/index.js'
import { parseFlags, UsageError } from './flags.js'
import { endpointsOf, Load } from './load.js'
import { checkCapacity, prefixedOutput, ServerRun } from './servers.js'

/**
 * @typedef {object} Variant
 * @property {string} summary
 * @property {string[] | null} flags of Node.js; null: those of `npm start`
 * @property {boolean} idle `gc.idle`: one collection when a worker has become quiet after a burst
 * @property {boolean} periodic whether each worker collects every `--interval` seconds: `gc.interval`
 */

/** @type {Record<string, Variant>} */
const VARIANTS = Object.freeze({
  default: { summary: "V8's own flags, collection when idle", flags: [], idle: true, periodic: false },
  'idle-off': { summary: "V8's own flags, none when idle", flags: [], idle: false, periodic: false },
  'idle-off-2': {
    summary: 'the same once more: how much runs differ',
    flags: [],
    idle: false,
    periodic: false,
  },
  interval: {
    summary: 'none when idle, gc() at an interval',
    flags: ['--expose-gc'],
    idle: false,
    periodic: true,
  },
  start: { summary: 'as npm start does', flags: null, idle: true, periodic: false },
})

/** Counts; `leave` per cent of the clients; the others s. */
const DEFAULTS = { conns: 15_000, workers: 2, hold: 120, leave: 40, settle: 30, interval: 60, ping: 20 }

export const HELP = `Usage: npm run bench -- gc [flags]

Holds idle HTTP streams with a ping for each at an interval, then many leave at once; once for each variant:

${Object.entries(VARIANTS)
  .map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`)
  .join('\n')}

  --variants NAMES     with commas (default all)
  --conns N            clients (default ${DEFAULTS.conns})
  --workers N          of the gateway (default ${DEFAULTS.workers})
  --ping S             seconds between two pings to a client (default ${DEFAULTS.ping})
  --hold S             seconds with all clients (default ${DEFAULTS.hold})
  --leave PERCENT      of the clients leave at once (default ${DEFAULTS.leave})
  --settle S           seconds after that (default ${DEFAULTS.settle})
  --interval S         of \`interval\`: seconds between two collections of a worker (default ${DEFAULTS.interval})
  --out FOLDER         for the CSV files and report.html (default gc-runs)
  --json               a line of JSON for each variant instead of a table
  -h, --help           this text
`

/** @typedef {typeof DEFAULTS & {variants: string[], out: string, json: boolean}} GcOptions */

/** @param {string[]} args @returns {GcOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const flags = parseFlags(args, DEFAULTS, { variants: Object.keys(VARIANTS).join(','), out: 'gc-runs' })
  if (flags === null) return null
  const variants = flags.variants.split(',')
  const unknown = variants.find((/** @type {string} */ name) => !Object.hasOwn(VARIANTS, name))
  if (unknown !== undefined)
    throw new UsageError(`--variants are of ${Object.keys(VARIANTS).join(', ')}, not "${unknown}"`)
  const options = /** @type {GcOptions} */ ({ ...flags, variants })
  if (options.leave > 100) throw new UsageError('--leave is at most 100')
  checkCapacity(options.conns, options.workers)
  return options
}

/** All variants in sequence. @extends {ServerRun<GcOptions>} */
export class Run extends ServerRun {
  async run() {
    const { variants, out, json } = this.options
    const { print } = this.io
    await mkdir(out, { recursive: true })
    /** @type {{name: string, result: Record<string, number>}[]} */
    const columns = []
    for (const name of variants) {
      const result = await this.#runVariant(name, VARIANTS[name])
      columns.push({ name, result })
      if (json) print(`${JSON.stringify({ scenario: 'gc', variant: name, ...result })}\n`)
    }
    if (!json) print(`${table('gc', columns)}\n`)
    const report = join(out, 'report.html')
    await writeReport({
      files: variants.map(name => this.#file(name)),
      labels: variants,
      out: report,
      title: 'Garbage collection',
    })
    this.io.warning(`${report} has the charts`)
  }

  /** @param {string} name */
  #file(name) {
    return join(this.options.out, `${name}.csv`)
  }

  /** @param {string} name @param {Variant} variant */
  async #runVariant(name, { flags, idle, periodic }) {
    const { conns, workers, hold, leave, settle, ping, interval } = this.options
    const { progress } = this.io
    const show = prefixedOutput(this.io, `gc ${name}`)
    const file = this.#file(name)
    await rm(file, { force: true })
    try {
      const server = await this.spawn({
        workers,
        flags: flags ?? undefined,
        config: {
          client: { ping_interval: `${ping}s`, pong_timeout: `${Math.max(1, ping - 1)}s` },
          gc: { idle, interval: periodic ? `${interval}s` : '0s' },
        },
      })
      const sizes = { conns, channels: conns, rate: 0, size: 64, publishers: 1, loaders: 1, seconds: hold }
      const load = new Load(endpointsOf(server, 'uni_http_stream'), sizes, show)
      this.ends.push(() => load.stop())
      const connected = await load.connect()
      await this.#wait(hold, `${connected.ready.toLocaleString('en')} clients`, show)
      const left = await load.leave(leave / 100)
      await this.#wait(settle, `${left.toLocaleString('en')} clients have left`, show)
      await copyFile(join(dirname(server.file), 'gateway.csv'), file)
      const figures = await readFigures(file, hold, settle)
      return {
        clients: connected.ready,
        connects_per_s: Math.round(connected.ready / connected.seconds),
        ...figures,
      }
    } finally {
      progress('')
      await this.stop()
    }
  }

  /** @param {number} seconds @param {string} text @param {{progress: (text: string) => void}} show */
  async #wait(seconds, text, show) {
    for (let left = seconds; left > 0; left--) {
      show.progress(`${text}, ${left} s to go`)
      await sleep(1000)
    }
  }
}

/** Figures of one run from its CSV file. @param {string} file @param {number} hold s @param {number} settle s */
async function readFigures(file, hold, settle) {
  const { columns, rows } = await readCsv(file)
  // A row a second, the last one at the end of `settle`. The rows in which a phase begins or ends are left out.
  const leaveRow = rows - settle
  const values = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    columns[name].subarray(Math.max(0, from), to).filter(value => !Number.isNaN(value))
  const held = (/** @type {string} */ name) => values(name, leaveRow - hold + 1, leaveRow - 1)
  const mean = (/** @type {Float64Array} */ list) => list.reduce((sum, value) => sum + value, 0) / list.length
  const max = (/** @type {Float64Array} */ list) => list.reduce((most, value) => Math.max(most, value), 0)
  const meanMib = (/** @type {Float64Array} */ list) => rounded(mean(list) / 2 ** 20, 1)
  return {
    connect_tick_max_ms: rounded(max(values('tick_max_ms', 0, leaveRow - hold)), 1),
    hold_cpu_pct: rounded(mean(held('cpu_pct')), 1),
    hold_tick_avg_ms: rounded(mean(held('tick_avg_ms')), 2),
    hold_tick_max_ms: rounded(max(held('tick_max_ms')), 1),
    hold_gc_ms_per_s: rounded(mean(held('gc_major_ms')) + mean(held('gc_minor_ms')), 2),
    hold_heap_used_mib: meanMib(held('heap_used_bytes')),
    hold_heap_total_mib: meanMib(held('heap_total_bytes')),
    hold_rss_mib: meanMib(held('rss_bytes')),
    leave_tick_max_ms: rounded(max(values('tick_max_ms', leaveRow - 1, leaveRow + 5)), 1),
    end_rss_mib: meanMib(values('rss_bytes', rows - 5, rows)),
  }
}
