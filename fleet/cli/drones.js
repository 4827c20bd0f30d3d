import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import {
  askYesNo,
  COMMON_HELP,
  confirmCost,
  DIR_HELP,
  dirOf,
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
  priceText,
  providerFlags,
  SWITCH,
  shown,
  TEXT,
  YES,
} from './common.js'

/** @import { Io } from '../../src/cli/command.js' */
/** @import { Handle } from '../schema.js' */

export const fleetStart = fleetCommand({
  name: 'fleet start',
  summary: 'launch load drones',
  help: `Usage: ${COMMAND} fleet start N [flags]

Launches N load drones, on this machine or on EC2, and a controller that executes the other commands. They run
until \`${COMMAND} fleet stop\`. Another \`start\` adds drones.

      --host URL             target, http://127.0.0.1:8000; can be repeated: connections are spread over the targets
      --allow HOST[:PORT]    the only targets that these drones may connect to, whatever their settings; default: --host
      --set NAME=VALUE       initial value of a setting (see ${COMMAND} fleet set --help); can be repeated
      --api-key KEY          key of the target's server API, for publishing; prefer HALLEY_FLEET_API_KEY, which other
                             users cannot see
      --token-secret SECRET  HMAC secret to sign connection tokens with; prefer HALLEY_FLEET_TOKEN_SECRET
      --provider NAME        local (default) or ec2
      --dry-run              print the launch plan and launch nothing
  -y, --yes                  confirm the cost in advance
      --keep                 if some drones do not start, keep the others instead of stopping all
      --patience TIME        time a drone has to report to the controller; default 20s, on EC2 5m
      --per-process N        connections per process of a drone
      --orphan-after TIME    a drone stops its load after this time without a controller; default 30s
      --exit-after TIME      a drone exits after this time without a controller; default 10m, local 2m; 0: never
      --bind HOST[:PORT]     address on which the controller listens for drones; default: a free port of 127.0.0.1, for
                             EC2 of 0.0.0.0
      --advertise HOST[:PORT]  address that drones dial, if it is not that of --bind
      --listen               drones listen, and the controller dials them
      --status-port [HOST:]PORT  HTTP port of each drone for its status: one line of text at /, JSON at /json. HOST is
                             127.0.0.1 by default. On this machine the second drone has PORT + 1, and so on
${DIR_HELP}
${COMMON_HELP}

${PROVIDER_HELP}
Examples:
  ${COMMAND} fleet start 2 --host http://127.0.0.1:8000 --set n=10000
  ${COMMAND} fleet start 2 --host http://127.0.0.1:8000 --status-port 8880
  ${COMMAND} fleet start 40 --provider ec2 --region eu-west-1,us-east-1 --host https://gateway.example.com --dry-run
`,
  flags: {
    ...flagsOf(LIST, 'host', 'allow', 'set'),
    ...flagsOf(TEXT, 'api-key', 'token-secret', 'provider', 'patience', 'per-process', 'orphan-after'),
    ...flagsOf(TEXT, 'exit-after', 'bind', 'advertise', 'dir', 'status-port'),
    ...flagsOf(SWITCH, 'dry-run', 'keep', 'listen'),
    yes: YES,
    ...PROVIDER_FLAGS,
  },
  words: 1,

  async run(io, flags, progress) {
    const request = await requestOf(io, flags)
    await (flags['dry-run'] ? dryRun(io, request) : start(io, request, flags.yes === true, progress))
  },
})

/** @param {Io} io @param {Record<string, any>} flags */
async function requestOf(io, flags) {
  const { allowedTargets } = await import('../controller/launch.js')
  const { readState } = await import('../controller/folder.js')
  const n = parseCount(flags.words[0], 'the number of drones')
  const dir = dirOf(io, flags)
  const known = await readState(dir).catch(() => null)
  const providerName = flags.provider ?? known?.provider ?? 'local'
  /** @type {[string, string][]} */
  const pairs = (flags.set ?? []).map(parsePair)
  if (flags.host !== undefined) pairs.push(['host', flags.host.join(',')])
  const settings = parseSettings(pairs)
  const time = (/** @type {string} */ name) =>
    flags[name] === undefined ? undefined : parseSeconds(flags[name], `--${name}`)
  const patience = time('patience')
  const { provider, bind, advertise, 'per-process': perProcess } = flags
  return {
    dir,
    n,
    providerName,
    provider,
    flags: providerFlags(flags, providerName),
    bind,
    advertise,
    settings,
    keep: flags.keep === true,
    timeout: patience === undefined ? undefined : patience * 1000,
    launch: {
      allow: flags.allow?.map(target) ?? allowedTargets(settings.host ?? []),
      apiKey: flags['api-key'] ?? io.env.HALLEY_FLEET_API_KEY,
      tokenSecret: flags['token-secret'] ?? io.env.HALLEY_FLEET_TOKEN_SECRET,
      perProcess: perProcess === undefined ? undefined : parseCount(perProcess, '--per-process', 1e6),
      orphanAfter: time('orphan-after'),
      exitAfter: time('exit-after'),
      listen: flags.listen === true,
      statusPort: parseStatusPort(flags['status-port']),
    },
  }
}

/** @param {string} text @returns {string} @throws {UsageError} no target has this form */
function target(text) {
  if (/^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.test(text)) return text
  throw new UsageError(`--allow: "${text}" is not HOST or HOST:PORT`)
}

/** @typedef {Awaited<ReturnType<typeof requestOf>>} Request */

/** Prints the launch plan without starting a controller. @param {Io} io @param {Request} request */
async function dryRun({ stdout }, { dir, n, providerName, flags, bind, advertise, settings, launch }) {
  const { allowedTargets, launchConfigs, hostForDrones } = await import('../controller/launch.js')
  const { addressOf } = await import('../controller/links.js')
  const { readState } = await import('../controller/folder.js')
  const { PROVIDERS } = await import('../providers/index.js')
  const known = await readState(dir)
  const provider = await PROVIDERS[providerName].load()
  const at = known ?? addressOf(bind ?? provider.bind ?? '127.0.0.1')
  const advertised = addressOf(known?.advertise || advertise || hostForDrones(at.host))
  const allow = launch.allow.length > 0 ? launch.allow : allowedTargets(known?.settings.host ?? [])
  if (allow.length === 0)
    throw new UsageError('--host or --allow must name the targets that the drones may connect to')
  const configs = await launchConfigs({
    run: {
      run: known?.run ?? 'new-run',
      secret: '0'.repeat(64),
      next: known?.next ?? 1,
      controller: `${advertised.host}:${advertised.port || at.port}`,
    },
    count: n,
    provider,
    launch: { ...launch, allow },
  })
  const before = known !== null && known.drones.length > 0 ? known.flags : {}
  const plan = await provider.plan({ drones: configs, flags: flags ?? before, dir })
  const { price } = plan
  for (const line of plan.lines) stdout(`${line}\n`)
  if (!launch.listen && (advertised.port || at.port) === 0)
    stdout('port 0: the controller chooses a free port when it starts\n')
  for (const [name, value] of Object.entries(settings)) stdout(`then: set ${name} ${shown(value)}\n`)
  stdout(price === null ? 'cost: none\n' : `${priceText(price)}\n`)
  stdout('nothing was launched\n')
}

/** @param {Io} io @param {Request} request @param {boolean} yes @param {Progress} progress */
async function start({ stdout, stderr }, request, yes, progress) {
  const { sendCommand } = await import('../controller/client.js')
  const abort = new AbortController()
  const onSignal = () => {
    // The second Ctrl-C exits immediately; the controller reverts the launch.
    if (abort.signal.aborted) process.exit(130)
    progress.line(
      request.keep ? 'interrupted: keeping running drones' : 'interrupted: stopping launched drones',
    )
    abort.abort()
  }
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, onSignal)
  const { dir, ...params } = request
  const { up, fault, warnings } = await sendCommand(dir, 'start', params, {
    fresh: true,
    signal: abort.signal,
    onProgress: text => progress.show(text),
    onPlan: async plan => {
      if (plan.price === null) progress.line(plan.lines[0])
      return await confirmCost(plan, yes, progress)
    },
  })
  progress.clear()
  for (const text of warnings) stderr(`halley: ${text}\n`)
  if (fault !== '') stderr(`halley: ${fault}\n`)
  stdout(`${up.length} ${up.length === 1 ? 'drone is' : 'drones are'} up\n`)
}

export const fleetStop = fleetCommand({
  name: 'fleet stop',
  summary: 'stop drones',
  help: `Usage: ${COMMAND} fleet stop N|all [flags]

Stops the N drones launched last; the others take over their connections. \`stop all\` stops every drone and the
controller, including orphans of a killed controller: processes of this folder and, with --provider ec2, instances
tagged as drones of any run. statistics.csv and controller.log stay in the folder.

      --provider NAME        also stop orphans of this provider, of any run
  -y, --yes                  confirm in advance that instances of other runs are stopped
${DIR_HELP}
${COMMON_HELP}

${PROVIDER_HELP}
Examples:
  ${COMMAND} fleet stop 2
  ${COMMAND} fleet stop all
  ${COMMAND} fleet stop all --provider ec2 --region eu-west-1
`,
  flags: { provider: TEXT, yes: YES, dir: TEXT, ...PROVIDER_FLAGS },
  words: 1,

  async run(io, flags, progress) {
    const [word] = flags.words
    if (word === undefined) throw new UsageError('the number of drones is missing: N or all')
    const { provider } = flags
    const own = provider === undefined ? {} : (providerFlags(flags, provider) ?? {})
    const dir = dirOf(io, flags)
    if (word === 'all')
      return await stopAll(io, { dir, provider, flags: own, yes: flags.yes === true, progress })
    const n = parseCount(word, 'the number of drones')
    const { sendCommand } = await import('../controller/client.js')
    const { ids, left } = await sendCommand(dir, 'stop', { n }, { onProgress: text => progress.show(text) })
    progress.clear()
    const rest = left === 0 ? 'no drones left' : `${left} left`
    const fewer = ids.length < n ? ` (requested ${n}, only ${ids.length} running)` : ''
    io.stdout(`stopped: ${ids.join(', ') || 'none'}; ${rest}${fewer}\n`)
  },
})

/**
 * @param {Io} io
 * @param {{dir: string, provider?: string, flags: Record<string, any>, yes: boolean, progress: Progress}} options
 */
async function stopAll({ stdout, stderr }, { dir, provider, flags, yes, progress }) {
  const { controllerEnded, NoFleetError, sendCommand, stopOrphans } = await import('../controller/client.js')
  const { lockOwner, readState } = await import('../controller/folder.js')
  const onProgress = (/** @type {string} */ text) => progress.show(text)
  let ended = 0
  /** @param {Omit<Parameters<typeof stopOrphans>[0], 'dir' | 'onProgress'>} options */
  const stop = async options => {
    ended += (await stopOrphans({ dir, onProgress, ...options })).length
  }
  try {
    ended += (await sendCommand(dir, 'stop', { n: 'all' }, { onProgress })).ids.length
    await controllerEnded(dir)
  } catch (error) {
    progress.clear()
    if (!(error instanceof NoFleetError)) {
      if ((await lockOwner(dir)) !== 0) throw error
      // Stop drones even if the controller does not start.
      stderr(`halley: ${error.message}\n`)
      const state = await readState(dir).catch(() => null)
      if (state !== null) await stop({ provider: state.provider, runs: [state.run], flags: state.flags })
      else if (provider === undefined)
        stderr(
          `halley: the state of the fleet is unreadable; if its drones run on EC2, stop them with \`${COMMAND} fleet stop all --provider ec2\`\n`,
        )
    }
  }
  await stop({ provider: 'local', flags: {} })
  if (provider !== undefined && provider !== 'local')
    await stop({ provider, flags, confirm: handles => confirmStop(handles, yes, progress) })
  progress.clear()
  stdout(ended === 0 ? 'no drones were running\n' : `stopped: ${ended} ${ended === 1 ? 'drone' : 'drones'}\n`)
}

/** @param {Handle[]} handles @param {boolean} yes @param {Progress} progress */
async function confirmStop(handles, yes, progress) {
  for (const { id, where, handle, run, state } of handles)
    progress.line(`${handle} in ${where}: ${id} of run ${run}, ${state}`)
  if (yes) return true
  return await askYesNo(
    'Stop these instances?',
    'these may belong to other runs: pass --yes to confirm without a terminal',
  )
}
