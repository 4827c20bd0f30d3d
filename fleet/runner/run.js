// Runs a scenario from its start to its report. runScenario is the folder's interface.
//
//   plan.js -> gateway-process.js, processes.js (supervisor.js) -> step-run.js, snapshots.js, target.js -> result.js,
//   limits.js, gateway-figures.js -> page.js, page-tables.js, summary.js
//
// May import: controller/, scenarios/, statistics/, src/pages/report and src/pages/web; never drone/ or cli/.
// Promises: everything a run started ends with it, even if the runner is killed; measurements before a failure are
// kept; every message is accounted for.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { packageVersion } from '../../src/base/version.js'
import { makeFolder } from '../../src/metrics/doctor/index.js'
import { FleetCsv } from '../controller/csv.js'
import { Fleet } from '../controller/fleet.js'
import { allowedTargets } from '../controller/launch.js'
import { reasonOf, writeWhole } from '../files.js'
import { zeroCounters } from '../statistics/counters.js'
import { gatewayFigures } from './gateway-figures.js'
import { GatewayProcess } from './gateway-process.js'
import { checkLimits } from './limits.js'
import { makePage } from './page.js'
import { machineFacts, planRun } from './plan.js'
import { RedisProcess } from './processes.js'
import { accountingSum, RESULT_SCHEMA } from './result.js'
import { Interrupted, Snapshots } from './snapshots.js'
import { StepRun } from './step-run.js'
import { stepText } from './summary.js'
import { checkReachable, RunError } from './target.js'

/** @typedef {import('./result.js').RunResult} RunResult */
/** @typedef {import('../scenarios/contract.js').RunPlan} RunPlan */

/** Files of a run; a new run in the same folder deletes them first. */
const FILES = Object.freeze([
  'result.json',
  'report.html',
  'fleet.csv',
  'gateway.csv',
  'gateway.log',
  'gateway.json',
])
/** s: drones on this machine serve no purpose without their run. */
const LOCAL_ORPHANS = Object.freeze({ orphanAfter: 5, exitAfter: 10 })
/** ms for a drone to report: a process on a busy machine; a machine that boots first. */
const LAUNCH_TIMEOUT = Object.freeze({ local: 60_000, other: 300_000 })
/** Maximum events of a result. */
const EVENTS = 200

/**
 * @typedef {object} RunOptions
 * @property {import('../scenarios/contract.js').Scenario} scenario
 * @property {number} scale
 * @property {string} out folder
 * @property {import('../providers/contract.js').Provider} provider
 * @property {Record<string, any>} [flags] of the provider
 * @property {string[]} [target] base URLs; empty: a gateway is started for the run
 * @property {boolean} [redis]
 * @property {number} [drones] default: the scenario's
 * @property {number} [workers] of the gateway; default: the scenario's
 * @property {number} [seconds] measured in each step; default: the scenario's
 * @property {Partial<import('../schema.js').FleetSettings>} [overrides] of all steps
 * @property {string} [apiKey] of the target
 * @property {string} [tokenSecret]
 * @property {import('./limits.js').Limit[]} [limits]
 * @property {{bind?: string, advertise?: string, listen?: boolean}} [control] how drones and controller find each
 *   other
 * @property {AbortSignal} [signal] ends the run; its measurements are kept
 * @property {(text: string) => void} [log] a line for each event
 * @property {(text: string) => void} [progress] current state, each second
 * @property {(plan: import('../providers/contract.js').LaunchPlan) => Promise<boolean>} [confirm] whether to launch it
 */

/**
 * @param {RunOptions} options
 * @returns {Promise<{result: RunResult, failure: string}>} `failure`: why it ended early although something was
 *   measured
 * @throws {RunError} nothing was measured; everything that was started has ended
 */
export async function runScenario(options) {
  return await new Run(options).make()
}

class Run {
  #options
  /** End what was started, the last first. @type {(() => Promise<unknown>)[]} */
  #cleanups = []
  #notes = /** @type {string[]} */ ([])
  #events = /** @type {RunResult['events']} */ ([])
  #steps = /** @type {import('./result.js').StepResult[]} */ ([])
  #counters = zeroCounters()
  #started = Date.now()
  /** Node.js versions of the drones. @type {Set<string>} */
  #nodes = new Set()
  #runId = ''

  /** @param {RunOptions} options */
  constructor({ log = () => {}, progress = () => {}, signal = new AbortController().signal, ...rest }) {
    this.#options = { target: [], limits: [], overrides: {}, ...rest, log, progress, signal }
  }

  /** @returns {Promise<{result: RunResult, failure: string}>} */
  async make() {
    const { out, target, scenario, scale, provider, redis = false } = this.#options
    const { drones, workers, seconds, overrides, log } = this.#options
    const local = provider.name === 'local'
    const request = { scenario, scale, target, local, redis, drones, workers, seconds, overrides }
    const plan = await planRun(request)
    for (const url of target) await checkReachable(url)
    await makeFolder(out).catch(error => {
      throw new RunError(`${out}: cannot be created: ${reasonOf(error)}`)
    })
    for (const file of FILES) await rm(join(out, file), { force: true })
    log(`${scenario.name}: ${plan.size.text}`)
    let failure = ''
    let partial = false
    try {
      await this.#play(plan)
    } catch (error) {
      partial = true
      if (this.#steps.length === 0)
        throw error instanceof Interrupted ? new RunError('interrupted before anything was measured') : error
      if (error instanceof Interrupted) this.#notes.push('The run was ended before its end.')
      else {
        failure = error.message
        this.#notes.push(`The run could not go on: ${error.message}.`)
      }
    } finally {
      await this.#end()
    }
    const result = await this.#result(plan, partial)
    await this.#write(result)
    return { result, failure }
  }

  /** @param {RunPlan} plan */
  async #play(plan) {
    const { target, out, progress, signal, log } = this.#options
    const own = target.length === 0
    const redis = own && plan.gateway.redis ? await this.#startRedis() : null
    const gateway = own ? await this.#startGateway(plan, redis) : null
    const targets = gateway === null ? target : [gateway.url]
    const apiKey = gateway?.apiKey ?? this.#options.apiKey
    const fleet = await this.#launch(plan, targets, apiKey)
    await fleet.set({ host: targets })
    const csv = await FleetCsv.open(join(out, 'fleet.csv'), { onFault: log })
    const onSnapshot = (/** @type {import('../schema.js').FleetSnapshot} */ snapshot) => csv.write(snapshot)
    fleet.on('snapshot', onSnapshot)
    this.#cleanups.push(() => csv.close())
    const snapshots = new Snapshots(fleet, signal, gateway === null ? forever() : died(gateway))
    const note = (/** @type {string} */ text) => {
      this.#notes.push(text)
      this.#options.log(text)
    }
    const context = { fleet, snapshots, target: targets.join(', '), gateway, redis, progress, note }
    for (const step of plan.steps) await this.#playStep(context, step)
  }

  /** @param {import('./step-run.js').RunContext} context @param {import('../scenarios/contract.js').Step} step */
  async #playStep(context, step) {
    const run = new StepRun(context, step, this.#counters)
    const began = Date.now()
    const ends = began + (step.ramp + step.settle + step.seconds) * 1000
    context.fleet.scenario = { name: this.#options.scenario.name, step: step.name, began, ends }
    try {
      this.#counters = await run.play()
    } catch (error) {
      // Account for the messages received until then, if the fleet is still there.
      if (run.result !== null) {
        const rest = new Snapshots(context.fleet, new AbortController().signal, forever())
        const late = new StepRun({ ...context, snapshots: rest }, step, this.#counters)
        this.#counters = await late.accountInterrupted(run.result).catch(() => this.#counters)
      }
      throw error
    } finally {
      if (run.result !== null) {
        this.#steps.push(run.result)
        this.#options.log(stepText(run.result))
      }
    }
  }

  async #startRedis() {
    const redis = new RedisProcess(join(this.#options.out, 'redis'))
    this.#cleanups.push(async () => {
      await redis.stop()
      await rm(join(this.#options.out, 'redis'), { recursive: true, force: true })
    })
    this.#options.progress('starting Redis')
    await redis.start()
    return redis
  }

  /** @param {RunPlan} plan @param {RedisProcess | null} redis */
  async #startGateway({ gateway: plan }, redis) {
    const { out, progress, log } = this.#options
    progress('starting the gateway')
    const gateway = await GatewayProcess.start({ plan, out, redis: redis?.address })
    this.#cleanups.push(async () => {
      progress('stopping the gateway')
      await gateway.stop()
    })
    log(`gateway on ${gateway.url}, ${plan.workers} ${plan.workers === 1 ? 'worker' : 'workers'}`)
    return gateway
  }

  /** @param {RunPlan} plan @param {string[]} targets @param {string | undefined} apiKey */
  async #launch(plan, targets, apiKey) {
    const { out, provider, flags, control, tokenSecret, signal, confirm, progress, log } = this.#options
    const dir = join(out, 'fleet')
    const fleet = await Fleet.open({ dir, provider, flags, ...control })
    this.#runId = fleet.run
    this.#cleanups.push(async () => {
      progress('stopping the drones')
      await fleet.stop('all', { onProgress: progress }).catch(error => this.#onStopFailed(error))
      await fleet.close()
      await rm(dir, { recursive: true, force: true })
    })
    fleet.on('event', event => this.#event(event))
    const local = provider.name === 'local' ? LOCAL_ORPHANS : {}
    const launch = {
      flags,
      allow: allowedTargets(targets),
      apiKey,
      tokenSecret,
      listen: control?.listen,
      ...local,
    }
    const launchPlan = await fleet.plan(plan.drones, launch)
    if (confirm !== undefined && !(await confirm(launchPlan))) throw new RunError('nothing was launched')
    progress(`launching ${plan.drones} ${plan.drones === 1 ? 'drone' : 'drones'}`)
    const timeout = provider.name === 'local' ? LAUNCH_TIMEOUT.local : LAUNCH_TIMEOUT.other
    await fleet.launch(launchPlan, { onProgress: progress, keep: false, signal, timeout })
    for (const { facts } of fleet.snapshot().drones) if (facts) this.#nodes.add(facts.node)
    log(`${plan.drones} ${plan.drones === 1 ? 'drone' : 'drones'} up`)
    return fleet
  }

  /** @param {Error} error */
  #onStopFailed(error) {
    this.#notes.push(`Drones could not be stopped: ${error.message}.`)
    this.#options.log(`drones could not be stopped: ${error.message}`)
  }

  /** @param {RunResult['events'][number]} event */
  #event(event) {
    this.#events.push(event)
    if (this.#events.length > EVENTS) this.#events.shift()
    if (event.level !== 'info') this.#options.log(event.text)
  }

  async #end() {
    for (const end of this.#cleanups.splice(0).reverse())
      await end().catch(error => this.#options.log(`not everything could be stopped: ${error.message}`))
  }

  /** @param {RunPlan} plan @param {boolean} partial @returns {Promise<RunResult>} */
  async #result(plan, partial) {
    const { scenario, scale, target, out, provider, overrides, limits } = this.#options
    const figures = target.length === 0 ? await gatewayFigures(join(out, 'gateway.csv'), this.#steps) : null
    for (const [index, step] of this.#steps.entries()) step.gateway = figures?.steps[index] ?? null
    const { source, machine, load, scaled, published } = scenario
    /** @type {RunResult} */
    const result = {
      type: 'halley-fleet-run',
      schema: RESULT_SCHEMA,
      scenario: scenario.name,
      run: this.#runId,
      started: this.#started,
      ended: Date.now(),
      partial,
      scale,
      load: plan.size.text,
      target: target.join(', '),
      ownGateway: target.length === 0,
      provider: provider.name,
      versions: { halley: packageVersion(), node: process.version, drones: [...this.#nodes] },
      machine: await machineFacts(),
      overrides,
      plan: target.length === 0 ? plan.gateway : null,
      published: source === '' ? null : { source, machine, load, scaled },
      comparison: [],
      differs: plan.differs,
      notes: this.#notes,
      steps: this.#steps,
      accounting: accountingSum(this.#steps.map(({ accounting }) => accounting)),
      gateway: figures?.gateway ?? null,
      limits: [],
      events: this.#events,
    }
    result.comparison = published.map(({ label, value, note = '', ours }) => ({
      label,
      value,
      note,
      ours: ours(result),
    }))
    result.limits = checkLimits(limits, result)
    return result
  }

  /** @param {RunResult} result */
  async #write(result) {
    const { out, progress } = this.#options
    progress('writing the report')
    await writeWhole(join(out, 'result.json'), `${JSON.stringify(result, null, 1)}\n`)
    const csv = result.gateway === null ? null : join(out, 'gateway.csv')
    await writeWhole(join(out, 'report.html'), await makePage([{ result, csv, label: result.scenario }]))
  }
}

/** @returns {Promise<never>} */
const forever = () => new Promise(() => {})

/** @param {GatewayProcess} gateway @returns {Promise<never>} rejects at an unexpected end */
async function died(gateway) {
  const { code, signal } = await gateway.lost
  const words = await gateway.lastWarning()
  throw new RunError(`the gateway ended (${signal ?? `exit status ${code}`})${words ? `: ${words}` : ''}`)
}
