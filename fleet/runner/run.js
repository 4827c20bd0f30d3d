// Runs a scenario from its start to its report. runScenario is the folder's interface.
//
//   plan.js -> servers.js: gateway-process.js, ../targets/, processes.js (supervisor.js), proc.js -> step-run.js,
//   snapshots.js, target.js -> result.js, limits.js, gateway-figures.js -> page.js, page-tables.js, summary.js
//   series.js: several runs, of several servers in turn -> figures.js
//
// May import: controller/, scenarios/, statistics/, targets/, src/pages/report and src/pages/web; never drone/ or cli/.
// Promises: all processes of a run end with it, even if the runner is killed; measurements before a failure are kept;
// every message is accounted for.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { packageVersion } from '../../src/base/version.js'
import { makeFolder } from '../../src/metrics/doctor/index.js'
import { FleetCsv } from '../controller/csv.js'
import { Fleet } from '../controller/fleet.js'
import { allowedTargets } from '../controller/launch.js'
import { reasonOf, writeWhole } from '../files.js'
import { zeroCounters } from '../statistics/counters.js'
import { isControl } from '../targets/index.js'
import { gatewayFigures } from './gateway-figures.js'
import { checkLimits, checkZeros } from './limits.js'
import { makePage } from './page.js'
import { machineFacts, planRun } from './plan.js'
import { accountingSum, RESULT_SCHEMA } from './result.js'
import { Servers } from './servers.js'
import { Interrupted, Snapshots } from './snapshots.js'
import { StepRun } from './step-run.js'
import { stepText } from './summary.js'
import { checkReachable, RunError } from './target.js'

/** @import { LaunchPlan, Provider } from '../providers/contract.js' */
/** @import { RunPlan, Scenario, Step } from '../scenarios/contract.js' */
/** @import { FleetSettings, FleetSnapshot, Transport } from '../schema.js' */
/** @import { Limit } from './limits.js' */
/** @import { RunResult, StepResult } from './result.js' */
/** @import { RunContext } from './step-run.js' */

/** Files of a run; a new run in the same folder deletes them first. */
const FILES = ['result.json', 'report.html', 'fleet.csv', 'gateway.csv', 'gateway.log', 'gateway.json']
/** s. Local drones stop soon after their run. */
const LOCAL_ORPHANS = { orphanAfter: 5, exitAfter: 10 }
/** Report timeout of a drone, ms: a process on a busy machine; a machine that boots. */
const LAUNCH_TIMEOUT = { local: 60_000, other: 300_000 }
const EVENTS = 200

/**
 * @typedef {object} RunOptions
 * @property {Scenario} scenario
 * @property {number} scale
 * @property {string} out folder
 * @property {Provider} provider
 * @property {Record<string, any>} [flags] of the provider
 * @property {string[]} [target] base URLs; empty: a gateway is started for the run
 * @property {string} [server] server under load: `halley` (default), `embedded`, or a control (targets/)
 * @property {boolean} [redis] Redis is the engine
 * @property {string[]} [redisAddresses] of a running Redis; empty: one is started for the run
 * @property {number} [nodes] gateways that share the Redis; default: 1
 * @property {string} [driver] socket server of the gateway
 * @property {Transport} [transport] of the connections; default: the scenario's
 * @property {boolean} [history] all channels keep publications, and all subscriptions recover
 * @property {boolean} [single] one request per message, as for the controls
 * @property {string[]} [steps] names or numbers of the steps to run; default: all
 * @property {string[]} [faults] kinds of disturbances to keep; default: all
 * @property {number} [rounds] how often they happen; default: 1
 * @property {number} [drones] default: the scenario's, like the next two
 * @property {number} [workers]
 * @property {number} [seconds] measured in each step
 * @property {Partial<FleetSettings>} [overrides] of all steps
 * @property {string} [apiKey] of the target
 * @property {string} [tokenSecret]
 * @property {Limit[]} [limits]
 * @property {{bind?: string, advertise?: string, listen?: boolean}} [control] how drones and controller connect
 * @property {string} [statusPort] host:port of the status port of the first drone
 * @property {AbortSignal} [signal] ends the run; its measurements are kept
 * @property {(text: string) => void} [log] a line for each event
 * @property {(text: string) => void} [progress] current state, each second
 * @property {(plan: LaunchPlan) => Promise<boolean>} [confirm] whether to launch
 */

/**
 * @param {RunOptions} options
 * @returns {Promise<{result: RunResult, failure: string}>} `failure`: why a run with measurements ended early
 * @throws {RunError} nothing was measured; all started processes have exited
 */
export async function runScenario(options) {
  return await new Run(options).make()
}

class Run {
  #options
  /** Cleanups, run in reverse order. @type {(() => Promise<unknown>)[]} */
  #cleanups = []
  #notes = /** @type {string[]} */ ([])
  #events = /** @type {RunResult['events']} */ ([])
  #steps = /** @type {StepResult[]} */ ([])
  #counters = zeroCounters()
  #started = Date.now()
  /** Node.js versions of the drones. @type {Set<string>} */
  #nodes = new Set()
  #runId = ''

  /** @param {RunOptions} options */
  constructor({ log = () => {}, progress = () => {}, signal = new AbortController().signal, ...rest }) {
    this.#options = { target: [], limits: [], overrides: {}, ...rest, log, progress, signal }
  }

  async make() {
    const { out, target, scenario, provider, redis = false, log } = this.#options
    const plan = await planRun({ ...this.#options, local: provider.name === 'local', redis })
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
      if (error instanceof Interrupted) this.#notes.push('The run was interrupted.')
      else {
        failure = error.message
        this.#notes.push(`The run failed: ${error.message}.`)
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
    const servers = target.length === 0 ? await this.#startServers(plan) : null
    const targets = servers?.urls ?? target
    const apiKey = servers?.apiKey ?? this.#options.apiKey
    const fleet = await this.#launch(plan, targets, apiKey)
    await fleet.set({ host: targets })
    const csv = await FleetCsv.open(join(out, 'fleet.csv'), { onFault: log })
    const onSnapshot = (/** @type {FleetSnapshot} */ snapshot) => csv.write(snapshot)
    fleet.on('snapshot', onSnapshot)
    this.#cleanups.push(() => csv.close())
    const snapshots = new Snapshots(fleet, signal, servers?.lost() ?? forever())
    const note = (/** @type {string} */ text) => {
      this.#notes.push(text)
      this.#options.log(text)
    }
    const context = { fleet, snapshots, target: targets.join(', '), servers, progress, note }
    if (plan.steps.some(({ settings }) => !settings.publish_rate)) {
      progress('waiting for memory to settle')
      await snapshots.race(servers?.measureBase() ?? Promise.resolve())
    }
    for (const step of plan.steps) await this.#playStep(context, step)
  }

  /** @param {RunContext} context @param {Step} step */
  async #playStep(context, step) {
    const run = new StepRun(context, step, this.#counters)
    const began = Date.now()
    const ends = began + (step.ramp + step.settle + step.seconds) * 1000
    context.fleet.scenario = { name: this.#options.scenario.name, step: step.name, began, ends }
    try {
      this.#counters = await run.play()
    } catch (error) {
      // Account for the messages received so far, if the fleet still runs.
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

  /** @param {RunPlan} plan */
  async #startServers(plan) {
    const { out, server = 'halley', redisAddresses = [], progress, log } = this.#options
    const servers = new Servers({ plan, out, server, redisAddresses, progress })
    this.#cleanups.push(async () => {
      progress('stopping the server')
      await servers.stop()
    })
    await servers.start()
    log(servers.text)
    return servers
  }

  /** @param {RunPlan} plan @param {string[]} targets @param {string | undefined} apiKey */
  async #launch(plan, targets, apiKey) {
    const { out, provider, flags, control, tokenSecret, statusPort, signal } = this.#options
    const { confirm, progress, log } = this.#options
    const dir = join(out, 'fleet')
    const fleet = await Fleet.open({ dir, provider, flags, ...control })
    this.#runId = fleet.run
    this.#cleanups.push(async () => {
      progress('stopping the drones')
      await fleet.stop('all', { onProgress: progress }).catch(error => {
        this.#notes.push(`Drones could not be stopped: ${error.message}.`)
        log(`drones could not be stopped: ${error.message}`)
      })
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
      statusPort,
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

  /** @param {RunResult['events'][number]} event */
  #event(event) {
    this.#events.push(event)
    if (this.#events.length > EVENTS) this.#events.shift()
    if (event.level !== 'info') this.#options.log(event.text)
  }

  async #end() {
    for (const end of this.#cleanups.splice(0).reverse())
      await end().catch(error => this.#options.log(`cleanup failed: ${error.message}`))
  }

  /** @param {RunPlan} plan @param {boolean} partial @returns {Promise<RunResult>} */
  async #result(plan, partial) {
    const { scenario, scale, target, out, provider, overrides, limits, server = 'halley' } = this.#options
    const own = target.length === 0
    const isGateway = own && !isControl(server)
    const figures = isGateway ? await gatewayFigures(join(out, 'gateway.csv'), this.#steps) : null
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
      server: own ? server : 'target',
      target: target.join(', '),
      ownGateway: own,
      provider: provider.name,
      versions: { halley: packageVersion(), node: process.version, drones: [...this.#nodes] },
      machine: await machineFacts(),
      overrides,
      plan: isGateway ? plan.gateway : null,
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
    const last = this.#steps.at(-1)
    if (last) Object.assign(last.figures, scenario.figures?.(this.#steps))
    result.limits = [...checkLimits(limits, result), ...checkZeros(scenario.zeros ?? [], this.#steps)]
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
