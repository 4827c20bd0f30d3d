import { parseArgs } from 'node:util'
import { WIRES } from './load/wires.js'
import { SCENARIOS } from './scenarios.js'
import { SERVER_KINDS } from './servers.js'

/**
 * @typedef {import('./servers.js').ServerKind} ServerKind
 * @typedef {object} Options
 * @property {string[]} scenarios names
 * @property {ServerKind} server
 * @property {ServerKind[]} against controls, run in turn with the server
 * @property {number} runs of each
 * @property {number} workers
 * @property {string} driver
 * @property {string} transport
 * @property {boolean} json
 * @property {Partial<import('./scenarios.js').Sizes>} sizes what was asked for, over the scenario's own
 */

/** A command line that means nothing. */
export class UsageError extends Error {}

const scenarioLines = Object.entries(SCENARIOS).map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)

export const HELP = `Usage: npm run bench -- [scenario ...] [flags]

Measures Halley on this machine, or a bare library under the same load. Without a scenario: all of them, one after the other.

Scenarios:
${scenarioLines.join('\n')}

What is measured:
  --server KIND      halley, uws or ws (default halley); uws and ws are the bare libraries, one process each
  --against KINDS    controls that run in turn with it, with commas; medians and ratios follow
  --runs N           runs of each (default 1; 3 with --against)
  --workers N        Halley's workers (default 2)
  --driver DRIVER    Halley's socket server: auto, uws or node (default auto)
  --transport WAY    how clients connect to Halley: websocket, protobuf (over WebSocket), uni_sse or
                     uni_http_stream (default websocket); to the bare libraries always by WebSocket

The load (each scenario has its own defaults):
  --conns N          clients
  --channels N       channels; 0: one for each client
  --rate N           publishes a second; 0: the next one as soon as one is answered
  --size BYTES       of each payload, 64 at least
  --publishers N     connections that publish
  --seconds N        measured, after a second of warm-up
  --loaders N        processes that hold clients (default: as few as the limit of open files allows)

Output:
  --json             a line of JSON for each run and for each comparison, instead of tables
  -h, --help         this text

Examples:
  npm run bench -- memory
  npm run bench -- fan --against uws,ws
  npm run bench -- fan --transport uni_sse
  npm run bench -- fan --rate 2000 --conns 10000 --json
`

const NUMBERS = /** @type {const} */ ([
  'conns',
  'channels',
  'rate',
  'size',
  'publishers',
  'seconds',
  'loaders',
  'runs',
  'workers',
])
const LEAST = {
  conns: 1,
  channels: 0,
  rate: 0,
  size: 64,
  publishers: 1,
  seconds: 1,
  loaders: 0,
  runs: 1,
  workers: 1,
}

const FLAGS = /** @type {const} */ ({
  server: { type: 'string', default: 'halley' },
  against: { type: 'string', default: '' },
  driver: { type: 'string', default: 'auto' },
  transport: { type: 'string', default: 'websocket' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
})

/**
 * @param {string[]} args
 * @returns {Options | null} null: help is wanted
 * @throws {UsageError}
 */
export function parseOptions(args) {
  const { values, positionals } = parse(args)
  if (values.help) return null
  for (const name of positionals) {
    if (!Object.hasOwn(SCENARIOS, name))
      throw new UsageError(`no scenario "${name}"; there are ${Object.keys(SCENARIOS).join(', ')}`)
  }
  const { runs, workers = 2, ...sizes } = numbers(values)
  const against = values.against.split(',').filter(Boolean).map(serverKind)
  return {
    scenarios: positionals.length > 0 ? positionals : Object.keys(SCENARIOS),
    server: serverKind(values.server),
    against,
    runs: runs ?? (against.length > 0 ? 3 : 1),
    workers,
    driver: oneOf('--driver', values.driver, ['auto', 'uws', 'node']),
    transport: oneOf(
      '--transport',
      values.transport,
      Object.keys(WIRES).filter(name => name !== 'bare'),
    ),
    json: values.json,
    sizes,
  }
}

/** @param {string[]} args */
function parse(args) {
  const numeric = Object.fromEntries(NUMBERS.map(name => [name, { type: /** @type {const} */ ('string') }]))
  try {
    return parseArgs({ args, options: { ...numeric, ...FLAGS }, allowPositionals: true })
  } catch (error) {
    throw new UsageError(error.message.split('. ')[0])
  }
}

/**
 * @param {Record<string, any>} values
 * @returns {Partial<Record<typeof NUMBERS[number], number>>}
 */
function numbers(values) {
  /** @type {Partial<Record<typeof NUMBERS[number], number>>} */
  const found = {}
  for (const name of NUMBERS) {
    const text = values[name]
    if (text === undefined) continue
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < LEAST[name])
      throw new UsageError(`--${name} is a whole number from ${LEAST[name]}, not "${text}"`)
    found[name] = value
  }
  return found
}

/** @param {string} text */
const serverKind = text =>
  /** @type {ServerKind} */ (oneOf('a server', text, /** @type {readonly string[]} */ (SERVER_KINDS)))

/**
 * @param {string} what
 * @param {string} text
 * @param {readonly string[]} known
 * @returns {string}
 */
function oneOf(what, text, known) {
  if (!known.includes(text)) throw new UsageError(`${what} is one of ${known.join(', ')}, not "${text}"`)
  return text
}
