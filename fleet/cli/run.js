import { constants } from 'node:os'
import { resolve } from 'node:path'
import { wrap } from '../../src/base/terminal-text.js'
import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import { PROVIDERS } from '../providers/index.js'
import { LIMIT_FLAGS } from '../runner/limits.js'
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

Server:
      --target URL[,URL...]       load this server instead of starting a gateway; it must speak the Centrifuge protocol.
                                  Connections are spread over all URLs
      --api-key KEY               API key of the target, for publishing; default: HALLEY_FLEET_API_KEY
      --token-secret KEY          HMAC secret of the target, if connections need tokens (--set user=u{own}); default:
                                  HALLEY_FLEET_TOKEN_SECRET
      --workers N                 workers of the gateway
      --redis                     use the Redis engine, with a Redis that the run starts (and, in chaos, stops and
                                  restarts)

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
  ${COMMAND} fleet run chaos --redis --scale 0.1 --no-loss
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
  redis: { type: 'boolean' },
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
  const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')
  return {
    scenario,
    scale: scaleOf(flags.scale),
    out: resolve(cwd, flags.out ?? `fleet-runs/${name}-${time}`),
    target: targetOf(flags.target),
    redis: flags.redis === true,
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
  const { runScenario } = await import('../runner/run.js')
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
    const { result, failure } = await runScenario({
      ...options,
      signal: abort.signal,
      log: text => progress.line(text),
      progress(text) {
        if (!process.stderr.isTTY && Date.now() - shownAt < PROGRESS_INTERVAL) return
        shownAt = Date.now()
        progress.show(text)
      },
      confirm: plan => confirmCost(plan, yes, progress),
    })
    progress.clear()
    return await conclude(io, result, failure, options.out)
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/**
 * @param {Io} io @param {import('../runner/result.js').RunResult} result @param {string} failure @param {string} out
 * @returns {Promise<number>} exit status
 */
async function conclude({ stdout, stderr }, result, failure, out) {
  const { limitText } = await import('../runner/limits.js')
  const { verdictOf } = await import('../runner/summary.js')
  const { title, lines } = verdictOf(result)
  const broken = result.limits.filter(limit => limit.broken)
  for (const limit of result.limits) stdout(`${limit.broken ? 'broken' : 'holds '}  ${limitText(limit)}\n`)
  // Lines about limits begin with their flags; they are printed above.
  stdout(`${title}. ${lines.filter(line => !line.startsWith('--')).join(' ')}\n`)
  stdout(`${out}/report.html\n`)
  if (failure !== '') stderr(`halley: ${failure}\n`)
  if (broken.length > 0)
    stderr(`halley: ${broken.length === 1 ? 'a limit is' : `${broken.length} limits are`} broken\n`)
  return failure !== '' || broken.length > 0 || result.partial ? 1 : 0
}

/** @param {Io} io @param {Options} options */
async function dryRun({ stdout }, options) {
  const { dryLaunch, planLines, planRun } = await import('../runner/plan.js')
  const plan = await planRun({ ...options, local: options.providerName === 'local' })
  const launch = await dryLaunch(plan, options)
  stdout(`${[...planLines(options.scenario, plan, options), ...launch, 'nothing was started'].join('\n')}\n`)
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
