import { setTimeout as sleep } from 'node:timers/promises'
import { count, percent } from '../../src/base/format.js'
import { parseTemplate } from '../channel-template.js'
import { rounded, roundedMs } from './figures.js'
import { accountingOf, isBalanced, latencyOf, measured, noAccounting } from './result.js'
import { Interrupted } from './snapshots.js'
import { progressText } from './summary.js'
import { RefusalCheck, topFault, withHint } from './target.js'

/** @import { Fleet } from '../controller/fleet.js' */
/** @import { Disturbance, Step, Work } from '../scenarios/contract.js' */
/** @import { Counters, FleetSettings, FleetSnapshot, Reconciliation } from '../schema.js' */
/** @import { Figures } from './figures.js' */
/** @import { StepResult, StepServer } from './result.js' */
/** @import { Servers } from './servers.js' */
/** @import { Snapshots } from './snapshots.js' */

/** Reconnect timeout after the last disturbance, s. */
const RETURN = 90
/** Drain timeouts at the end of a step, and of an interrupted run, s. */
const DRAIN = 60
const SHORT_DRAIN = 5
/** Snapshots without a message until nothing is in flight, and until missing messages count as lost. */
const QUIET = 1
const LONG_QUIET = 5
/** Time for counters to balance, s, and maximum number of further comparisons with the ledgers. */
const LATE = 5
const RECOMPARISONS = 2
/** Messages to each channel after the last reconnect, so that each connection receives one, and timeout, s. */
const TURNS = 1.5
const TURNS_TIMEOUT = 120
/** Timeout for subscribing again after a cut of Redis, and interval of readings, ms. */
const RESUBSCRIBE = 60_000
const READ_INTERVAL = 5
/** Settings whose change reopens all connections. */
const CONNECTION_SETTINGS = /** @type {const} */ (['host', 'transport', 'channels', 'recover', 'user'])
/** ms without a change of the open connections until a ramp ends. */
const STALLED_MS = 20_000
/** The same without a new maximum: the server loses as many connections as it gets. */
const FLAPPING_MS = 120_000

/**
 * @typedef {{fleet: Fleet, snapshots: Snapshots, target: string, servers: Servers | null, progress: (text: string) =>
 *   void, note: (text: string) => void}} RunContext `servers`: null if not started by the run; `note`: records a
 *   deviation from the plan
 */

export class RampWatch {
  #n
  #open = -1
  #max = -1
  /** Unix ms of the last change of the count, and of the last new maximum. */
  #changed = 0
  #grown = 0

  /** @param {number} n connections wanted at its end */
  constructor(n) {
    this.#n = n
  }

  /**
   * Call it with every snapshot. True: all connections are open, or no more are expected.
   * @param {Pick<FleetSnapshot, 'time' | 'gauges'>} snapshot @param {boolean} isRamped all have been requested
   */
  hasEnded({ time, gauges: { wanted, opening, open } }, isRamped) {
    if (!isRamped || open !== this.#open) this.#changed = time
    if (!isRamped || open > this.#max) this.#grown = time
    this.#open = open
    this.#max = Math.max(this.#max, open)
    if (!isRamped) return false
    if (wanted === this.#n && open === this.#n && opening === 0) return true
    return time - this.#changed > STALLED_MS || time - this.#grown > FLAPPING_MS
  }
}

/** One step of a run: open connections, apply load, measure, wait for the last messages, account. */
export class StepRun {
  #context
  #step
  #base
  /** @type {StepResult | null} */
  result = null
  #worker = 0
  #wanted = 0
  /** @type {StepResult['disturbances']} */
  #disturbed = []
  /** @type {Promise<void>[]} */
  #underWay = []
  /** Figures of disturbances. @type {Figures} */
  #cut = {}

  /** @param {RunContext} context @param {Step} step @param {Counters} base at the end of the previous step */
  constructor(context, step, base) {
    this.#context = context
    this.#step = step
    this.#base = base
  }

  /** Returns the fleet's counters at the end. @throws {Interrupted} `result` has the measurements so far, if any */
  async play() {
    const { fleet, snapshots } = this.#context
    const { settings, across, work } = this.#step
    const { n = 0, publish_rate = 0, churn = 0, ...rest } = settings
    const { servers } = this.#context
    const urls = servers?.urls ?? []
    const hosts = across && urls.length > 1 ? { host: urls.slice(-1), publish_host: urls.slice(0, 1) } : {}
    this.#wanted = n
    await this.#closeForeign({ ...rest, ...hosts })
    await snapshots.race(fleet.set({ ...rest, ...hosts, publish_rate: 0, churn: 0 }))
    fleet.resetStatistics()
    const opening = servers && new Usage(servers)
    const ramp = await this.#open(n)
    const opened = opening?.end() ?? null
    const { connect } = snapshots.last
    const refusal = new RefusalCheck(this.#context.target, snapshots.last)
    await snapshots.race(fleet.set({ publish_rate, churn }))
    await this.#settle(refusal)
    fleet.resetStatistics()
    const first = await snapshots.next()
    let minOpen = first.gauges.open
    let last = first
    const usage = servers && new Usage(servers)
    const keep = async (/** @type {boolean} */ partial) => {
      const { recover = false, publish_flat = false } = rest
      const options = { name: this.#step.name, first, last, minOpen, ramp, connect, partial, recover }
      this.result = measured({ ...options, publishRate: publish_rate })
      this.result.disturbances = this.#disturbed
      this.result.server = (await usage?.result(this.result, opened)) ?? null
      if (publish_rate > 0 && !publish_flat) this.result.figures.offered_per_s = publish_rate
    }
    let figures = {}
    let isWorking = work !== undefined
    const working = work?.(this.#workContext()).then(made => {
      figures = made
      isWorking = false
    })
    try {
      const measuring = snapshots.until((snapshot, seconds) => {
        last = snapshot
        if (publish_rate === 0 && this.#wanted === n) usage?.readMemory()
        if (this.#wanted === n) minOpen = Math.min(minOpen, snapshot.gauges.open)
        refusal.checkMessages(snapshot)
        refusal.checkRecovery(snapshot)
        const measuredSeconds = (snapshot.time - first.time) / 1000
        this.#disturb(seconds)
        if (work === undefined)
          this.#say(`measuring ${Math.round(measuredSeconds)}/${this.#step.seconds} s`, snapshot)
        return work === undefined ? measuredSeconds >= this.#step.seconds - 0.5 : !isWorking
      })
      await Promise.all([measuring, snapshots.race(Promise.resolve(working))])
      refusal.checkMessages(last, true)
      await keep(false)
    } catch (error) {
      if (last !== first) await keep(true)
      throw error
    }
    await snapshots.race(Promise.all(this.#underWay))
    await this.#calm(churn)
    const counters = await this.#account(DRAIN)
    Object.assign(this.#figures, this.#cut, figures)
    return counters
  }

  /** Closes connections with other settings before the ramp. @param {Partial<FleetSettings>} settings */
  async #closeForeign(settings) {
    const { fleet, snapshots } = this.#context
    const { gauges, settings: before } = snapshots.last
    const changes = CONNECTION_SETTINGS.some(
      name => name in settings && JSON.stringify(settings[name]) !== JSON.stringify(before[name]),
    )
    if (!changes || gauges.open === 0) return
    await snapshots.race(fleet.set({ n: 0, publish_rate: 0, churn: 0 }))
    await snapshots.until(snapshot => snapshot.gauges.open === 0)
  }

  /** @returns {Work} */
  #workContext() {
    const { servers, fleet, progress, note } = this.#context
    return {
      ...{ servers, fleet, note, seconds: this.#step.seconds },
      progress: text => progress(`${this.#step.name}: ${text}`),
    }
  }

  get #figures() {
    return /** @type {StepResult} */ (this.result).figures
  }

  /** Accounts for an interrupted step, with a short wait. @param {StepResult} result @returns {Promise<Counters>} */
  accountInterrupted(result) {
    this.result = result
    return this.#account(SHORT_DRAIN)
  }

  /** @param {string} what @param {FleetSnapshot} snapshot */
  #say(what, snapshot) {
    this.#context.progress(progressText(`${this.#step.name}: ${what}`, snapshot))
  }

  /** @param {number} n @returns {Promise<StepResult['ramp']>} */
  async #open(n) {
    const { fleet, snapshots, target, note } = this.#context
    const before = snapshots.last
    const refusal = new RefusalCheck(target, before)
    const ramped = fleet.ramp(n, this.#step.ramp).then(() => {
      isRamped = true
    })
    ramped.catch(() => {})
    let isRamped = false
    let peak = 0
    const watch = new RampWatch(n)
    const watching = snapshots.until(snapshot => {
      peak = Math.max(peak, snapshot.rates.opened)
      refusal.checkConnections(snapshot)
      this.#say('opening', snapshot)
      return watch.hasEnded(snapshot, isRamped)
    })
    await snapshots.race(Promise.all([ramped, watching]))
    const last = snapshots.last
    refusal.checkSubscriptions(last)
    if (last.gauges.open < n) {
      const [fault] = topFault(last.faults, before.faults) ?? ['unknown reason']
      const reason = withHint(fault, last.settings.transport)
      note(
        `${this.#step.name}: only ${count(last.gauges.open)} of ${count(n)} connections opened: ${reason}.`,
      )
    }
    const seconds = (last.time - before.time) / 1000
    const opened = last.counters.opened - before.counters.opened
    const mean = seconds > 0 ? opened / seconds : 0
    // Rates are of a drone's last sample: of two samples between snapshots, the first is not seen.
    return { seconds, opened, peak: Math.max(peak, mean), mean }
  }

  /** @param {RefusalCheck} refusal */
  async #settle(refusal) {
    await this.#context.snapshots.until((snapshot, seconds) => {
      refusal.checkMessages(snapshot)
      this.#say('settling', snapshot)
      return seconds >= this.#step.settle
    })
  }

  /** @param {number} seconds of the measurement so far */
  #disturb(seconds) {
    const due = (this.#step.disturbances ?? []).filter(({ at }) => at <= seconds)
    for (const disturbance of due.slice(this.#underWay.length)) {
      const { kind } = disturbance
      // In sequence: a starting gateway has no worker to kill.
      const before = this.#underWay.at(-1) ?? Promise.resolve()
      const work = before
        .then(() => this.#execute(disturbance))
        .then(
          ({ text, forgotten = 0 }) =>
            void this.#disturbed.push({ at: Math.round(seconds), text, left: kind === 'leave', forgotten }),
          error => this.#context.note(`${this.#step.name}: ${kind} failed: ${error.message}.`),
        )
      this.#underWay.push(work)
    }
  }

  /**
   * @param {Disturbance} disturbance
   * @returns {Promise<{text: string, forgotten?: number}>} see GatewayProcess.disturb()
   */
  async #execute({ kind, share = 1, over = 0 }) {
    const { fleet, servers } = this.#context
    switch (kind) {
      case 'cut':
        return {
          text: `${count(await fleet.cut(share, 'reset'))} connections cut (${percent(share * 100)})`,
        }
      case 'leave': {
        const leaving = Math.round(this.#wanted * share)
        this.#wanted -= leaving
        if (over > 0) await fleet.ramp(this.#wanted, over)
        else await fleet.set({ n: this.#wanted })
        const how = over > 0 ? `within ${Math.round(over)} s` : 'at once'
        return { text: `${count(leaving)} connections closed ${how} (${percent(share * 100)})` }
      }
      case 'stop-redis':
        await servers?.redis?.stop()
        return { text: 'Redis stopped' }
      case 'kill-redis':
        await servers?.redis?.kill()
        return { text: 'Redis killed with SIGKILL' }
      case 'start-redis':
        await servers?.redis?.start()
        return { text: 'Redis restarted' }
      case 'cut-redis':
        return await this.#cutRedis()
      default: {
        const gateways = servers?.gateways ?? []
        if (gateways.length === 0) throw new Error('requires a gateway started by the run')
        const subscriptions = this.#wanted * (this.#step.settings.channels?.length ?? 0)
        const index = this.#worker++
        const gateway = gateways[index % gateways.length]
        const worker = Math.floor(index / gateways.length)
        return await gateway.disturb(kind, worker, gateway.hasMemoryEngine ? subscriptions : 0)
      }
    }
  }

  /** Cuts all connections to Redis, and measures until as many channels are subscribed as before. */
  async #cutRedis() {
    const { servers } = this.#context
    const redis = servers?.redis
    if (!redis) throw new Error('requires a Redis started by the run')
    const subscribed = async () =>
      (await redis.info('pubsub_channels')) + (await redis.info('pubsubshard_channels'))
    const before = await subscribed()
    const usage = new Usage(servers)
    const began = Date.now()
    for (const type of ['normal', 'pubsub']) await redis.command(`CLIENT KILL TYPE ${type}`)
    while ((await subscribed()) < before) {
      if (Date.now() - began > RESUBSCRIBE) throw new Error('the gateways did not resubscribe')
      await sleep(READ_INTERVAL)
    }
    const took = Date.now() - began
    const { cpu, redis: redisCpu = 0 } = usage.end()
    this.#cut = {
      resubscribed_ms: took,
      resubscribe_cpu_us: rounded((cpu / before) * 1e6, 1),
      redis_resubscribe_cpu_us: rounded((redisCpu / before) * 1e6, 1),
    }
    return { text: `Redis connections cut; ${count(before)} channels resubscribed after ${took} ms` }
  }

  /** Stops churn. Reopened connections must receive a last message before publishing ends. @param {number} churn */
  async #calm(churn) {
    const { fleet, snapshots, note } = this.#context
    const n = this.#wanted
    const { disturbances = [], settings } = this.#step
    if (churn > 0) await snapshots.race(fleet.set({ churn: 0 }))
    if (churn === 0 && disturbances.length === 0) return
    const last = await snapshots.until((snapshot, seconds) => {
      this.#say('waiting for reconnects', snapshot)
      return (snapshot.gauges.open >= n && snapshot.gauges.opening === 0) || seconds > RETURN
    })
    if (last.gauges.open < n)
      note(
        `${this.#step.name}: ${count(n - last.gauges.open)} connections did not reconnect within ${RETURN} s.`,
      )
    // By messages, not by time: publishers may be late.
    const enough = last.counters.published + TURNS * turnOf(settings, n)
    await snapshots.until((snapshot, seconds) => {
      this.#say('publishing to each channel once more', snapshot)
      return snapshot.counters.published >= enough || seconds >= TURNS_TIMEOUT
    })
  }

  /** @param {number} timeout s @returns {Promise<Counters>} */
  async #account(timeout) {
    const { fleet, snapshots } = this.#context
    const published = (this.#step.settings.publish_rate ?? 0) > 0
    await snapshots.race(fleet.set({ publish_rate: 0, churn: 0 }))
    await this.#quiet(QUIET, timeout)
    let reconciliation = published ? await this.#reconcile() : null
    if (reconciliation !== null && reconciliation.lost > 0) {
      // They may be late, not lost.
      await this.#quiet(LONG_QUIET, timeout)
      reconciliation = await this.#reconcile()
    }
    let accounting = noAccounting()
    let { counters } = snapshots.last
    for (let again = RECOMPARISONS; ; again--) {
      // Counters arrive once a second: a busy drone's may be older than its reconciliation.
      await snapshots.until((snapshot, seconds) => {
        counters = snapshot.counters
        accounting = accountingOf(counters, this.#base, reconciliation)
        return reconciliation === null || isBalanced(accounting) || seconds > LATE
      })
      if (reconciliation === null || isBalanced(accounting) || again === 0) break
      // A suspended drone seems idle: its messages arrive after the comparison.
      await this.#quiet(LONG_QUIET, timeout)
      reconciliation = await this.#reconcile()
    }
    if (this.result !== null) {
      this.result.accounting = accounting
      if (accounting.reconnects > 0) {
        const { p50, p99 } = latencyOf(snapshots.last.connect)
        Object.assign(this.#figures, { reconnect_p50_ms: roundedMs(p50), reconnect_p99_ms: roundedMs(p99) })
      }
    }
    return counters
  }

  /** @param {number} snapshots without new messages @param {number} timeout s */
  async #quiet(snapshots, timeout) {
    let quiet = 0
    await this.#context.snapshots.until((snapshot, seconds) => {
      this.#say('waiting for the last messages', snapshot)
      quiet = snapshot.rates.received === 0 && snapshot.rates.published === 0 ? quiet + 1 : 0
      return quiet >= snapshots || seconds > timeout
    })
  }

  /** @returns {Promise<Reconciliation | null>} null: failed, with a note */
  async #reconcile() {
    const { fleet, snapshots, note, progress } = this.#context
    progress(`${this.#step.name}: comparing received with published messages`)
    try {
      const reconciliation = await snapshots.race(fleet.reconcile())
      if (reconciliation.missing.length > 0)
        note(
          `${this.#step.name}: ${reconciliation.missing.join(', ')} did not respond to the accounting request.`,
        )
      return reconciliation
    } catch (error) {
      if (error instanceof Interrupted) throw error
      note(`${this.#step.name}: the accounting failed: ${error.message}.`)
      return null
    }
  }
}

/** CPU time (s) by part; `cpu`: all servers without Redis. @typedef {Record<string, number>} Parts */

class Usage {
  #servers
  #began = performance.now()
  #before
  /** @type {number | null} */
  #memory = null

  /** @param {Servers} servers */
  constructor(servers) {
    this.#servers = servers
    this.#before = servers.cpuParts()
  }

  readMemory() {
    this.#memory = Math.min(this.#memory ?? Infinity, this.#servers.memory())
  }

  /** @returns {Parts} since the beginning */
  end() {
    const now = this.#servers.cpuParts()
    return Object.fromEntries(
      Object.entries(now).map(([part, cpu]) => [part, cpu - (this.#before[part] ?? 0)]),
    )
  }

  /** @param {StepResult} step @param {Parts | null} opened used in the ramp @returns {Promise<StepServer>} */
  async result({ connections: { open }, ramp }, opened) {
    const { base, redis } = this.#servers
    const seconds = (performance.now() - this.#began) / 1000
    const percents = Object.fromEntries(
      Object.entries(this.end()).map(([part, cpu]) => [part, (cpu / seconds) * 100]),
    )
    const { cpu, redis: redisCpu = null, ...parts } = percents
    const each = (/** @type {number | undefined} */ used) =>
      used !== undefined && ramp.opened > 0 ? (used / ramp.opened) * 1e6 : null
    return {
      ...{ cpu, redisCpu, parts, base },
      connectCpu: each(opened?.cpu),
      redisConnectCpu: each(opened?.redis),
      connection: this.#memory === null || base === null || open === 0 ? null : (this.#memory - base) / open,
      memory: this.#memory,
      redisMemory: redis ? await redis.info('used_memory') : null,
    }
  }
}

/** Messages until each channel has one, on average. @param {Partial<FleetSettings>} settings @param {number} n */
function turnOf({ publish_channels = [], publish_rate = 0 }, n) {
  if (publish_rate === 0) return 0
  const counts = publish_channels.map(template => parseTemplate(template).count(n))
  return Math.max(0, ...counts) * publish_channels.length
}
