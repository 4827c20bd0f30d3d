import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { addCounters, addFault, zeroCounters } from '../statistics/counters.js'
import { Distributions } from '../statistics/distribution.js'
import { EngineProcess, ProcessEnded } from './engine-process.js'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Clock, DroneProcess, EngineSample, Settings } from '../schema.js' */

/** @typedef {EngineSample & {process: DroneProcess}} ProcessSample */

/** Time for processes to send samples, ms; later ones count for the next sample. */
const SAMPLE_TIMEOUT = 500
const BACKOFF = 1000
/** Exit timeout of a process, ms: its engine gives up after 5 s and sends its last sample. */
const GRACE = 6_000
/** Samples without a new connection until a process no longer blocks the next one. */
const STUCK_SAMPLES = 5
/** Share of missing connections at which the next process starts filling up. */
const ALMOST = 0.1
/** Weights in the limits; a process that fills up has 1. Complete ones reopen lost connections. */
const ALMOST_WEIGHT = 0.5
const COMPLETE_WEIGHT = 0.005
const MAX_FAULTS = 29

/** The drone's processes: as many as its connections need, and one that publishes. */
export class ProcessPool {
  #options
  #totals = new Totals()
  /** In the order of their slots, with leaving ones until their last sample. @type {ProcessSlot[]} */
  #slots = []
  /** @type {Settings | null} */
  #settings = null

  /**
   * @param {{fork: () => ChildProcess, launch: object, perProcess: number, hangAfter: number, onExit: (text: string) =>
   *   void}} options `launch`: of the engines; `hangAfter`: s
   */
  constructor(options) {
    this.#options = options
  }

  get #staying() {
    return this.#slots.filter(({ leaving }) => !leaving)
  }

  /**
   * Resolves when all processes, or their replacements, have applied the settings.
   * @param {Settings} settings @throws {Error} a process refused them
   */
  async apply(settings) {
    this.#settings = settings
    const { perProcess } = this.#options
    const holding = this.#staying.filter(({ role }) => role === 'connections')
    const progress = holding.map(({ sample, isStuck }) => ({ open: sample?.gauges.open ?? 0, isStuck }))
    const shares = splitSettings(settings, perProcess, progress, availableParallelism())
    this.#stopInTurn(holding.slice(shares.length))
    const applied = shares.map((share, i) => (holding[i] ?? this.#add('connections')).apply(share))
    // Keep it when idle: only it has the ledgers of its messages.
    let publisher = this.#staying.find(({ role }) => role === 'publisher')
    if (settings.publish) publisher ??= this.#add('publisher')
    await Promise.all([
      ...applied,
      publisher?.apply({
        ...settings,
        targets: settings.publish?.targets ?? settings.targets,
        connections: 0,
        churn: 0,
        ports: '',
        addresses: [],
      }),
    ])
  }

  /** One after the other: a server on the same cores sends pings in between. @param {ProcessSlot[]} slots */
  async #stopInTurn(slots) {
    for (const slot of slots) slot.leaving = true
    for (const slot of slots) await slot.stop()
  }

  /** @param {ProcessSlot['role']} role */
  #add(role) {
    const slot = new ProcessSlot({ ...this.#options, role, totals: this.#totals })
    this.#slots.push(slot)
    return slot
  }

  async sample() {
    this.#slots = this.#slots.filter(({ gone }) => !gone)
    for (const slot of this.#slots) slot.requestSample()
    await sleep(SAMPLE_TIMEOUT)
    // Limits apply to the drone: complete processes leave their share to others.
    if (this.#settings) this.apply(this.#settings).catch(() => {})
    const samples = this.#slots.flatMap(({ sample }) => sample ?? [])
    return {
      ...this.#totals.take(samples, this.#settings?.connections ?? 0),
      processes: samples.map(sample => sample.process),
    }
  }

  /** Results of all processes; lists are joined. @param {string} method @param {...any} values @returns {Promise<any[]>} */
  async request(method, ...values) {
    const answers = await Promise.all(this.#staying.map(slot => slot.request(method, ...values)))
    return answers.flatMap(answer => answer ?? [])
  }

  async restart() {
    const settings = this.#settings
    await this.stop()
    const wanted = this.#settings ?? settings
    if (wanted) await this.apply(wanted)
  }

  /** @returns {Promise<void>} after their exit */
  async stop() {
    this.#settings = null
    await Promise.all(this.#slots.map(slot => slot.stop()))
  }
}

/**
 * Keeps the settings of one process, and replaces it when it exits.
 *
 *   up -> exited -> (back-off) -> up ...
 *    `-> leaving -> gone
 */
class ProcessSlot {
  #options
  /** @type {EngineProcess | null} */
  #process = null
  #unanswered = 0
  /** @type {Settings | null} */
  #settings = null
  /** Settings applied by the current process, as JSON. */
  #appliedKey = ''
  /** Consecutive samples without a new connection, though allowed. */
  #standstill = 0
  /** Last sample of the current process. @type {ProcessSample | null} */
  sample = null
  leaving = false

  /**
   * @param {{role: 'connections' | 'publisher', fork: () => ChildProcess, launch: object, hangAfter: number, totals:
   *   Totals, onExit: (text: string) => void}} options `launch`: of the engine; `hangAfter`: s
   */
  constructor(options) {
    this.#options = options
    this.role = options.role
    this.#start()
  }

  /** It may open connections but does not, for example because a target is down. */
  get isStuck() {
    return this.#standstill >= STUCK_SAMPLES
  }

  get gone() {
    return this.leaving && !this.#process
  }

  #start() {
    if (this.leaving) return
    const { launch, role, fork } = this.#options
    this.#unanswered = 0
    this.#appliedKey = ''
    try {
      this.#process = new EngineProcess(fork, { ...launch, role })
    } catch (error) {
      return this.#onEnd(error.message)
    }
    this.#process.ended.then(why => this.#onEnd(why))
    if (this.#settings) this.apply(this.#settings).catch(() => {})
  }

  /** @param {Settings} settings @returns {Promise<void>} when applied @throws {Error} the process refused them */
  async apply(settings) {
    this.#settings = settings
    const key = JSON.stringify(settings)
    if (key === this.#appliedKey) return
    await this.request('apply', settings)
    this.#appliedKey = key
  }

  /**
   * Resolves with undefined if the process exits.
   * @param {string} method @param {...any} params @returns {Promise<any>} @throws {Error} of the engine
   */
  async request(method, ...params) {
    try {
      return await this.#process?.request(method, ...params)
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error
    }
  }

  /** Kills a process that leaves `hangAfter` requests unanswered. */
  requestSample() {
    if (this.#unanswered++ <= this.#options.hangAfter) return void this.#addSample('sample')
    this.#process?.kill('it did not respond')
  }

  /** @param {'sample' | 'stop'} method that returns a sample */
  async #addSample(method) {
    const process = this.#process
    // requestSample kills a process without samples.
    const sample = await this.request(method).catch(() => null)
    if (!sample) return
    this.#options.totals.merge(sample)
    this.#unanswered = 0
    if (this.#process !== process) return
    const hasOpened = sample.counters.opened > (this.sample?.counters.opened ?? 0)
    this.#standstill = hasOpened || this.#settings?.concurrency === 0 ? 0 : this.#standstill + 1
    this.sample = sample
  }

  /** @param {string} why */
  #onEnd(why) {
    const { totals, onExit } = this.#options
    const { sample, role } = this
    const pid = this.#process?.pid
    this.#process = this.sample = null
    if (sample) totals.addEnded(sample)
    if (this.leaving) return
    setTimeout(() => this.#start(), BACKOFF)
    totals.exits++
    onExit(
      `${role} process ${pid} with ${sample?.gauges.open ?? 0} connections exited (${why}); replacing it`,
    )
  }

  /** Closes the connections and ends the process, by force after GRACE. @returns {Promise<void>} after its exit */
  async stop() {
    this.leaving = true
    const process = this.#process
    if (!process) return
    const force = setTimeout(() => process.kill(), GRACE)
    this.#addSample('stop')
    await process.ended
    clearTimeout(force)
  }
}

/**
 * Distributes concurrency and rate. Only `cores` processes fill up at a time: a connection costs six times
 * as much if fifty processes open connections in turn on two cores, with cold caches.
 * @param {Settings} settings of the drone @param {number} perProcess connections
 * @param {{open: number, isStuck: boolean}[]} progress of the processes so far @param {number} cores
 * @returns {Settings[]} one for each process that holds connections; concurrency 0: it waits
 */
export function splitSettings(settings, perProcess, progress, cores) {
  const { connections, concurrency, rate, churn, first } = settings
  const counts = []
  for (let left = connections; left > 0; left -= perProcess) counts.push(Math.min(perProcess, left))
  let filling = 0
  /** @type {number[]} */
  const weights = counts.map((count, i) => {
    const { open = 0, isStuck = false } = progress[i] ?? {}
    const missing = (count - open) / count
    if (missing <= 0) return COMPLETE_WEIGHT
    if (missing <= ALMOST || isStuck) return ALMOST_WEIGHT
    return filling++ < cores ? 1 : 0
  })
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  return counts.map((count, i) => ({
    ...settings,
    connections: count,
    first: first + i * perProcess,
    concurrency: weights[i] && Math.max(1, Math.floor((concurrency * weights[i]) / all)),
    rate: (rate * weights[i]) / all,
    churn: (churn * count) / connections,
    publish: null,
  }))
}

/** Counters of all processes of the drone, including exited ones. */
export class Totals {
  exits = 0
  #past = zeroCounters()
  /** @type {Record<string, number>} */
  #faults = Object.create(null)
  #distributions = new Distributions()

  /** Adds distributions and faults. @param {any} sample */
  merge(sample) {
    for (const kind in sample.faults) addFault(this.#faults, kind, sample.faults[kind], MAX_FAULTS)
    this.#distributions.merge(sample)
  }

  /** @param {EngineSample} sample last sample of an exited process */
  addEnded({ counters, gauges }) {
    addCounters(this.#past, counters)
    // Its open connections ended with it.
    this.#past.ended += gauges.open
  }

  /** Restarts the distributions. @param {EngineSample[]} samples of all processes @param {number} wanted connections */
  take(samples, wanted) {
    const gauges = { wanted, opening: 0, open: 0 }
    const counters = { ...this.#past }
    for (const sample of samples) {
      addCounters(counters, sample.counters)
      gauges.opening += sample.gauges.opening
      gauges.open += sample.gauges.open
    }
    /** @type {Clock[]} */
    const [clock = { offset: 0, error: 0, against: 'none' }] = samples
      .flatMap(({ clock }) => (clock.against === 'gateway' ? clock : []))
      .sort((a, b) => a.error - b.error)
    const distributions = this.#distributions.toWire()
    this.#distributions.reset()
    return { gauges, counters, faults: this.#faults, clock, exits: this.exits, ...distributions }
  }
}
