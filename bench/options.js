import { KINDS } from './deployment.js'
import { parseStrictly, UsageError, wholeNumber } from './flags.js'
import { PEER_KINDS } from './peers/index.js'
import { SCENARIOS } from './scenarios.js'

/** Transports of Halley's clients. */
const TRANSPORTS = ['websocket', 'protobuf', 'uni_sse', 'uni_http_stream']

/**
 * @typedef {import('./deployment.js').Kind} Kind
 * @typedef {import('./deployment.js').DeploymentOptions & Measuring} Options
 * @typedef {object} Measuring
 * @property {string[]} scenarios names
 * @property {Kind} server
 * @property {Kind[]} against controls, run in turn with the server
 * @property {number} runs of each
 * @property {boolean} json
 * @property {Partial<import('./scenarios.js').Sizes>} sizes override the scenario's own
 */

const scenarioLines = Object.entries(SCENARIOS).map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)

export const HELP = `Usage: npm run bench -- [scenario ...] [flags]

Measures Halley on this machine, or a bare library under the same load. Without a scenario: all that
there are for it, one after the other.

Scenarios:
${scenarioLines.join('\n')}

What is measured:
  --server KIND      halley, uws, ws or embedded (default halley); uws and ws are the bare libraries, one process each;
                     embedded is one Halley without Redis, with as many workers as all --nodes have; socket.io, nchan and
                     centrifuge as installed by peers (below)
  --against KINDS    controls that run in turn with it, with commas; medians and ratios follow
  --runs N           runs of each (default 1; 3 with --against)
  --workers N        Halley's workers, of each node (default 2)
  --engine ENGINE    memory or redis (default memory); redis starts a redis-server for the run
  --redis ADDRESS    of a Redis that is there, instead, as in engine.redis.address; several times: shards
  --nodes N          Halleys that share a Redis (default 1); clients and publishers are spread over them
  --history          all channels keep 10 publications for 60 s, and all subscriptions recover
  --driver DRIVER    Halley's socket server: auto, uws or node (default auto)
  --transport WAY    how clients connect to Halley: websocket, protobuf (over WebSocket), uni_sse or
                     uni_http_stream (default websocket); to the bare libraries always by WebSocket

The load (each scenario has its own defaults):
  --conns N          clients
  --channels N       channels; 0: one for each client
  --rate N           publishes a second; 0: the next one as soon as one is answered
  --size BYTES       of each payload, 64 at least
  --publishers N     connections that publish
  --subscriptions N  of each client (channels)
  --seconds N        measured, after a second of warm-up
  --loaders N        processes that hold clients (default: as few as the limit of open files
                     allows, and one for each node)

Output:
  --json             a line of JSON for each run and for each comparison, instead of tables
  -h, --help         this text

Examples:
  npm run bench -- memory
  npm run bench -- fan --against uws,ws
  npm run bench -- fan --transport uni_sse
  npm run bench -- fan --rate 2000 --conns 10000 --json
  npm run bench -- fan --engine redis --nodes 2 --workers 1 --against embedded
  npm run bench -- latency --engine redis --nodes 2
  npm run bench -- channels --engine redis --nodes 2 --history

Programs with flags of their own:
  npm run bench -- gc --help                     # garbage collection, as in the published runs
  npm run bench -- watch                         # whether the gateway's figures are true, and come soon
  npm run bench -- leak --help                   # an hour of churn: heap and memory of every process stay flat
  npm run bench -- ticks --help                  # the longest event-loop ticks, idle and when all clients leave
  npm run bench -- lifecycle --help              # processor time and memory of the lifecycle log
  npm run bench -- peers --help                  # beside Socket.IO, nchan and others, as a table in Markdown
  npm run bench -- proxy --help                  # connects that an event proxy admits, all at once
  npm run bench -- hooks --help                  # what publish handlers of a hooks module cost a publication
  npm run bench -- batching --help               # one channel with batches and conflation, beside the same without
  npm run bench -- consumers --help              # from a row or a queue to subscribers
  npm run bench -- republish --help              # what a route to a queue costs clients that publish
  npm run bench -- tls --help                    # what TLS costs: memory, connects, deliveries
  npm run bench -- recovery --help               # hundreds of clients recover at once, while others publish
  npm run bench -- restarts --help               # Redis or gateways killed under load, with books kept
  npm run bench -- rolling --help                # workers replaced under load, likewise
`

/** Flags with an integer, and its minimum. */
const NUMBERS = {
  conns: 1,
  channels: 0,
  rate: 0,
  size: 64,
  publishers: 1,
  seconds: 1,
  loaders: 0,
  runs: 1,
  workers: 1,
  nodes: 1,
  subscriptions: 1,
}

const FLAGS = /** @type {const} */ ({
  server: { type: 'string', default: 'halley' },
  against: { type: 'string', default: '' },
  driver: { type: 'string', default: 'auto' },
  transport: { type: 'string', default: 'websocket' },
  engine: { type: 'string', default: 'memory' },
  redis: { type: 'string', multiple: true, default: /** @type {string[]} */ ([]) },
  history: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
})

/** @param {string[]} args @returns {Options | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const numeric = Object.fromEntries(
    Object.keys(NUMBERS).map(name => [name, { type: /** @type {const} */ ('string') }]),
  )
  const { values, positionals } = parseStrictly({
    args,
    options: { ...numeric, ...FLAGS },
    allowPositionals: true,
  })
  if (values.help) return null
  for (const name of positionals) {
    if (!Object.hasOwn(SCENARIOS, name))
      throw new UsageError(`no scenario "${name}"; there are ${Object.keys(SCENARIOS).join(', ')}`)
  }
  /** @type {Partial<Record<keyof typeof NUMBERS, number>>} */
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS)
      .map(([name, least]) => ({ name, least, text: /** @type {Record<string, any>} */ (values)[name] }))
      .filter(({ text }) => text !== undefined)
      .map(({ name, least, text }) => [name, wholeNumber(name, text, least)]),
  )
  const { runs, workers = 2, nodes = 1, ...sizes } = numbers
  const engine = /** @type {'memory' | 'redis'} */ (oneOf('--engine', values.engine, ['memory', 'redis']))
  if (engine !== 'redis' && (nodes > 1 || values.redis.length > 0))
    throw new UsageError('--nodes and --redis want --engine redis')
  const against = values.against.split(',').filter(Boolean).map(serverKind)
  const server = serverKind(values.server)
  const bare = [server, ...against].find(kind => !isHalley(kind))
  const peer = [server, ...against].find(isPeer)
  const possible = Object.keys(SCENARIOS).filter(
    name =>
      (bare === undefined || !SCENARIOS[name].halleyOnly) && (peer === undefined || SCENARIOS[name].peers),
  )
  const impossible = positionals.find(name => !possible.includes(name))
  if (impossible !== undefined)
    throw new UsageError(
      SCENARIOS[impossible].halleyOnly
        ? `${impossible} is for Halley only, not for ${bare}`
        : `${impossible} is not for ${peer}`,
    )
  return {
    scenarios: positionals.length > 0 ? positionals : possible,
    server,
    against,
    runs: runs ?? (against.length > 0 ? 3 : 1),
    workers,
    driver: oneOf('--driver', values.driver, ['auto', 'uws', 'node']),
    transport: oneOf('--transport', values.transport, TRANSPORTS),
    engine,
    redis: values.redis,
    nodes,
    history: values.history,
    json: values.json,
    sizes,
  }
}

/** @param {Kind} kind */
const isPeer = kind => /** @type {readonly string[]} */ (PEER_KINDS).includes(kind)

/** @param {Kind} kind */
const isHalley = kind => kind === 'halley' || kind === 'embedded'

/** @param {string} text */
const serverKind = text =>
  /** @type {Kind} */ (oneOf('a server', text, /** @type {readonly string[]} */ (KINDS)))

/** @param {string} what @param {string} text @param {readonly string[]} known @returns {string} */
function oneOf(what, text, known) {
  if (!known.includes(text)) throw new UsageError(`${what} is one of ${known.join(', ')}, not "${text}"`)
  return text
}
