import { count, percent } from '../../src/base/format.js'
import { parseTemplate } from '../channel-template.js'
import { disturbGateway } from './disturb.js'
import { RampWatch } from './ramp-watch.js'
import { accountingOf, isBalanced, measured, noAccounting } from './result.js'
import { Interrupted } from './snapshots.js'
import { progressText } from './summary.js'
import { RefusalCheck, topFault, withHint } from './target.js'

/** @typedef {import('../scenarios/contract.js').Step} Step */
/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('./result.js').StepResult} StepResult */
/** @typedef {import('../schema.js').Counters} Counters */

/** s for connections to return after the last disturbance */
const RETURN = 90
/** s for messages under way, at the end of a step, and of an interrupted run */
const DRAIN = 60
const SHORT_DRAIN = 5
/** Quiet snapshots after which nothing is under way, and after which missing messages count as lost. */
const QUIET = 1
const LONG_QUIET = 5
/** s to wait for counters that do not balance yet. */
const LATE = 5
/** Further reckonings, while they do not balance. */
const RECKONED_AGAIN = 2
/** Rounds over all channels after the last new connection, so that each knows its position, and the maximum in s. */
const TURNS = 1.5
const TURNS_MOST = 120

/**
 * @typedef {object} RunContext parts of the run
 * @property {import('../controller/fleet.js').Fleet} fleet
 * @property {import('./snapshots.js').Snapshots} snapshots
 * @property {string} target
 * @property {import('./servers.js').Servers | null} servers null: they are not the run's
 * @property {(text: string) => void} progress
 * @property {(text: string) => void} note records a deviation from the plan
 */

/** One step of a run: open connections, apply load, measure, wait for silence, reckon. */
export class StepRun {
  #context
  #step
  #base
  /** @type {StepResult | null} */
  result = null
  /** Number of the next worker to disturb. */
  #worker = 0
  /** Connections that should be open; fewer when some have left. */
  #wanted = 0
  /** @type {StepResult['disturbances']} */
  #disturbed = []
  /** @type {Promise<void>[]} */
  #underWay = []

  /**
   * @param {RunContext} context @param {Step} step
   * @param {Counters} base the fleet's counters at the end of the previous step
   */
  constructor(context, step, base) {
    this.#context = context
    this.#step = step
    this.#base = base
  }

  /**
   * @returns {Promise<Counters>} of the fleet, at the end of the step
   * @throws {Interrupted} `result` has the measurements until then, if any
   */
  async play() {
    const { fleet, snapshots } = this.#context
    const { n = 0, publish_rate = 0, churn = 0, ...rest } = this.#step.settings
    const { recover = false } = rest
    const urls = this.#context.servers?.urls ?? []
    const across =
      this.#step.across && urls.length > 1 ? { host: urls.slice(-1), publish_host: urls.slice(0, 1) } : {}
    const { servers } = this.#context
    this.#wanted = n
    const calm = { publish_rate: 0, churn: 0 }
    await snapshots.race(fleet.set({ ...rest, ...across, ...calm }))
    fleet.resetStatistics()
    const cpuBefore = servers?.cpu() ?? 0
    const ramp = await this.#open(n)
    const connectCpu = (servers?.cpu() ?? 0) - cpuBefore
    const { connect } = snapshots.last
    const refusal = new RefusalCheck(this.#context.target, snapshots.last)
    await snapshots.race(fleet.set({ publish_rate, churn }))
    await this.#settle(refusal)
    fleet.resetStatistics()
    const first = await snapshots.next()
    let least = first.gauges.open
    let last = first
    const usage = servers && new Usage(servers)
    const keep = (/** @type {boolean} */ partial) => {
      this.result = measured({
        name: this.#step.name,
        first,
        last,
        least,
        ramp,
        connect,
        partial,
        recover,
        publishRate: publish_rate,
      })
      this.result.disturbances = this.#disturbed
      this.result.server = usage?.result(this.result, connectCpu) ?? null
    }
    try {
      last = await snapshots.until((snapshot, seconds) => {
        last = snapshot
        if (publish_rate === 0 && this.#wanted === n) usage?.readMemory()
        if (this.#wanted === n) least = Math.min(least, snapshot.gauges.open)
        refusal.checkMessages(snapshot)
        refusal.checkRecovery(snapshot)
        const measuredSeconds = (snapshot.time - first.time) / 1000
        this.#disturb(seconds)
        this.#say(`measuring ${Math.round(measuredSeconds)}/${this.#step.seconds} s`, snapshot)
        return measuredSeconds >= this.#step.seconds - 0.5
      })
      refusal.checkMessages(last, true)
      keep(false)
    } catch (error) {
      if (last !== first) keep(true)
      throw error
    }
    await snapshots.race(Promise.all(this.#underWay))
    await this.#calm(churn)
    return await this.#account(DRAIN)
  }

  /** Reckons an interrupted step, with a short wait. @param {StepResult} result @returns {Promise<Counters>} */
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
      const [fault] = topFault(last.faults, before.faults) ?? ['no reason is known']
      const reason = withHint(fault, last.settings.transport)
      note(
        `${this.#step.name}: ${count(last.gauges.open)} of ${count(n)} connections could be opened: ${reason}.`,
      )
    }
    const seconds = (last.time - before.time) / 1000
    const opened = last.counters.opened - before.counters.opened
    const mean = seconds > 0 ? opened / seconds : 0
    // Rates are those of a drone's last sample: of two samples between two snapshots, the first one is not seen.
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
      // One after the other: a gateway that starts has no worker to kill.
      const before = this.#underWay.at(-1) ?? Promise.resolve()
      const work = before
        .then(() => this.#carryOut(disturbance))
        .then(
          ({ text, forgotten = 0 }) =>
            void this.#disturbed.push({ at: Math.round(seconds), text, left: kind === 'leave', forgotten }),
          error => this.#context.note(`${this.#step.name}: ${kind} failed: ${error.message}.`),
        )
      this.#underWay.push(work)
    }
  }

  /**
   * @param {import('../scenarios/contract.js').Disturbance} disturbance
   * @returns {Promise<{text: string, forgotten?: number}>} what was done; subscriptions whose history it destroyed
   */
  async #carryOut({ kind, share = 1, over = 0 }) {
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
        return { text: `${count(leaving)} connections left ${how} (${percent(share * 100)})` }
      }
      case 'stop-redis':
        await servers?.redis?.stop()
        return { text: 'Redis stopped' }
      case 'kill-redis':
        await servers?.redis?.kill()
        return { text: 'Redis killed with SIGKILL' }
      case 'start-redis':
        await servers?.redis?.start()
        return { text: 'Redis started again' }
      default: {
        const gateways = servers?.gateways ?? []
        if (gateways.length === 0) throw new Error('the gateway is not ours')
        const subscriptions = this.#wanted * (this.#step.settings.channels?.length ?? 0)
        const index = this.#worker++
        const gateway = gateways[index % gateways.length]
        const worker = Math.floor(index / gateways.length)
        return await disturbGateway(gateway, kind, worker, gateway.hasMemoryEngine ? subscriptions : 0)
      }
    }
  }

  /**
   * Stops churn and waits for returning connections before publishing ends, so that all know what they should have
   * received.
   * @param {number} churn
   */
  async #calm(churn) {
    const { fleet, snapshots, note } = this.#context
    const n = this.#wanted
    const { disturbances = [], settings } = this.#step
    if (churn > 0) await snapshots.race(fleet.set({ churn: 0 }))
    if (churn === 0 && disturbances.length === 0) return
    const last = await snapshots.until((snapshot, seconds) => {
      this.#say('waiting for all to be back', snapshot)
      return (snapshot.gauges.open >= n && snapshot.gauges.opening === 0) || seconds > RETURN
    })
    if (last.gauges.open < n)
      note(`${this.#step.name}: ${count(n - last.gauges.open)} connections did not come back in ${RETURN} s.`)
    // By messages, not by the clock: publishers that are behind need longer for a round.
    const enough = last.counters.published + TURNS * turnOf(settings, n)
    await snapshots.until((snapshot, seconds) => {
      this.#say('every channel has its turn once more', snapshot)
      return snapshot.counters.published >= enough || seconds >= TURNS_MOST
    })
  }

  /** @param {number} timeout s @returns {Promise<Counters>} */
  async #account(timeout) {
    const { fleet, snapshots } = this.#context
    const published = (this.#step.settings.publish_rate ?? 0) > 0
    await snapshots.race(fleet.set({ publish_rate: 0, churn: 0 }))
    await this.#quiet(QUIET, timeout)
    let reckoning = published ? await this.#reckon() : null
    if (reckoning !== null && reckoning.lost > 0) {
      // It may be late, not lost.
      await this.#quiet(LONG_QUIET, timeout)
      reckoning = await this.#reckon()
    }
    let accounting = noAccounting()
    let { counters } = snapshots.last
    for (let again = RECKONED_AGAIN; ; again--) {
      // Counters come once a second: those of a busy drone may be older than its reckoning.
      await snapshots.until((snapshot, seconds) => {
        counters = snapshot.counters
        accounting = accountingOf(counters, this.#base, reckoning)
        return reckoning === null || isBalanced(accounting) || seconds > LATE
      })
      if (reckoning === null || isBalanced(accounting) || again === 0) break
      // A drone that stood still looked quiet: its messages came after the reckoning.
      await this.#quiet(LONG_QUIET, timeout)
      reckoning = await this.#reckon()
    }
    if (this.result !== null) this.result.accounting = accounting
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

  /** @returns {Promise<import('../schema.js').Reckoning | null>} null: it failed, which is noted */
  async #reckon() {
    const { fleet, snapshots, note, progress } = this.#context
    progress(`${this.#step.name}: comparing received with published messages`)
    try {
      const reckoning = await snapshots.race(fleet.reckon())
      if (reckoning.missing.length > 0)
        note(`${this.#step.name}: ${reckoning.missing.join(', ')} could not be asked for the books.`)
      return reckoning
    } catch (error) {
      if (error instanceof Interrupted) throw error
      note(`${this.#step.name}: the books could not be compared: ${error.message}.`)
      return null
    }
  }
}

/** Processor time and memory of the servers during a measurement. */
class Usage {
  #servers
  #began = performance.now()
  #cpu
  #redisCpu
  /** @type {number | null} */
  #memory = null

  /** @param {import('./servers.js').Servers} servers */
  constructor(servers) {
    this.#servers = servers
    this.#cpu = servers.cpu()
    this.#redisCpu = servers.redisCpu()
  }

  readMemory() {
    this.#memory = Math.min(this.#memory ?? Infinity, this.#servers.memory())
  }

  /** @param {StepResult} step @param {number} connectCpu s @returns {NonNullable<StepResult['server']>} */
  result({ connections: { open }, ramp: { opened } }, connectCpu) {
    const { base } = this.#servers
    const seconds = (performance.now() - this.#began) / 1000
    const redisCpu = this.#servers.redisCpu()
    return {
      cpu: ((this.#servers.cpu() - this.#cpu) / seconds) * 100,
      redisCpu:
        redisCpu === null || this.#redisCpu === null ? null : ((redisCpu - this.#redisCpu) / seconds) * 100,
      connectCpu: opened > 0 ? (connectCpu / opened) * 1e6 : null,
      connection: this.#memory === null || base === null || open === 0 ? null : (this.#memory - base) / open,
      base,
    }
  }
}

/**
 * @param {Partial<import('../schema.js').FleetSettings>} settings @param {number} n
 * @returns {number} messages after which each channel had one, on average
 */
function turnOf({ publish_channels = [], publish_rate = 0 }, n) {
  if (publish_rate === 0) return 0
  const counts = publish_channels.map(template => parseTemplate(template).count(n))
  return Math.max(0, ...counts) * publish_channels.length
}
