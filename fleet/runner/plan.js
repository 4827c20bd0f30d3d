// Before a run: facts of the machine, the plan, and the planned launch.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, cpus, release, tmpdir, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { Fleet } from '../controller/fleet.js'
import { allowedTargets } from '../controller/launch.js'
import { loopbackAddresses, SOURCE_PORTS } from '../scenarios/sizing.js'
import { controlOf, isControl } from '../targets/index.js'
import { openFilesLimit } from './proc.js'
import { isLoopback, RunError } from './target.js'

/** @import { RunPlan, Scenario, Step } from '../scenarios/contract.js' */
/** @import { Control } from '../targets/index.js' */
/** @import { MachineFacts } from './result.js' */
/** @import { RunOptions } from './run.js' */

/**
 * @typedef {Pick<RunOptions, 'scenario' | 'scale' | 'drones' | 'workers' | 'seconds' | 'steps' | 'faults' | 'rounds' | 'server' |
 *   'nodes' | 'driver' | 'transport' | 'history' | 'single'> & Required<Pick<RunOptions, 'target' | 'redis' |
 *   'overrides'>> & {local: boolean}} PlanRequest `local`: drones run on this machine
 */

const HISTORY = Object.freeze({ history_size: 10, history_ttl: '60s', force_recovery: true })
/** Blocks of the configuration that enable a transport. @type {Record<string, string>} */
const TRANSPORT_BLOCKS = { long_poll: 'poll' }
const ANY_SERVER = ['cut', 'leave']

/** @param {PlanRequest} request @returns {Promise<RunPlan>} */
export async function planRun(request) {
  const { scenario, scale, target, local, redis, seconds, overrides, server = 'halley', nodes = 1 } = request
  const own = target.length === 0
  if (own && !local) throw new RunError('remote drones cannot reach a gateway on loopback: use --target')
  if (redis && !own) throw new RunError('--redis cannot be combined with --target')
  if (nodes > 1 && !redis) throw new RunError('--nodes requires --engine redis')
  const control = isControl(server) ? controlOf(server) : null
  const plan = scenario.plan({
    scale,
    cores: availableParallelism(),
    files: openFilesLimit(),
    target: !own || control !== null,
    local,
    redis,
    seconds,
    overrides,
    variant: scenario.variants?.includes(server) ? server : scenario.variants?.[0],
  })
  const { n, ...others } = overrides
  const shape = plan.hasOverrides ? { ...request, overrides: others } : request
  const steps = chosenSteps(plan.steps, request.steps).map(step => shaped(step, shape, control))
  // One source address has about 28,000 ports for one port of a target.
  const most = Math.max(...steps.map(({ settings }) => settings.n ?? 0))
  const loopback = own || target.every(isLoopback)
  if (local && loopback && overrides.addresses === undefined)
    for (const { settings } of steps) {
      settings.addresses = loopbackAddresses(most)
      if (settings.addresses.length > 0) settings.ports ??= SOURCE_PORTS
    }
  const workers = request.workers ?? plan.gateway.workers
  // One gateway with as many workers as all nodes: a control for Redis.
  const embedded = server === 'embedded'
  return {
    ...plan,
    drones: request.drones ?? plan.drones,
    gateway: {
      ...plan.gateway,
      config: configOf(plan.gateway.config, request),
      workers: embedded ? workers * nodes : workers,
      nodes: embedded ? 1 : nodes,
      redis: plan.gateway.redis && !embedded,
    },
    steps,
  }
}

/** @param {any} config of the scenario @param {PlanRequest} request @returns {object} */
function configOf(config, { transport, driver, history }) {
  const { channel = {} } = config
  const kept = history ? HISTORY : {}
  return {
    ...config,
    ...(driver !== undefined && { http_server: { ...config.http_server, driver } }),
    ...(transport !== undefined &&
      !['websocket', 'protobuf'].includes(transport) && {
        [TRANSPORT_BLOCKS[transport] ?? transport]: { enabled: true },
      }),
    channel: {
      ...channel,
      without_namespace: { ...channel.without_namespace, ...kept },
      ...(channel.namespaces && {
        namespaces: channel.namespaces.map((/** @type {object} */ one) => ({ ...one, ...kept })),
      }),
    },
  }
}

/** @param {Step[]} steps @param {string[]} [names] names or numbers, from 1 @returns {Step[]} */
function chosenSteps(steps, names) {
  if (names === undefined) return steps
  return names.map(name => {
    const step = steps.find((each, i) => each.name === name || String(i + 1) === name)
    if (step === undefined)
      throw new RunError(
        `unknown step "${name}"; use one of ${steps.map((each, i) => `${i + 1} (${each.name})`).join(', ')}`,
      )
    return step
  })
}

/** @param {Step} step @param {PlanRequest} request @param {Control | null} control null: a gateway */
function shaped(
  step,
  { server, seconds, overrides, transport, history, single, faults, rounds = 1 },
  control,
) {
  const settings = {
    ...step.settings,
    ...(transport !== undefined && { transport }),
    ...(history && { recover: true }),
    ...(single && { publish_via: /** @type {const} */ ('single') }),
    ...(step.work === undefined && overrides),
    ...(control && { publish_via: control.via, recover: false }),
    ...(control && control.transport !== 'websocket' && { transport: control.transport }),
  }
  if (control && settings.transport === 'uni_bare' && (settings.channels?.length ?? 0) > 1)
    throw new RunError(`${server} cannot run this scenario: a connection has several channels`)
  if (settings.transport === 'protobuf' && settings.recover)
    throw new RunError('drones do not recover subscriptions over protobuf')
  // `start-redis` belongs to the preceding stop or kill.
  let redis = ''
  const once = step.disturbances?.filter(({ kind }) => {
    if (kind === 'stop-redis' || kind === 'kill-redis') redis = kind
    const cause = kind === 'start-redis' ? redis : kind
    return (faults?.includes(cause) ?? true) && (!control || ANY_SERVER.includes(kind))
  })
  const disturbances =
    once &&
    Array.from({ length: rounds }, (_, round) =>
      once.map(each => ({ ...each, at: (round * step.seconds + each.at) / rounds })),
    ).flat()
  const { rate = 0, n = 0 } = settings
  // Another rate or number of connections changes an existing ramp.
  const hasOwnRamp = step.ramp > 0 && (overrides.rate !== undefined || overrides.n !== undefined)
  const ramp = !hasOwnRamp ? step.ramp : rate > 0 ? n / rate : 0
  if (seconds === undefined) return { ...step, settings, ramp, disturbances }
  const factor = seconds / step.seconds
  return {
    ...step,
    settings,
    ramp,
    seconds,
    settle: Math.min(step.settle, seconds),
    // Disturbances keep their relative time.
    disturbances: disturbances?.map(disturbance => ({ ...disturbance, at: disturbance.at * factor })),
  }
}

/** @param {Scenario} scenario @param {RunPlan} plan @param {{target: string[], scale: number, server?: string}} options */
export function planLines({ name, summary }, { gateway, size, steps }, { target, scale, server = 'halley' }) {
  const lines = [`${name}: ${summary}`, `scale ${scale}: ${size.text}`]
  if (target.length > 0) lines.push(`target ${target.join(', ')}`)
  else if (isControl(server)) lines.push(`${server} on a free port of 127.0.0.1`)
  else
    lines.push(
      `gateway on a free port of 127.0.0.1, ${gateway.workers} ${gateway.workers === 1 ? 'worker' : 'workers'}${gateway.redis ? ', with its own Redis' : ''}: ${JSON.stringify(gateway.config)}`,
    )
  for (const { name: step, settings, ramp, settle, seconds, disturbances = [] } of steps) {
    const set = Object.entries(settings)
      .filter(([, value]) => !(Array.isArray(value) && value.length === 0))
      .map(([key, value]) => `${key}=${Array.isArray(value) ? value.join(',') : value}`)
    lines.push(
      `step ${step}: ${ramp > 0 ? `ramp ${Math.round(ramp)} s` : 'no ramp'}, settle ${settle} s, measure ${seconds} s; ${set.join(' ')}`,
    )
    for (const { at, kind, share, over = 0 } of disturbances) {
      const howMany = share === undefined ? '' : ` ${share * 100} %`
      const howLong = over > 0 ? ` within ${over} s` : ''
      lines.push(`  after ${Math.round(at * 10) / 10} s: ${kind}${howMany}${howLong}`)
    }
  }
  return lines
}

/**
 * Plans the launch of a run with a temporary fleet, in lines.
 * @param {RunPlan} plan
 * @param {Pick<RunOptions, 'provider' | 'flags' | 'target' | 'control' | 'apiKey' | 'tokenSecret' | 'statusPort'>} options
 */
export async function dryLaunch({ drones }, options) {
  const { provider, flags, target = [], control, apiKey, tokenSecret, statusPort } = options
  const dir = await mkdtemp(join(tmpdir(), 'halley-plan-'))
  const fleet = await Fleet.open({ dir, provider, flags, ...control })
  try {
    const allow = target.length > 0 ? allowedTargets(target) : ['127.0.0.1']
    const { lines, price } = await fleet.plan(drones, {
      flags,
      allow,
      apiKey,
      tokenSecret,
      listen: control?.listen,
      statusPort,
    })
    return price === null
      ? lines
      : [...lines, `about ${price.hourly.toFixed(2)} ${price.currency} per hour (${price.note})`]
  } finally {
    await fleet.close()
    await rm(dir, { recursive: true, force: true })
  }
}

const KERNEL = Object.freeze([
  'fs.nr_open',
  'fs.file-max',
  'net.core.somaxconn',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_max_syn_backlog',
  'net.ipv4.tcp_mem',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_wmem',
  'net.ipv4.tcp_moderate_rcvbuf',
  'net.ipv4.tcp_tw_reuse',
  'net.netfilter.nf_conntrack_max',
])

/** @param {string} path @returns {Promise<string>} '': missing */
const read = path => readFile(path, 'utf8').catch(() => '')

/** @returns {Promise<MachineFacts>} */
export async function machineFacts() {
  /** @type {Record<string, string>} */
  const kernel = {}
  for (const name of KERNEL) {
    const value = (await read(`/proc/sys/${name.replaceAll('.', '/')}`)).trim().replace(/\s+/g, ' ')
    if (value !== '') kernel[name] = value
  }
  return {
    system: `${type()} ${release()} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? '',
    cores: availableParallelism(),
    memory: totalmem(),
    files: openFilesLimit(),
    kernel,
  }
}
