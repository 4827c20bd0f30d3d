import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { addCounters, addFault, zeroCounters } from '../statistics/counters.js'
import { Distributions } from '../statistics/distribution.js'
import { EngineProcess, ProcessEnded } from './engine-process.js'

/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {import('../schema.js').EngineSample} EngineSample */
/** @typedef {import('../schema.js').EngineSample & {process: import('../schema.js').DroneProcess}} ProcessSample */

/** ms for processes to send their samples; a later one counts for the next sample. */
const SAMPLE_TIMEOUT = 500
/** ms before a process that died is replaced. */
const BACKOFF = 1000
/** ms for a process to close its connections: its engine gives up after 5 s and sends its last sample. */
const GRACE = 6_000
/** Samples without a new connection after which a process no longer keeps the next one waiting. */
const STUCK_SAMPLES = 5
/** Missing share of connections at which a process makes room for the next one. */
const ALMOST = 0.1
/** Weights in the limits, beside 1 of a process that fills up. Complete ones may lose connections and reopen them. */
const ALMOST_WEIGHT = 0.5
const COMPLETE_WEIGHT = 0.005
/** Kinds of faults counted by name. */
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
   * @param {object} options @param {() => import('node:child_process').ChildProcess} options.fork
   * @param {object} options.launch of the engines @param {number} options.perProcess connections
   * @param {number} options.hangAfter s @param {(text: string) => void} options.onDeath
   */
  constructor(options) {
    this.#options = options
  }

  get #staying() {
    return this.#slots.filter(({ leaving }) => !leaving)
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when all processes have applied them; successors of processes that die meanwhile do so
   *   too
   * @throws {Error} a process refused them
   */
  async apply(settings) {
    this.#settings = settings
    const { perProcess } = this.#options
    const holding = this.#staying.filter(({ role }) => role === 'connections')
    const progress = holding.map(({ sample, isStuck }) => ({ open: sample?.gauges.open ?? 0, isStuck }))
    const shares = splitSettings(settings, perProcess, progress, availableParallelism())
    this.#stopInTurn(holding.slice(shares.length))
    const applied = shares.map((share, i) => (holding[i] ?? this.#add('connections')).apply(share))
    // It stays when idle: only it has the ledgers of its messages.
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

  /**
   * One after the other: a server on the same cores sends pings in between, also when hundreds of thousands leave.
   * @param {ProcessSlot[]} slots
   */
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

  /**
   * @returns {Promise<EngineSample & {deaths: number, processes: import('../schema.js').DroneProcess[]}>} sum of all
   *   processes since the last call
   */
  async sample() {
    this.#slots = this.#slots.filter(({ gone }) => !gone)
    for (const slot of this.#slots) slot.requestSample()
    await sleep(SAMPLE_TIMEOUT)
    // Limits are the drone's: a complete process leaves its share to the others.
    if (this.#settings) this.apply(this.#settings).catch(() => {})
    const samples = this.#slots.flatMap(({ sample }) => sample ?? [])
    return {
      ...this.#totals.take(samples, this.#settings?.connections ?? 0),
      processes: samples.map(sample => sample.process),
    }
  }

  /**
   * @param {string} method @param {...any} values @returns {Promise<any[]>} results of all processes; lists are joined
   */
  async request(method, ...values) {
    const answers = await Promise.all(this.#staying.map(slot => slot.request(method, ...values)))
    return answers.flatMap(answer => answer ?? [])
  }

  /** Replaces all processes; the new ones get the same settings. */
  async restart() {
    const settings = this.#settings
    await this.stop()
    const wanted = this.#settings ?? settings
    if (wanted) await this.apply(wanted)
  }

  /** @returns {Promise<void>} when all are gone */
  async stop() {
    this.#settings = null
    await Promise.all(this.#slots.map(slot => slot.stop()))
  }
}

/**
 * Keeps the settings of one process, and replaces it when it dies.
 *
 *   up -> died -> (back-off) -> up ...
 *    `-> leaving -> gone
 */
class ProcessSlot {
  #options
  /** @type {EngineProcess | null} */
  #process = null
  /** Samples requested since the last answer. */
  #silent = 0
  /** @type {Settings | null} */
  #settings = null
  /** Those that the current process has applied, as JSON. */
  #appliedKey = ''
  /** Samples in a row without a new connection, though it may open some. */
  #standstill = 0
  /** The last one of the current process. @type {ProcessSample | null} */
  sample = null
  leaving = false

  /**
   * @param {object} options @param {'connections' | 'publisher'} options.role
   * @param {() => import('node:child_process').ChildProcess} options.fork
   * @param {object} options.launch of the engine @param {number} options.hangAfter s
   * @param {Totals} options.totals @param {(text: string) => void} options.onDeath
   */
  constructor(options) {
    this.#options = options
    this.role = options.role
    this.#start()
  }

  /** It may open connections, and does not: one of several targets is down, for example. */
  get isStuck() {
    return this.#standstill >= STUCK_SAMPLES
  }

  get gone() {
    return this.leaving && !this.#process
  }

  #start() {
    if (this.leaving) return
    const { launch, role, fork } = this.#options
    this.#silent = 0
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
   * @param {string} method @param {...any} params
   * @returns {Promise<any>} undefined: there is no process, or it died meanwhile
   * @throws {Error} an error of the engine
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
    if (this.#silent++ <= this.#options.hangAfter) return void this.#addSample('sample')
    this.#process?.kill('it did not answer')
  }

  /** @param {'sample' | 'stop'} method whose answer is a sample */
  async #addSample(method) {
    const process = this.#process
    // A process without samples is killed by requestSample.
    const sample = await this.request(method).catch(() => null)
    if (!sample) return
    this.#options.totals.merge(sample)
    this.#silent = 0
    if (this.#process !== process) return
    const hasOpened = sample.counters.opened > (this.sample?.counters.opened ?? 0)
    this.#standstill = hasOpened || this.#settings?.concurrency === 0 ? 0 : this.#standstill + 1
    this.sample = sample
  }

  /** @param {string} why */
  #onEnd(why) {
    const { totals, onDeath } = this.#options
    const { sample, role } = this
    const pid = this.#process?.pid
    this.#process = this.sample = null
    if (sample) totals.addEnded(sample)
    if (this.leaving) return
    setTimeout(() => this.#start(), BACKOFF)
    totals.deaths++
    onDeath(
      `${role} process ${pid} with ${sample?.gauges.open ?? 0} connections ended (${why}) and is replaced`,
    )
  }

  /** Closes its connections and ends its process, by force after GRACE. @returns {Promise<void>} when it is gone */
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
 * Shares out concurrency and rate. Only some processes fill up at a time, and then the next ones: a connection costs six
 * times as much if fifty processes open some in turn on two cores, with cold caches.
 * @param {import('../schema.js').Settings} settings of the drone @param {number} perProcess connections
 * @param {{open: number, isStuck: boolean}[]} progress of the processes so far @param {number} cores as many processes
 *   fill up at a time
 * @returns {import('../schema.js').Settings[]} one for each process that holds connections; concurrency 0: it waits
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

/** Counters of all processes of the drone. Those of ended processes stay in the sums. */
export class Totals {
  /** Processes that died. */
  deaths = 0
  #past = zeroCounters()
  /** @type {Record<string, number>} */
  #faults = Object.create(null)
  #distributions = new Distributions()

  /** Adds distributions and faults. @param {any} sample */
  merge(sample) {
    for (const kind in sample.faults) addFault(this.#faults, kind, sample.faults[kind], MAX_FAULTS)
    this.#distributions.merge(sample)
  }

  /** @param {EngineSample} sample the last one of an ended process */
  addEnded({ counters, gauges }) {
    addCounters(this.#past, counters)
    // Its open connections ended with it.
    this.#past.ended += gauges.open
  }

  /**
   * @param {EngineSample[]} samples the last ones of all processes @param {number} wanted connections
   * @returns {EngineSample & {deaths: number}} of the drone; distributions restart from zero
   */
  take(samples, wanted) {
    const gauges = { wanted, opening: 0, open: 0 }
    const counters = { ...this.#past }
    for (const sample of samples) {
      addCounters(counters, sample.counters)
      gauges.opening += sample.gauges.opening
      gauges.open += sample.gauges.open
    }
    /** @type {import('../schema.js').Clock[]} */
    const [clock = { offset: 0, error: 0, against: 'none' }] = samples
      .flatMap(({ clock }) => (clock.against === 'gateway' ? clock : []))
      .sort((a, b) => a.error - b.error)
    const distributions = this.#distributions.toWire()
    this.#distributions.reset()
    return { gauges, counters, faults: this.#faults, clock, deaths: this.deaths, ...distributions }
  }
}
