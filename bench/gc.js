// The published garbage-collection runs on current versions: many idle Comet connections with a ping every 20 s, some
// of which leave all at once, once for each set of V8 flags. Each run writes a CSV file, all together a report.

import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeReport } from '../src/report/index.js'
import { readCsv } from '../src/stats/csv-reader.js'
import { parseFlags, UsageError } from './flags.js'
import { Load } from './load.js'
import { outputOf, rounded, table } from './report.js'
import { checkCapacity, Server } from './servers.js'

/** @typedef {import('./bench.js').Io} Io */

/**
 * @typedef {object} Variant
 * @property {string} what
 * @property {string[] | null} flags of Node.js; null: those of `npm start`
 * @property {boolean} idle `gc.idle`: one collection when a worker has become quiet after a burst
 * @property {boolean} interval whether collections are requested periodically
 */

/** @type {Record<string, Variant>} */
const VARIANTS = Object.freeze({
  default: { what: "V8's own flags, collection when idle", flags: [], idle: true, interval: false },
  'idle-off': { what: "V8's own flags, none when idle", flags: [], idle: false, interval: false },
  'idle-off-2': { what: 'the same once more: how much runs differ', flags: [], idle: false, interval: false },
  interval: {
    what: 'none when idle, gc() at an interval',
    flags: ['--expose-gc'],
    idle: false,
    interval: true,
  },
  start: { what: 'as npm start does', flags: null, idle: true, interval: false },
})

const DEFAULTS = { conns: 15_000, workers: 2, hold: 120, leave: 40, settle: 30, interval: 60, ping: 20 }

export const HELP = `Usage: npm run bench -- gc [flags]

Holds idle HTTP streams with a ping for each at an interval, then many leave at once; once for each variant:

${Object.entries(VARIANTS)
  .map(([name, { what }]) => `  ${name.padEnd(12)}${what}`)
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

/** All variants in sequence. */
export class Run {
  #options
  #io
  /** @type {Server | null} */
  #server = null
  /** @type {Load | null} */
  #load = null

  /** @param {GcOptions} options @param {Io} io */
  constructor(options, io) {
    this.#options = options
    this.#io = io
  }

  async run() {
    const { variants, out, json } = this.#options
    const { print } = this.#io
    await mkdir(out, { recursive: true })
    /** @type {{name: string, result: Record<string, number>}[]} */
    const columns = []
    for (const name of variants) {
      const result = await this.#once(name, VARIANTS[name])
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
    this.#io.warning(`${report} has the charts`)
  }

  /** @param {string} name */
  #file(name) {
    return join(this.#options.out, `${name}.csv`)
  }

  /** @param {string} name @param {Variant} variant */
  async #once(name, { flags, idle, interval }) {
    const { conns, workers, hold, leave, settle, ping, interval: every } = this.#options
    const { env, progress } = this.#io
    const show = outputOf(this.#io, `gc ${name}`)
    const file = this.#file(name)
    await rm(file, { force: true })
    try {
      const server = await Server.spawn('halley', {
        workers,
        transport: 'uni_http_stream',
        env,
        flags,
        config: {
          client: { ping_interval: `${ping}s`, pong_timeout: `${Math.max(1, ping - 1)}s` },
          gc: { idle, interval: interval ? `${every}s` : '0s' },
          stats: { socket: 'none', csv: { file: resolve(file) } },
        },
      })
      this.#server = server
      await server.answers()
      const sizes = { conns, channels: conns, rate: 0, size: 64, publishers: 1, loaders: 1, seconds: hold }
      this.#load = new Load(server.endpoints, sizes, show)
      const connected = await this.#load.connect()
      await this.#wait(hold, `${connected.ready.toLocaleString('en')} clients`, show)
      const left = await this.#load.leave(leave / 100)
      await this.#wait(settle, `${left.toLocaleString('en')} clients have left`, show)
      const figures = await figuresOf(file, hold, settle)
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

  async stop() {
    this.#load?.stop()
    this.#load = null
    await this.#server?.stop()
    this.#server = null
  }
}

/** Figures of the report's curves. @param {string} file @param {number} hold s @param {number} settle s */
async function figuresOf(file, hold, settle) {
  const { columns, rows } = await readCsv(file)
  // The last rows are those after the leave, before them those of the hold; one row at each border is left out.
  const after = rows - settle
  const part = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    columns[name].subarray(Math.max(0, from), to).filter(value => !Number.isNaN(value))
  const held = (/** @type {string} */ name) => part(name, after - hold + 1, after - 1)
  const mean = (/** @type {Float64Array} */ values) =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const max = (/** @type {Float64Array} */ values) => values.reduce((most, value) => Math.max(most, value), 0)
  const mebi = (/** @type {Float64Array} */ values) => rounded(mean(values) / 2 ** 20, 1)
  return {
    connect_tick_max_ms: rounded(max(part('tick_max_ms', 0, after - hold)), 1),
    hold_cpu_pct: rounded(mean(held('cpu_pct')), 1),
    hold_tick_avg_ms: rounded(mean(held('tick_avg_ms')), 2),
    hold_tick_max_ms: rounded(max(held('tick_max_ms')), 1),
    hold_gc_ms_per_s: rounded(mean(held('gc_major_ms')) + mean(held('gc_minor_ms')), 2),
    hold_heap_used_mib: mebi(held('heap_used_bytes')),
    hold_heap_total_mib: mebi(held('heap_total_bytes')),
    hold_rss_mib: mebi(held('rss_bytes')),
    leave_tick_max_ms: rounded(max(part('tick_max_ms', after - 1, after + 5)), 1),
    end_rss_mib: mebi(part('rss_bytes', rows - 5, rows)),
  }
}
