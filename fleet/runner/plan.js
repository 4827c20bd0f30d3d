// A run before its start: the machine, the plan, and the launch it would make.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, cpus, release, tmpdir, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { Fleet } from '../controller/fleet.js'
import { allowedTargets } from '../controller/launch.js'
import { loopbackAddresses, SOURCE_PORTS } from '../scenarios/sizing.js'
import { isLoopback, RunError } from './target.js'

/** @typedef {import('../scenarios/contract.js').Scenario} Scenario */
/** @typedef {import('../scenarios/contract.js').RunPlan} RunPlan */

/** @typedef {import('./run.js').RunOptions} RunOptions */

/**
 * @typedef {Pick<RunOptions, 'scenario' | 'scale' | 'drones' | 'workers' | 'seconds'> & Required<Pick<RunOptions,
 *   'target' | 'redis' | 'overrides'>> & {local: boolean}} PlanRequest `local`: drones run on this machine
 */

/** @param {PlanRequest} request @returns {Promise<RunPlan>} @throws {RunError} */
export async function planRun({ scenario, scale, target, local, redis, seconds, overrides, ...counts }) {
  const own = target.length === 0
  if (own && !local) throw new RunError('remote drones cannot reach a gateway on loopback: use --target')
  if (redis && !own) throw new RunError('--redis cannot be combined with --target')
  const plan = scenario.plan({
    scale,
    cores: availableParallelism(),
    files: await filesLimit(),
    target: !own,
    local,
    redis,
    seconds,
  })
  const steps = plan.steps.map(step => shaped(step, seconds, overrides))
  // One source address has about 28,000 ports for one port of a target.
  const most = Math.max(...steps.map(({ settings }) => settings.n ?? 0))
  const loopback = own || target.every(isLoopback)
  if (local && loopback && overrides.addresses === undefined)
    for (const { settings } of steps) {
      settings.addresses = loopbackAddresses(most)
      if (settings.addresses.length > 0) settings.ports ??= SOURCE_PORTS
    }
  return {
    ...plan,
    drones: counts.drones ?? plan.drones,
    gateway: { ...plan.gateway, workers: counts.workers ?? plan.gateway.workers },
    steps,
  }
}

/**
 * @param {import('../scenarios/contract.js').Step} step @param {number | undefined} seconds
 * @param {PlanRequest['overrides']} overrides @returns {import('../scenarios/contract.js').Step}
 */
function shaped(step, seconds, overrides) {
  const settings = { ...step.settings, ...overrides }
  const { rate = 0, n = 0 } = settings
  // Another rate or number of connections changes the ramp, if there is one.
  const hasOwnRamp = step.ramp > 0 && (overrides.rate !== undefined || overrides.n !== undefined)
  const ramp = !hasOwnRamp ? step.ramp : rate > 0 ? n / rate : 0
  if (seconds === undefined) return { ...step, settings, ramp }
  const factor = seconds / step.seconds
  return {
    ...step,
    settings,
    ramp,
    seconds,
    settle: Math.min(step.settle, seconds),
    // Disturbances keep their relative time.
    disturbances: step.disturbances?.map(disturbance => ({ ...disturbance, at: disturbance.at * factor })),
  }
}

/**
 * @param {Scenario} scenario @param {RunPlan} plan @param {{target: string[], scale: number}} options
 * @returns {string[]} lines to print
 */
export function planLines({ name, summary }, { gateway, size, steps }, { target, scale }) {
  const lines = [`${name}: ${summary}`, `scale ${scale}: ${size.text}`]
  if (target.length > 0) lines.push(`target ${target.join(', ')}`)
  else
    lines.push(
      `gateway on a free port of 127.0.0.1, ${gateway.workers} ${gateway.workers === 1 ? 'worker' : 'workers'}${gateway.redis ? ', with a Redis of its own' : ''}: ${JSON.stringify(gateway.config)}`,
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
 * Plans the launch of a run with a temporary fleet.
 * @param {import('../scenarios/contract.js').RunPlan} plan
 * @param {Pick<RunOptions, 'provider' | 'flags' | 'target' | 'control' | 'apiKey' | 'tokenSecret'>}
 *   options
 * @returns {Promise<string[]>} lines
 */
export async function dryLaunch({ drones }, { provider, flags, target = [], control, apiKey, tokenSecret }) {
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
    })
    return price === null
      ? lines
      : [...lines, `about ${price.hourly.toFixed(2)} ${price.currency} an hour (${price.note})`]
  } finally {
    await fleet.close()
    await rm(dir, { recursive: true, force: true })
  }
}

/** @typedef {import('./result.js').MachineFacts} MachineFacts */

/** Kernel settings that limit the number of connections or their rate. */
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
/** Default limit of open files. */
const FILES = 1024

/** @param {string} path @returns {Promise<string>} '': it does not exist */
const read = path => readFile(path, 'utf8').catch(() => '')

/** @returns {Promise<number>} maximum open files of a process: the hard limit, to which Node.js raises its own */
async function filesLimit() {
  const [, , hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(await read('/proc/self/limits')) ?? []
  return hard === 'unlimited' ? 1_048_576 : Number(hard) || FILES
}

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
    files: await filesLimit(),
    kernel,
  }
}
