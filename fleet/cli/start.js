import { COMMAND } from '../../src/base/version.js'
import { UsageError } from '../../src/cli/args.js'
import {
  askYesNo,
  COMMON_HELP,
  DIR_FLAG,
  DIR_HELP,
  dirOf,
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
  shown,
} from './common.js'

/** @typedef {import('../../src/cli/command.js').Io} Io */

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
      --dry-run              print the launch plan, and launch nothing
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
${DIR_HELP}
${COMMON_HELP}

${PROVIDER_HELP}
Examples:
  ${COMMAND} fleet start 2 --host http://127.0.0.1:8000 --set n=10000
  ${COMMAND} fleet start 40 --provider ec2 --region eu-west-1,us-east-1 --host https://gateway.example.com --dry-run
`,
  flags: {
    host: { type: 'string', multiple: true },
    allow: { type: 'string', multiple: true },
    set: { type: 'string', multiple: true },
    'api-key': { type: 'string' },
    'token-secret': { type: 'string' },
    provider: { type: 'string' },
    'dry-run': { type: 'boolean' },
    yes: { type: 'boolean', short: 'y' },
    keep: { type: 'boolean' },
    patience: { type: 'string' },
    'per-process': { type: 'string' },
    'orphan-after': { type: 'string' },
    'exit-after': { type: 'string' },
    bind: { type: 'string' },
    advertise: { type: 'string' },
    listen: { type: 'boolean' },
    dir: DIR_FLAG,
    ...PROVIDER_FLAGS,
  },
  words: 1,

  async run(io, flags, progress) {
    const request = await requestOf(io, flags)
    if (flags['dry-run']) return await dryRun(io, request)
    return await start(io, request, flags.yes === true, progress)
  },
})

/** @param {Io} io @param {Record<string, any>} flags @throws {UsageError} */
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
  return {
    dir,
    n,
    providerName,
    provider: flags.provider,
    flags: providerFlags(flags, providerName),
    bind: flags.bind,
    advertise: flags.advertise,
    settings,
    keep: flags.keep === true,
    timeout: flags.patience === undefined ? undefined : parseSeconds(flags.patience, '--patience') * 1000,
    launch: {
      allow: flags.allow?.map(target) ?? allowedTargets(settings.host ?? []),
      apiKey: flags['api-key'] ?? io.env.HALLEY_FLEET_API_KEY,
      tokenSecret: flags['token-secret'] ?? io.env.HALLEY_FLEET_TOKEN_SECRET,
      perProcess:
        flags['per-process'] === undefined
          ? undefined
          : parseCount(flags['per-process'], '--per-process', 1e6),
      orphanAfter: time('orphan-after'),
      exitAfter: time('exit-after'),
      listen: flags.listen === true,
    },
  }
}

/** @param {string} text @returns {string} @throws {UsageError} no target has this form */
function target(text) {
  if (/^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.test(text)) return text
  throw new UsageError(`--allow: "${text}" is not HOST or HOST:PORT`)
}

/** @typedef {Awaited<ReturnType<typeof requestOf>>} Request */

/** Prints the launch plan without a controller, and starts none. @param {Io} io @param {Request} request */
async function dryRun({ stdout }, { dir, n, providerName, flags, bind, advertise, settings, launch }) {
  const { allowedTargets, launchConfigs, hostForDrones } = await import('../controller/launch.js')
  const { hostAndPort } = await import('../controller/links.js')
  const { readState } = await import('../controller/folder.js')
  const { PROVIDERS } = await import('../providers/index.js')
  const known = await readState(dir)
  const provider = await PROVIDERS[providerName].load()
  const split = (/** @type {string} */ text) =>
    text.includes(':') ? hostAndPort(text) : { host: text, port: 0 }
  const at = known ?? split(bind ?? provider.bind ?? '127.0.0.1')
  const advertised = split(known?.advertise || advertise || hostForDrones(at.host))
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
  return 0
}

/**
 * @param {Io} io @param {Request} request @param {boolean} yes @param {Progress} progress @returns {Promise<number>}
 */
async function start({ stdout, stderr }, request, yes, progress) {
  const { sendCommand } = await import('../controller/client.js')
  const abort = new AbortController()
  const onSignal = () => {
    // The second Ctrl-C ends at once; the controller notices and takes back the launch.
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
    onPlan: plan => confirm(plan, yes, progress),
  })
  progress.clear()
  for (const text of warnings) stderr(`halley: ${text}\n`)
  if (fault !== '') stderr(`halley: ${fault}\n`)
  stdout(`${up.length} ${up.length === 1 ? 'drone is' : 'drones are'} up\n`)
  return 0
}

/**
 * @param {{lines: string[], price: import('../providers/contract.js').LaunchPlan['price']}} plan @param {boolean} yes
 * @param {Progress} progress
 * @returns {Promise<boolean>}
 */
async function confirm({ lines, price }, yes, progress) {
  if (price === null) {
    progress.line(lines[0])
    return true
  }
  for (const line of lines) progress.line(line)
  progress.line(priceText(price))
  if (yes) return true
  return await askYesNo('Launch these drones?', 'this costs money: pass --yes to confirm without a terminal')
}
