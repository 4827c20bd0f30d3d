import { readFile, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { bytes } from '../../src/base/format.js'
import { wrap } from '../../src/base/terminal-text.js'
import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import { didYouMean } from '../../src/config/nearest.js'
import { PROVIDERS } from '../providers/index.js'
import { LIMIT_FLAGS } from '../runner/limits.js'
import { TRANSPORTS } from '../settings.js'
import { CONTROLS, isControl } from '../targets/index.js'
import {
  COMMON_HELP,
  confirmCost,
  flagsOf,
  fleetCommand,
  LIST,
  PROVIDER_FLAGS,
  PROVIDER_HELP,
  Progress,
  parseCount,
  parsePair,
  parseSeconds,
  parseSettings,
  parseStatusPort,
  providerFlags,
  SWITCH,
  TEXT,
  YES,
} from './common.js'

/** @import { Io } from '../../src/cli/command.js' */
/** @import { Provider } from '../providers/contract.js' */
/** @import { PageRun } from '../runner/page.js' */
/** @import { RunResult } from '../runner/result.js' */
/** @import { RunOptions } from '../runner/run.js' */
/** @import { Scenario } from '../scenarios/contract.js' */
/** @import { FleetSettings } from '../schema.js' */

/** Interval of progress lines if stderr is not a terminal, ms. */
const PROGRESS_INTERVAL = 5000
const MAX_SCALE = 100
const OUTPUT = /** @type {const} */ ({ type: 'string', short: 'o' })

const controlLines = Object.entries(CONTROLS)
  .map(([name, { summary }]) => `      ${name.padEnd(28)}${summary}`)
  .join('\n')
const HELP = `Usage: ${COMMAND} fleet run SCENARIO [flags]

Runs a scenario: starts a gateway and drones, measures, writes a report, and stops everything that it started. Most
scenarios repeat a published run.

      --list                      list the scenarios
      --scale X                   share of the published load: 0.1, 0.001; default 1
      --out DIR                   folder for result.json, report.html, fleet.csv and gateway.csv; default:
                                  fleet-runs/SCENARIO-TIME
      --seconds S                 measured time of each step
      --set NAME=VALUE            setting of all steps (see ${COMMAND} fleet set --help); can be repeated
      --dry-run                   print the plan and start nothing

      --step NAME[,NAME...]       only these steps: names or numbers, from 1
      --faults KIND[,KIND...]     only these disturbances of the scenario: kill-worker, cut, ...
      --rounds N                  repeat the disturbances N times in the measured time
      --runs N                    repeat the run; figures are medians (default 1; 3 with --against)
      --json                      print JSON: a line per step of each run, and per median and ratio

Server:
      --server SERVER             server to load: halley (default), or a control (below)
      --against SERVER[,...]      also run these, in turn, and print ratios; can be repeated
      --target URL[,URL...]       load this server instead of starting one; it must speak the Centrifuge protocol.
                                  Connections are spread over all URLs
      --api-key KEY               API key of the target, for publishing; default: HALLEY_FLEET_API_KEY
      --token-secret KEY          HMAC secret of the target, if connections need tokens (--set user=u{own}); default:
                                  HALLEY_FLEET_TOKEN_SECRET
      --workers N                 workers of each gateway
      --engine ENGINE             memory (default) or redis, with a Redis that the run starts (and, in chaos, stops and
                                  kills)
      --redis                     the same as --engine redis
      --redis-address ADDRESS     a running Redis, as in engine.redis.address; repeat it for shards
      --nodes N                   gateways that share the Redis; connections and publishers are spread over them
      --driver DRIVER             socket server of the gateway: auto (default), uws or node
      --transport TRANSPORT       of the connections: ${TRANSPORTS.join(', ')},
                                  protobuf (over WebSocket)
      --history                   all channels keep 10 publications for 60 s, and all subscriptions recover

Controls get the same load: single requests for publishing, WebSocket, no history.
${controlLines}
      embedded                    one gateway with the memory engine and as many workers as all --nodes
      "cmd: PROGRAM {port} {key}" any server that speaks the Centrifuge protocol

Drones:
      --provider NAME             local (default) or ec2
      --drones N                  number of drones
      --bind HOST[:PORT]          address on which the controller listens for remote drones
      --advertise HOST[:PORT]     address that remote drones dial
      --listen                    drones listen, and the controller dials them
      --status-port [HOST:]PORT   HTTP port of each drone for its status (see ${COMMAND} fleet start --help)
  -y, --yes                       confirm the cost in advance

${PROVIDER_HELP}
Limits (exit status 1 if one is violated):
      --max-p99 200ms             latency of each step: 99th percentile
      --max-mean 50ms             mean
      --max-max 2s                maximum
      --min-connections N         open connections in every measured second
      --max-bytes-per-connection 10KB   user-space memory of the gateway (from 1,000 connections on)
      --no-loss                   no message lost, duplicated, out of order or damaged; every subscription accepted and
                                  recovered; no connection closed, except by disturbances of the scenario
  -h, --help                      print this text
  -V, --version                   print the version

Examples:
  ${COMMAND} fleet run comet-million --scale 0.01
  ${COMMAND} fleet run fan-100 --scale 0.05 --max-p99 200ms --no-loss
  ${COMMAND} fleet run fan-100 --step 1 --set n=5000 --seconds 10 --against uws,ws
  ${COMMAND} fleet run chaos --redis --nodes 2 --scale 0.1 --no-loss
  ${COMMAND} fleet run one-to-one --scale 0.001 --target http://10.0.0.5:8000 --api-key KEY
`

const FLAGS = {
  ...flagsOf(SWITCH, 'list', 'dry-run', 'json', 'redis', 'history', 'listen'),
  ...flagsOf(TEXT, 'scale', 'seconds', 'target', 'api-key', 'token-secret', 'workers', 'step', 'faults'),
  ...flagsOf(TEXT, 'runs', 'server', 'engine', 'nodes', 'driver', 'transport', 'provider', 'drones', 'bind'),
  ...flagsOf(TEXT, 'advertise', 'rounds', 'status-port'),
  ...flagsOf(LIST, 'set', 'against', 'redis-address'),
  out: OUTPUT,
  yes: YES,
  ...LIMIT_FLAGS,
  ...PROVIDER_FLAGS,
}

/** @param {readonly Scenario[]} [more] scenarios in addition to fleet/scenarios */
export const runCommand = (more = []) =>
  fleetCommand({
    name: 'fleet run',
    summary: 'repeat a published run and write a report',
    help: HELP,
    flags: FLAGS,
    words: 1,

    async run(io, flags, progress) {
      const { SCENARIOS } = await import('../scenarios/index.js')
      const scenarios = [...SCENARIOS, ...more]
      if (flags.list) return list(io, scenarios)
      const parsed = await parseOptions(io, flags, scenarios)
      const provider = await PROVIDERS[parsed.providerName].load()
      const options = { ...parsed, provider }
      return flags['dry-run']
        ? await dryRun(io, options)
        : await run(io, options, flags.yes === true, progress)
    },
  })

export const fleetRun = runCommand()

/** @param {Io} io @param {readonly Scenario[]} scenarios */
function list({ stdout }, scenarios) {
  const width = Math.min(process.stdout.columns ?? 80, 120) - 2
  for (const { name, summary, source, load } of scenarios) {
    const about = `${summary}${source === '' ? '' : `; published by ${source}`}`
    const lines = [...wrap(about, width), ...wrap(load, width)]
    stdout(`${name}\n${lines.map(line => `  ${line}\n`).join('')}\n`)
  }
  return 0
}

/** @param {string | undefined} text @returns {number} share of the published load */
function scaleOf(text = '1') {
  const value = /^\d*\.?\d+(?:e-?\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(value > 0 && value <= MAX_SCALE))
    throw new UsageError(`--scale: "${text}" is not a number like 0.1 or 1, up to ${MAX_SCALE}`)
  return value
}

/** @param {string[]} pairs `name=value` @returns {Partial<FleetSettings>} */
function overridesOf(pairs) {
  const overrides = parseSettings(pairs.map(parsePair))
  if (overrides.host !== undefined) throw new UsageError('--set host: use --target instead')
  return overrides
}

/** @param {string | undefined} text URLs separated by commas @returns {string[]} base URLs */
function targetOf(text) {
  if (text === undefined) return []
  try {
    return parseSettings([['host', text]]).host ?? []
  } catch (error) {
    // The flag is the setting `host`: its errors start with that name.
    throw error instanceof UsageError ? new UsageError(error.message.replace(/^host\b/, '--target')) : error
  }
}

/** @param {Record<string, any>} flags @param {string} name @returns {number | undefined} */
const countOf = (flags, name) =>
  flags[name] === undefined ? undefined : parseCount(flags[name], `--${name}`)

/** @param {any} flags @param {string} name @param {readonly string[]} known @returns {string | undefined} */
function wordOf(flags, name, known) {
  const value = flags[name]
  if (value !== undefined && !known.includes(value))
    throw new UsageError(`--${name}: "${value}" is not one of ${known.join(', ')}`)
  return value
}

/** @param {string | undefined} text @returns {string[] | undefined} */
const listOf = text => text?.split(',').filter(Boolean)

/** @param {Record<string, any>} flags @param {readonly string[]} variants default servers @returns {string[]} */
function serversOf({ server, against = [], target }, variants) {
  const others = against.flatMap((/** @type {string} */ text) =>
    text.startsWith('cmd:') ? [text] : listOf(text),
  )
  const own = variants.length > 0 ? variants : ['halley']
  const servers = [...(server === undefined ? own : [server]), ...others]
  for (const name of servers) {
    const known = [...own, 'embedded', ...Object.keys(CONTROLS)]
    if (isControl(name) || known.includes(name)) continue
    throw new UsageError(
      `unknown server "${name}"${didYouMean(name, known)}: use ${known.join(', ')} or "cmd: ..."`,
    )
  }
  if (target !== undefined && (servers.length > 1 || (server ?? 'halley') !== 'halley'))
    throw new UsageError('--target cannot be combined with --server or --against')
  return servers
}

/** @param {Record<string, any>} flags @returns {boolean} whether the engine is Redis */
function usesRedis(flags) {
  const engine = wordOf(flags, 'engine', ['memory', 'redis'])
  const redis = engine === 'redis' || flags.redis === true || flags['redis-address'] !== undefined
  if (redis && engine === 'memory') throw new UsageError('--redis cannot be combined with --engine memory')
  return redis
}

/** @param {Io} io @param {Record<string, any>} flags @param {readonly Scenario[]} scenarios */
async function parseOptions({ env, cwd }, flags, scenarios) {
  const { findScenario } = await import('../scenarios/index.js')
  const { parseLimits } = await import('../runner/limits.js')
  const [name] = flags.words
  if (name === undefined) throw new UsageError('SCENARIO is missing (--list shows all)')
  const scenario = findScenario(name, scenarios)
  const providerName = flags.provider ?? 'local'
  const servers = serversOf(flags, scenario.variants ?? [])
  const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')
  return {
    scenario,
    scale: scaleOf(flags.scale),
    out: resolve(cwd, flags.out ?? `fleet-runs/${name}-${time}`),
    target: targetOf(flags.target),
    redis: usesRedis(flags),
    redisAddresses: flags['redis-address'],
    nodes: countOf(flags, 'nodes'),
    driver: wordOf(flags, 'driver', ['auto', 'uws', 'node']),
    transport: /** @type {any} */ (wordOf(flags, 'transport', [...TRANSPORTS, 'protobuf'])),
    history: flags.history === true,
    servers,
    runs: countOf(flags, 'runs') ?? (servers.length > 1 ? 3 : 1),
    steps: listOf(flags.step),
    faults: listOf(flags.faults),
    rounds: countOf(flags, 'rounds'),
    json: flags.json === true,
    drones: countOf(flags, 'drones'),
    workers: countOf(flags, 'workers'),
    seconds: flags.seconds === undefined ? undefined : Math.max(1, parseSeconds(flags.seconds, '--seconds')),
    overrides: overridesOf(flags.set ?? []),
    apiKey: flags['api-key'] ?? env.HALLEY_FLEET_API_KEY,
    tokenSecret: flags['token-secret'] ?? env.HALLEY_FLEET_TOKEN_SECRET,
    limits: parseLimits(flags),
    control: { bind: flags.bind, advertise: flags.advertise, listen: flags.listen },
    statusPort: parseStatusPort(flags['status-port']),
    providerName,
    flags: providerFlags(flags, providerName),
  }
}

/** @typedef {Awaited<ReturnType<typeof parseOptions>> & {provider: Provider}} Options */

const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])

/** @param {Io} io @param {Options} options @param {boolean} yes @param {Progress} progress */
async function run(io, options, yes, progress) {
  const abort = new AbortController()
  const onSignal = (/** @type {NodeJS.Signals} */ signal) => {
    // A second signal exits immediately; without the runner, its processes exit.
    if (abort.signal.aborted) process.exit(128 + constants.signals[signal])
    progress.line('stopping the run; results so far are kept (press Ctrl-C again to exit immediately)')
    abort.abort()
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  let shownAt = 0
  try {
    const run = {
      ...options,
      signal: abort.signal,
      log: (/** @type {string} */ text) => progress.line(text),
      progress(/** @type {string} */ text) {
        if (!process.stderr.isTTY && Date.now() - shownAt < PROGRESS_INTERVAL) return
        shownAt = Date.now()
        progress.show(text)
      },
      confirm: (/** @type {Parameters<typeof confirmCost>[0]} */ plan) => confirmCost(plan, yes, progress),
    }
    return await (options.scenario.table || options.servers.length * options.runs > 1
      ? runMany(io, run, progress)
      : runOnce(io, run, progress))
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/** @typedef {Options & Pick<RunOptions, 'signal' | 'log' | 'progress'>} Started */

/** @param {Io} io @param {Started} options @param {Progress} progress @returns {Promise<number>} exit status */
async function runOnce(io, options, progress) {
  const { runScenario } = await import('../runner/run.js')
  const [server] = options.servers
  const { result, failure } = await runScenario({ ...options, server })
  progress.clear()
  if (options.json) await jsonLines(io, server, 1, result)
  return await conclude(io, result, failure, options.json ? '' : options.out)
}

/** @param {Io} io @param {Started} options @param {Progress} progress @returns {Promise<number>} exit status */
async function runMany(io, options, progress) {
  const { compare, comparisonText, runSeries, writeSeries } = await import('../runner/series.js')
  const { servers, runs, scenario, out, json } = options
  let code = 0
  let waiting = Promise.resolve()
  const made = await runSeries(options, servers, runs, ({ server, run, result, failure }) => {
    progress.clear()
    waiting = waiting.then(async () => {
      if (json) await jsonLines(io, server, run, result)
      code = Math.max(code, await conclude(io, result, failure, ''))
    })
  })
  await waiting
  progress.clear()
  const comparisons = compare(made)
  await writeSeries(out, scenario.name, made, comparisons)
  const print = (/** @type {object} */ line) =>
    io.stdout(`${JSON.stringify({ scenario: scenario.name, ...line })}\n`)
  if (json)
    for (const { step, medians, ratios, runs: count } of comparisons) {
      for (const { name: server, result } of medians) print({ server, step, median_of: count, ...result })
      for (const { name, result } of ratios)
        print({ server: servers[0], step, ratio_to: name.slice('ratio to '.length), ...result })
    }
  else io.stdout(`${comparisonText(scenario.name, comparisons)}\n${out}/report.html\n${out}/table.md\n`)
  return made.length < servers.length * runs ? 1 : code
}

/** @param {Io} io @param {string} server @param {number} run @param {RunResult} result */
async function jsonLines({ stdout }, server, run, { scenario, steps }) {
  const { figuresOf } = await import('../runner/figures.js')
  for (const step of steps)
    stdout(`${JSON.stringify({ scenario, server, run, step: step.name, ...figuresOf(step) })}\n`)
}

/**
 * @param {Io} io @param {RunResult} result @param {string} failure
 * @param {string} out folder of the report; '': print none
 */
async function conclude({ stdout, stderr }, result, failure, out) {
  const { limitText } = await import('../runner/limits.js')
  const { verdictOf } = await import('../runner/summary.js')
  const { title, lines } = verdictOf(result)
  const broken = result.limits.filter(limit => limit.broken)
  if (out !== '') {
    for (const limit of result.limits)
      stdout(`${limit.broken ? 'violated' : 'met     '}  ${limitText(limit)}\n`)
    // Lines about limits begin with their flags; they are printed above.
    stdout(`${title}. ${lines.filter(line => !line.startsWith('--')).join(' ')}\n`)
    stdout(`${out}/report.html\n`)
  }
  if (failure !== '') stderr(`halley: ${failure}\n`)
  if (broken.length > 0)
    stderr(`halley: ${broken.length} ${broken.length === 1 ? 'limit' : 'limits'} violated\n`)
  return failure !== '' || broken.length > 0 || result.partial ? 1 : 0
}

/** @param {Io} io @param {Options} options */
async function dryRun({ stdout }, options) {
  const { dryLaunch, planLines, planRun } = await import('../runner/plan.js')
  const server = options.servers[0]
  const plan = await planRun({ ...options, server, local: options.providerName === 'local' })
  const launch = await dryLaunch(plan, options)
  stdout(
    `${[...planLines(options.scenario, plan, { ...options, server }), ...launch, 'nothing was started'].join('\n')}\n`,
  )
}

export const fleetReport = fleetCommand({
  name: 'fleet report',
  summary: 'make a report of one run, or of several side by side',
  help: `Usage: ${COMMAND} fleet report DIR [DIR2 ...] -o FILE.html [flags]

Makes an HTML report of a run from its folder (result.json, and gateway.csv if it exists). Several runs are compared:
two servers under the same load, or one before and after a change.

  -o, --output FILE          HTML file to write
      --title TEXT           title of the page
      --label TEXT           name of a run, once per folder; default: the folder names
${COMMON_HELP}

Examples:
  ${COMMAND} fleet report fleet-runs/fan-100-20260101-120000 -o fan.html
  ${COMMAND} fleet report ours theirs -o both.html --label Ours --label Theirs
`,
  flags: { output: OUTPUT, title: TEXT, label: LIST },
  words: 50,

  async run({ cwd, stdout }, { words: folders, output, title, label: labels = [] }) {
    if (folders.length === 0) throw new UsageError('DIR is missing: the folder of a run')
    if (output === undefined) throw new UsageError('--output is missing')
    if (labels.length > folders.length)
      throw new UsageError(`${labels.length} labels given for ${folders.length} folders`)
    const { makePage } = await import('../runner/page.js')
    const { writeWhole } = await import('../files.js')
    const runs = []
    for (const [at, folder] of folders.entries())
      runs.push(await readRun(resolve(cwd, folder), folder, labels[at]))
    const page = await makePage(runs, { title })
    await writeWhole(resolve(cwd, output), page)
    stdout(`${output}: ${bytes(Buffer.byteLength(page))}\n`)
  },
})

/** @param {string} folder @param {string} name as given by the user @param {string} [label] @returns {Promise<PageRun>} */
async function readRun(folder, name, label) {
  const { parseResult } = await import('../runner/result.js')
  const file = join(folder, 'result.json')
  const text = await readFile(file, 'utf8').catch(error => {
    throw new Error(
      `${name}: not the folder of a run: result.json cannot be read (${error.code ?? error.message})`,
    )
  })
  /** @type {RunResult} */
  let result
  try {
    result = parseResult(text)
  } catch (error) {
    throw new Error(`${name}/result.json: ${error.message}`)
  }
  if (result.steps.length === 0) throw new Error(`${name}/result.json: nothing was measured`)
  const csv = join(folder, 'gateway.csv')
  const isThere = result.gateway !== null && (await stat(csv).catch(() => null)) !== null
  return { result, csv: isThere ? csv : null, label: label ?? basename(folder) }
}
