// `npm run bench -- peers`: Halley beside Socket.IO, bare uWebSockets.js, bare ws, nchan and the Go library of
// Centrifugo, in one run in turn. Each server has one serving process, which is all that some of them can use.

import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { parseStrictly, UsageError, wholeNumber } from './flags.js'
import { installedPeer, installPeer, PEER_KINDS } from './peers/index.js'
import { markdown, replaceTable, SIGNS } from './peers/markdown.js'
import { medians, printResult } from './report.js'
import { SCENARIOS } from './scenarios.js'
import { capacityOf } from './servers.js'
import { Trial } from './trial.js'

/** @typedef {import('./deployment.js').Kind} Kind */

/** All that can run beside Halley. @type {Kind[]} */
const PEERS = ['socket.io', 'uws', 'ws', 'nchan', 'centrifuge']

const { memory, fan } = SCENARIOS

/**
 * The loads: a scenario, how its sizes differ, and clients in multiples of `--conns`: few ones weigh less than what a
 * process allocates and frees by itself. `flat` publishes as fast as the answers come.
 */
const LOADS = {
  memory: { scenario: 'memory', sizes: memory.sizes, times: 3 },
  fan: { scenario: 'fan', sizes: { ...fan.sizes, rate: 400 }, times: 1 },
  flat: { scenario: 'fan', sizes: { ...fan.sizes, rate: 0, publishers: 8 }, times: 1 },
}

/** @typedef {keyof typeof LOADS} LoadName */

const DEFAULTS = { conns: 5_000, seconds: 8, runs: 3, workers: 1 }

export const HELP = `Usage: npm run bench -- peers [flags]

Measures Halley beside other servers on this machine, in one run in turn, and prints a table in Markdown. Each server
has one serving process (Halley also its primary), the same clients, the same 512 bytes a message, and WebSocket.

  memory   ${LOADS.memory.times * DEFAULTS.conns} clients connect, subscribe and idle
  fan      100 channels with 1/100 of the clients each, 400 publishes/s of 512 bytes
  flat     the same, the next message of 8 publishers as soon as one is answered

  --peers LIST     of ${PEERS.join(', ')} (default: all); those that are not installed are left out
  --loads LIST     of memory, fan, flat (default: all)
  --install        install missing peers below node_modules/.cache: Socket.IO by npm, centrifuge by go; nchan is
                   Debian's libnginx-mod-nchan
  --conns N        clients of fan and flat; memory has three times as many (default ${DEFAULTS.conns})
  --seconds N      measured in each run, after a second of warm-up (default ${DEFAULTS.seconds})
  --runs N         of each load for each server, in turn; medians count (default ${DEFAULTS.runs})
  --workers N      of Halley and nchan; the others cannot use more (default ${DEFAULTS.workers})
  --write FILE     put the table between ${SIGNS[0]} and ${SIGNS[1]} of that file
  --json           a line of JSON for each run instead of the table
  -h, --help       this text
`

/**
 * @typedef {typeof DEFAULTS & {peers: Kind[], asked: boolean, loads: LoadName[], install: boolean, write: string,
 *   json: boolean, args: string[]}} Options `asked`: the peers were named, so that a missing one is an error
 */

/**
 * @template {string} T
 * @param {string} flag @param {string} text with commas @param {readonly T[]} known
 * @returns {T[]} @throws {UsageError}
 */
function listOf(flag, text, known) {
  const names = text.split(',').filter(Boolean)
  const wrong = names.find(name => !known.includes(/** @type {T} */ (name)))
  if (wrong !== undefined || names.length === 0)
    throw new UsageError(`${flag} is a list of ${known.join(', ')}, not "${wrong ?? text}"`)
  return known.filter(name => names.includes(name))
}

/** @param {string[]} args @returns {Options | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const text = /** @type {const} */ ({ type: 'string' })
  const { values } = parseStrictly({
    args,
    options: {
      peers: text,
      loads: text,
      conns: text,
      seconds: text,
      runs: text,
      workers: text,
      write: text,
      install: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return null
  const numbers = { ...DEFAULTS }
  for (const name of /** @type {(keyof typeof DEFAULTS)[]} */ (Object.keys(DEFAULTS))) {
    const given = values[name]
    if (given !== undefined) numbers[name] = wholeNumber(name, given, 1)
  }
  const { peers, write = '', install = false, json = false } = values
  if (write !== '' && json) throw new UsageError('--write and --json exclude each other')
  if (write !== '') replaceTable(readText(write), '', write)
  return {
    ...numbers,
    peers: peers === undefined ? PEERS : listOf('--peers', peers, PEERS),
    asked: peers !== undefined,
    loads: listOf(
      '--loads',
      values.loads ?? 'memory,fan,flat',
      /** @type {LoadName[]} */ (Object.keys(LOADS)),
    ),
    install,
    write,
    json,
    args,
  }
}

/** @param {string} file @throws {UsageError} */
function readText(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--write: ${error.message}`)
  }
}

export class Run {
  #options
  #io
  #trial = new Trial()

  /** @param {Options} options @param {import('./bench.js').Io} io */
  constructor(options, io) {
    this.#options = options
    this.#io = io
  }

  async run() {
    const { loads, runs, conns, workers, json, write } = this.#options
    const most = conns * Math.max(...loads.map(load => LOADS[load].times))
    for (const kind of ['halley', ...this.#options.peers]) {
      const capacity = capacityOf(/** @type {any} */ (kind), workers)
      if (most > capacity)
        throw new UsageError(
          `the limit of open files leaves ${kind} room for ${capacity} clients, not ${most}`,
        )
    }
    const servers = [{ kind: /** @type {Kind} */ ('halley'), name: 'Halley' }, ...(await this.#peers())]
    /** Results by load and kind. @type {Map<string, import('./report.js').Result[]>} */
    const results = new Map()
    for (const load of loads) {
      for (let run = 1; run <= runs; run++) {
        for (const { kind } of servers) {
          const result = await this.#once(load, kind, run)
          const key = `${load} ${kind}`
          if (result !== null) results.set(key, [...(results.get(key) ?? []), result])
        }
      }
    }
    const columns = servers.map(({ kind, name }) => {
      const of = (/** @type {string} */ load) => results.get(`${load} ${kind}`)
      const middle = loads.map(load => [load, medians(of(load) ?? [{}])])
      return { name, results: Object.fromEntries(middle) }
    })
    if (json) return
    const table = markdown(columns, this.#circumstances())
    this.#io.print(table)
    if (write !== '') writeFileSync(write, replaceTable(readText(write), table, write))
  }

  /** Stops the current server, if there is one. */
  async stop() {
    await this.#trial.stop()
  }

  /** @returns {Promise<{kind: Kind, name: string}[]>} those that are installed, with their versions */
  async #peers() {
    const { peers, asked, install } = this.#options
    const servers = []
    for (const kind of peers) {
      const name = isBare(kind) ? bareName(kind) : await this.#installed(kind, install)
      if (name !== null) servers.push({ kind, name })
      else if (asked)
        throw new Error(`${kind} is not installed; --install installs it, or says what is missing`)
      else this.#io.warning(`${kind} is left out: it is not installed (--install)`)
    }
    return servers
  }

  /** @param {any} kind @param {boolean} install @returns {Promise<string | null>} its name; null: not installed */
  async #installed(kind, install) {
    const name = installedPeer(kind)
    if (name !== null || !install) return name
    this.#io.progress(`${kind} is being installed`)
    try {
      await installPeer(kind)
    } catch (error) {
      if (this.#options.asked) throw error
      this.#io.warning(`${kind} is left out: ${error.message}`)
      return null
    }
    return installedPeer(kind)
  }

  /** @param {LoadName} load @param {Kind} kind @param {number} run @returns {Promise<any>} null: it failed */
  async #once(load, kind, run) {
    const { conns, seconds, workers, json, runs } = this.#options
    const { scenario, sizes, times } = LOADS[load]
    const whole = { ...sizes, conns: conns * times, seconds, channels: Math.min(sizes.channels, conns) }
    const options = {
      workers,
      driver: 'auto',
      transport: 'websocket',
      engine: /** @type {const} */ ('memory'),
      redis: [],
      nodes: 1,
      history: false,
    }
    const title = `${load} ${kind} ${run}/${runs}`
    try {
      const result = await this.#trial.run(scenario, kind, whole, options, this.#io, title)
      if (json) printResult(this.#io, json, { scenario: load, server: kind, run }, '', result)
      return result
    } catch (error) {
      // One server's failure costs its column, not the run. Halley's is an error.
      if (kind === 'halley') throw error
      this.#io.warning(`${title}: ${error.message}`)
      return null
    }
  }

  /** @returns {string} what a reader has to know to repeat it */
  #circumstances() {
    const { runs, args, conns } = this.#options
    const shown = args.filter((arg, i) => !arg.startsWith('--write') && args[i - 1] !== '--write')
    const command = ['npm run bench -- peers', ...shown].join(' ')
    const machine = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'})`
    return (
      `\`${command}\` with Node.js ${process.versions.node} on ${machine}, server and load generator on the same ` +
      `machine, ${count(conns)} clients (memory and connects: ${count(conns * LOADS.memory.times)}); ` +
      (runs > 1 ? `medians of ${runs} runs, servers in turn.` : 'one run of each server.')
    )
  }
}

/** @param {number} n */
const count = n => n.toLocaleString('en')

/** @param {Kind} kind @returns {kind is 'uws' | 'ws'} */
const isBare = kind => !(/** @type {readonly string[]} */ (PEER_KINDS).includes(kind))

/** @param {'uws' | 'ws'} kind @returns {string} name and version */
function bareName(kind) {
  const folder = kind === 'uws' ? 'uWebSockets.js' : 'ws'
  const file = new URL(`../node_modules/${folder}/package.json`, import.meta.url)
  return `${kind === 'uws' ? 'bare uWebSockets.js' : 'bare ws'} ${JSON.parse(readFileSync(file, 'utf8')).version}`
}
