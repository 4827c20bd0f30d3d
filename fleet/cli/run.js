import { constants } from 'node:os'
import { resolve } from 'node:path'
import { wrap } from '../../src/base/terminal-text.js'
import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import { didYouMean } from '../../src/config/nearest.js'
import { PROVIDERS } from '../providers/index.js'
import { LIMIT_FLAGS } from '../runner/limits.js'
import { TRANSPORTS } from '../settings.js'
import { CONTROLS, isControl } from '../targets/index.js'
import {
  askYesNo,
  fleetCommand,
  PROVIDER_FLAGS,
  PROVIDER_HELP,
  Progress,
  parseCount,
  parsePair,
  parseSeconds,
  parseSettings,
  priceText,
  providerFlags,
} from './common.js'

/** @typedef {import('../../src/cli/command.js').Io} Io */

/** ms between two lines of progress when stderr is not a terminal. */
const PROGRESS_INTERVAL = 5000
const MAX_SCALE = 100
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
      --dry-run                   print the plan, and start nothing

      --step NAME[,NAME...]       only these steps: names or numbers, from 1
      --faults KIND[,KIND...]     only these disturbances of the scenario: kill-worker, cut, ...
      --rounds N                  have them N times in the measured time
      --runs N                    repeat the run; figures are medians (default 1; 3 with --against)
      --json                      a line of JSON for each step of each run, and for medians and ratios

Server:
      --server SERVER             what is loaded: halley (default), or a control (below)
      --against SERVER[,...]      run these in turn with it, and print ratios. Can be repeated
      --target URL[,URL...]       load this server instead of starting one; it must speak the Centrifuge protocol.
                                  Connections are spread over all URLs
      --api-key KEY               API key of the target, for publishing; default: HALLEY_FLEET_API_KEY
      --token-secret KEY          HMAC secret of the target, if connections need tokens (--set user=u{own}); default:
                                  HALLEY_FLEET_TOKEN_SECRET
      --workers N                 workers of each gateway
      --engine ENGINE             memory (default) or redis, with a Redis that the run starts (and, in chaos, stops and
                                  kills)
      --redis                     the same as --engine redis
      --redis-address ADDRESS     a running Redis, as in engine.redis.address; several times: shards
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
  -y, --yes                       confirm the cost in advance

${PROVIDER_HELP}
Limits (exit status 1 if one is broken):
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

/** @type {Record<string, import('../../src/cli/args.js').Flag>} */
const FLAGS = {
  list: { type: 'boolean' },
  scale: { type: 'string' },
  out: { type: 'string', short: 'o' },
  seconds: { type: 'string' },
  set: { type: 'string', multiple: true },
  'dry-run': { type: 'boolean' },
  target: { type: 'string' },
  'api-key': { type: 'string' },
  'token-secret': { type: 'string' },
  workers: { type: 'string' },
  step: { type: 'string' },
  faults: { type: 'string' },
  rounds: { type: 'string' },
  runs: { type: 'string' },
  json: { type: 'boolean' },
  server: { type: 'string' },
  against: { type: 'string', multiple: true },
  engine: { type: 'string' },
  redis: { type: 'boolean' },
  'redis-address': { type: 'string', multiple: true },
  nodes: { type: 'string' },
  driver: { type: 'string' },
  transport: { type: 'string' },
  history: { type: 'boolean' },
  provider: { type: 'string' },
  drones: { type: 'string' },
  bind: { type: 'string' },
  advertise: { type: 'string' },
  listen: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
  ...LIMIT_FLAGS,
  ...PROVIDER_FLAGS,
}

export const fleetRun = fleetCommand({
  name: 'fleet run',
  summary: 'repeat a published run and write a report',
  help: HELP,
  flags: FLAGS,
  words: 1,

  async run(io, flags, progress) {
    const { SCENARIOS } = await import('../scenarios/index.js')
    if (flags.list) return list(io, SCENARIOS)
    const parsed = await parseOptions(io, flags)
    const provider = await PROVIDERS[parsed.providerName].load()
    const options = { ...parsed, provider }
    return flags['dry-run'] ? await dryRun(io, options) : await run(io, options, flags.yes === true, progress)
  },
})

/** @param {Io} io @param {readonly import('../scenarios/contract.js').Scenario[]} scenarios */
function list({ stdout }, scenarios) {
  const width = Math.min(process.stdout.columns ?? 80, 120) - 2
  for (const { name, summary, source, load } of scenarios) {
    const about = `${summary}${source === '' ? '' : `; published by ${source}`}`
    const lines = [...wrap(about, width), ...wrap(load, width)]
    stdout(`${name}\n${lines.map(line => `  ${line}\n`).join('')}\n`)
  }
  return 0
}

/** @param {string | undefined} text @returns {number} share of the published load @throws {UsageError} */
function scaleOf(text = '1') {
  const value = /^\d*\.?\d+(?:e-?\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(value > 0 && value <= MAX_SCALE))
    throw new UsageError(`--scale: "${text}" is not a number like 0.1 or 1, up to ${MAX_SCALE}`)
  return value
}

/**
 * @param {string[]} pairs `name=value`
 * @returns {Partial<import('../schema.js').FleetSettings>} @throws {UsageError}
 */
function overridesOf(pairs) {
  const overrides = parseSettings(pairs.map(parsePair))
  if (overrides.host !== undefined) throw new UsageError('--set host: use --target instead')
  return overrides
}

/** @param {string | undefined} text URLs separated by commas @returns {string[]} base URLs @throws {UsageError} */
function targetOf(text) {
  if (text === undefined) return []
  try {
    return parseSettings([['host', text]]).host ?? []
  } catch (error) {
    // The flag is the setting `host`, and its errors begin with that name.
    throw error instanceof UsageError ? new UsageError(error.message.replace(/^host\b/, '--target')) : error
  }
}

/** @param {Record<string, any>} flags @param {string} name @returns {number | undefined} @throws {UsageError} */
const countOf = (flags, name) =>
  flags[name] === undefined ? undefined : parseCount(flags[name], `--${name}`)

/**
 * @param {Record<string, any>} flags @param {string} name @param {readonly string[]} known
 * @returns {string | undefined} @throws {UsageError}
 */
function wordOf(flags, name, known) {
  const value = flags[name]
  if (value !== undefined && !known.includes(value))
    throw new UsageError(`--${name}: "${value}" is not one of ${known.join(', ')}`)
  return value
}

/** @param {string | undefined} text @returns {string[] | undefined} */
const listOf = text => text?.split(',').filter(Boolean)

/**
 * @param {Record<string, any>} flags
 * @returns {string[]} the loaded server, and those that it is compared with @throws {UsageError}
 */
function serversOf({ server = 'halley', against = [], target }) {
  const others = against.flatMap((/** @type {string} */ text) =>
    text.startsWith('cmd:') ? [text] : listOf(text),
  )
  const servers = [server, ...others]
  for (const name of servers) {
    if (isControl(name) || ['halley', 'embedded'].includes(name)) continue
    const known = ['halley', 'embedded', ...Object.keys(CONTROLS)]
    throw new UsageError(
      `unknown server "${name}"${didYouMean(name, known)}: use ${known.join(', ')} or "cmd: ..."`,
    )
  }
  if (target !== undefined && (others.length > 0 || server !== 'halley'))
    throw new UsageError('--target cannot be combined with --server or --against')
  return servers
}

/** @param {Record<string, any>} flags @returns {boolean} whether the engine is Redis @throws {UsageError} */
function usesRedis(flags) {
  const engine = wordOf(flags, 'engine', ['memory', 'redis'])
  const redis = engine === 'redis' || flags.redis === true || flags['redis-address'] !== undefined
  if (redis && engine === 'memory') throw new UsageError('--redis cannot be combined with --engine memory')
  return redis
}

/** @param {string} name @throws {UsageError} */
async function scenarioOf(name) {
  const { findScenario, UnknownScenarioError } = await import('../scenarios/index.js')
  try {
    return findScenario(name)
  } catch (error) {
    throw error instanceof UnknownScenarioError ? new UsageError(error.message) : error
  }
}

/** @param {Io} io @param {Record<string, any>} flags @throws {UsageError} */
async function parseOptions({ env, cwd }, flags) {
  const { parseLimits } = await import('../runner/limits.js')
  const [name] = flags.words
  if (name === undefined) throw new UsageError('no scenario given (--list shows all)')
  const scenario = await scenarioOf(name)
  const providerName = flags.provider ?? 'local'
  const servers = serversOf(flags)
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
    providerName,
    flags: providerFlags(flags, providerName),
  }
}

/** @typedef {import('../providers/contract.js').Provider} Provider */
/** @typedef {Awaited<ReturnType<typeof parseOptions>> & {provider: Provider}} Options */

const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])

/** @param {Io} io @param {Options} options @param {boolean} yes @param {Progress} progress */
async function run(io, options, yes, progress) {
  const abort = new AbortController()
  const onSignal = (/** @type {NodeJS.Signals} */ signal) => {
    // A second signal ends at once; without the runner, the processes that it started end by themselves.
    if (abort.signal.aborted) process.exit(128 + constants.signals[signal])
    progress.line('ending the run; results so far are kept (press again to quit at once)')
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
      confirm: (/** @type {import('../providers/contract.js').LaunchPlan} */ plan) =>
        confirmCost(plan, yes, progress),
    }
    return await (options.servers.length * options.runs > 1
      ? runMany(io, run, progress)
      : runOnce(io, run, progress))
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/** @typedef {Options & Pick<import('../runner/run.js').RunOptions, 'signal' | 'log' | 'progress'>} Started */

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
  if (json)
    for (const { step, medians, ratios, runs: count } of comparisons) {
      for (const { name: server, result } of medians)
        io.stdout(
          `${JSON.stringify({ scenario: scenario.name, server, step, median_of: count, ...result })}\n`,
        )
      for (const { name, result } of ratios)
        io.stdout(
          `${JSON.stringify({ scenario: scenario.name, server: servers[0], step, ratio_to: name.slice('ratio to '.length), ...result })}\n`,
        )
    }
  else io.stdout(`${comparisonText(scenario.name, comparisons)}\n${out}/report.html\n${out}/table.md\n`)
  return made.length < servers.length * runs ? 1 : code
}

/** @param {Io} io @param {string} server @param {number} run @param {import('../runner/result.js').RunResult} result */
async function jsonLines({ stdout }, server, run, { scenario, steps }) {
  const { figuresOf } = await import('../runner/figures.js')
  for (const step of steps)
    stdout(`${JSON.stringify({ scenario, server, run, step: step.name, ...figuresOf(step) })}\n`)
}

/**
 * @param {Io} io @param {import('../runner/result.js').RunResult} result @param {string} failure
 * @param {string} out folder of the report; '': nothing is printed to standard output
 * @returns {Promise<number>} exit status
 */
async function conclude({ stdout, stderr }, result, failure, out) {
  const { limitText } = await import('../runner/limits.js')
  const { verdictOf } = await import('../runner/summary.js')
  const { title, lines } = verdictOf(result)
  const broken = result.limits.filter(limit => limit.broken)
  if (out !== '') {
    for (const limit of result.limits) stdout(`${limit.broken ? 'broken' : 'holds '}  ${limitText(limit)}\n`)
    // Lines about limits begin with their flags; they are printed above.
    stdout(`${title}. ${lines.filter(line => !line.startsWith('--')).join(' ')}\n`)
    stdout(`${out}/report.html\n`)
  }
  if (failure !== '') stderr(`halley: ${failure}\n`)
  if (broken.length > 0)
    stderr(`halley: ${broken.length === 1 ? 'a limit is' : `${broken.length} limits are`} broken\n`)
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

/** @param {import('../providers/contract.js').LaunchPlan} plan @param {boolean} yes @param {Progress} progress */
async function confirmCost({ lines, price }, yes, progress) {
  if (price === null) return true
  for (const line of lines) progress.line(line)
  progress.line(priceText(price))
  if (yes) return true
  if (!process.stdin.isTTY) {
    progress.line('this costs money: pass --yes to confirm without a terminal')
    return false
  }
  return await askYesNo('Launch these drones?', '')
}
