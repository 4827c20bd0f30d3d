// The controller of a fleet: launches, directs, watches and stops its drones. Fleet is the folder's interface; commands
// use it over the control socket (client.js -> control-server.js -> daemon.js), the runner directly.
//
//   folder.js, drone-list.js, drone.js   state: on disk, in memory, of one drone; snapshot.js merges it
//   links.js, messages.js                links to drones, and checks of what they send
//   launcher.js, launch.js, relauncher.js   launch, stop, relaunch; settings-sender.js, shares.js   settings and ramps
//
// May import: link/, providers/ (contract and index), statistics/, settings, program; never drone/, runner/, cli/.
// Promises: after a crash a new controller finds every launched drone and its counts; a setting applies to all drones
// or to none; no message of a drone is used unchecked.

import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { readProgram } from '../program.js'
import { defaultSettings } from '../settings.js'
import { Distributions } from '../statistics/distribution.js'
import { DroneList } from './drone-list.js'
import { prepareFolder, readState } from './folder.js'
import { hostForDrones } from './launch.js'
import { Launcher } from './launcher.js'
import { hostAndPort, Links } from './links.js'
import { SettingsSender } from './settings-sender.js'
import { addTally, finalTally, snapshotOf, zeroTally } from './snapshot.js'

/** @typedef {import('../schema.js').FleetSettings} FleetSettings */
/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../providers/contract.js').LaunchPlan} LaunchPlan */
/** @typedef {import('../providers/contract.js').Provider} Provider */
/** @typedef {(text: string) => void} OnProgress */

/** ms between two snapshots. */
const SECOND = 1000
/** Snapshots between two writes of the counts. */
const SAVE_EACH = 5
const EVENTS = 100
/** ms for the drones of a previous controller to connect to this one. */
const ADOPTION = 4000
const POLL = 50

/** Emits `snapshot` each second (FleetSnapshot) and `event` ({time, level, text}). */
export class Fleet extends EventEmitter {
  /** State of a scenario run, for displays. @type {FleetSnapshot['scenario']} */
  scenario = null
  #provider
  #log
  #list
  #links
  #sender
  #launcher
  #distributions = new Distributions()
  /** @type {FleetSnapshot['events']} */
  #events = []
  /** host:port that drones dial */
  #address = ''
  /** @type {NodeJS.Timeout | undefined} */
  #clock
  #ticks = 0
  /** Deadline for the drones of a previous controller. */
  #adopting = 0
  #closed = false

  /**
   * Reads the fleet's state from disk, if there is one, and waits for its drones; else creates a new fleet.
   * @param {object} options
   * @param {string} options.dir folder for the fleet's state; created if necessary
   * @param {Provider} options.provider
   * @param {Record<string, any>} [options.flags] of the provider; default: those of the state
   * @param {OnProgress} [options.log] a line for each event
   * @param {string} [options.bind] host or host:port to listen on; default: the provider's host, a free port
   * @param {string} [options.advertise] host or host:port that drones dial, if different
   * @returns {Promise<Fleet>}
   * @throws {Error} one line: the port is in use, the state is damaged or of another provider
   */
  static async open({ dir, provider, flags, log = () => {}, bind, advertise }) {
    await prepareFolder(dir)
    const known = await readState(dir)
    if (known !== null && known.provider !== provider.name)
      throw new Error(
        `the fleet of ${dir} uses provider ${known.provider}, not ${provider.name}: stop it first, or use another --dir`,
      )
    const fallback = provider.bind ?? '127.0.0.1'
    const { host, port } = bind?.includes(':') ? hostAndPort(bind) : { host: bind ?? fallback, port: 0 }
    /** @type {import('./folder.js').FleetState} */
    const state = known ?? {
      version: 1,
      run: randomBytes(4).toString('hex'),
      secret: randomBytes(32).toString('hex'),
      host,
      port,
      advertise: advertise ?? '',
      provider: provider.name,
      flags: {},
      began: Date.now(),
      next: 1,
      drones: [],
      settings: defaultSettings(),
      base: 0,
      publishFrom: 0,
      revision: 0,
      ramp: null,
      past: zeroTally(),
    }
    if (flags !== undefined) state.flags = flags
    const fleet = new Fleet({ dir, provider, log, state })
    await fleet.#begin()
    return fleet
  }

  /**
   * Private: use Fleet.open().
   * @param {{dir: string, provider: Provider, log: OnProgress, state: import('./folder.js').FleetState}} options
   */
  constructor({ dir, provider, log, state }) {
    super()
    this.#provider = provider
    this.#log = log
    /** @type {import('./drone-list.js').OnEvent} */
    const onEvent = (level, text) => this.#event(level, text)
    const list = new DroneList(dir, state, onEvent)
    const links = new Links(state, {
      onHello: (hello, link) => this.#onHello(hello, link),
      onProgram: sha256 => readProgram(dir, sha256),
      onMessage: (id, link, message) => this.#onMessage(id, link, message),
      onLost: (id, link, reason) => this.#onLost(id, link, reason),
      onFault: text => this.#event('warn', text),
    })
    const sender = new SettingsSender(list, onEvent)
    this.#list = list
    this.#links = links
    this.#sender = sender
    this.#launcher = new Launcher({ list, provider, links, sender, onEvent })
  }

  async #begin() {
    const { state, size } = this.#list
    state.port = await this.#links.listen(state.host, state.port)
    const { advertise } = state
    const advertised = advertise.includes(':')
      ? hostAndPort(advertise)
      : { host: advertise, port: state.port }
    this.#address = `${advertised.host || hostForDrones(state.host)}:${advertised.port}`
    // The last revisions of a killed controller may not have been written.
    state.revision += 1000
    if (size > 0) {
      this.#event('info', `controller restarted; waiting for its ${size} drones`)
      this.#adopting = Date.now() + ADOPTION
    }
    await this.#launcher.adopt()
    this.#sender.resume()
    this.#clock = setInterval(() => this.#tick(), SECOND)
    await this.#list.save()
  }

  get run() {
    return this.#list.state.run
  }

  get provider() {
    return this.#provider
  }

  /** @returns {Readonly<FleetSettings>} */
  get settings() {
    return this.#list.state.settings
  }

  /** All drones, connected or not. */
  get size() {
    return this.#list.size
  }

  /** @returns {Promise<void>} when the drones of a previous controller have reported, or their time is over */
  async adopted() {
    while (Date.now() < this.#adopting && this.#list.members.some(({ sample }) => sample === null))
      await new Promise(resolve => setTimeout(resolve, POLL))
  }

  /** @returns {FleetSnapshot} */
  snapshot() {
    return snapshotOf({
      time: Date.now(),
      state: this.#list.state,
      drones: this.#list.all,
      distributions: this.#distributions,
      events: [...this.#events],
      scenario: this.scenario,
    })
  }

  #tick() {
    if (++this.#ticks % SAVE_EACH === 0) void this.#list.save()
    if (this.listenerCount('snapshot') > 0) this.emit('snapshot', this.snapshot())
  }

  /** @param {'info' | 'warn' | 'error'} level @param {string} text */
  #event(level, text) {
    const event = { time: Date.now(), level, text }
    this.#events.push(event)
    if (this.#events.length > EVENTS) this.#events.shift()
    this.#log(text)
    this.emit('event', event)
  }

  /** @type {import('./links.js').LinkEvents['onHello']} */
  #onHello(hello, link) {
    const drone = this.#list.get(hello.id)
    if (drone === undefined || drone.leaving) return `the fleet has no drone ${hello.id}`
    const { link: before } = drone
    const { capacity } = drone.state
    const restarts = drone.state.start !== '' && drone.state.start !== hello.start
    const tally = drone.attach(link, hello)
    if (before !== null) void before.close('it has dialled again')
    if (tally !== null) addTally(this.#list.state.past, finalTally(tally, 'ended'))
    if (restarts) this.#event('info', `${drone.id} is connected again`)
    this.#launcher.onHello(drone)
    if (drone.state.member) {
      // A changed capacity changes the shares of all.
      if (capacity !== drone.state.capacity) void this.#list.inTurn(() => this.#sender.rebalance())
      else void this.#sender.onHello(drone)
    }
    void this.#list.save()
    return ''
  }

  /** @type {import('./links.js').LinkEvents['onMessage']} */
  #onMessage(id, link, message) {
    const drone = this.#list.get(id)
    if (drone === undefined || drone.link !== link) return
    if (message.type === 'sample') {
      drone.receive(message.sample, Date.now())
      this.#distributions.merge(message.sample)
    } else if (message.type === 'event') this.#event(message.level, `${id}: ${message.text}`)
  }

  /** @type {import('./links.js').LinkEvents['onLost']} */
  #onLost(id, link, reason) {
    const drone = this.#list.get(id)
    if (drone === undefined || drone.link !== link) return
    drone.detach()
    if (drone.leaving || this.#closed) return
    this.#event('warn', `lost the connection to ${id}: ${reason}`)
    this.#launcher.onLost(drone)
  }

  /**
   * @param {Partial<FleetSettings>} partial values as the table's `parse` returns them. A new `n` ends a ramp
   * @returns {Promise<string[]>} warnings, when all connected drones have answered
   * @throws {Error} one line: a drone refuses, or the settings contradict each other; nothing is changed then
   */
  set(partial) {
    return this.#sender.set(partial)
  }

  /**
   * @param {number} to connections @param {number} seconds
   * @returns {Promise<{done: Promise<void>, warnings: string[]}>} when it has begun @throws {Error} one line
   */
  beginRamp(to, seconds) {
    return this.#sender.ramp(to, seconds)
  }

  /**
   * @param {number} to connections @param {number} seconds
   * @returns {Promise<void>} after the last step @throws {Error} one line: it was ended before, or a drone refuses
   */
  async ramp(to, seconds) {
    const { done } = await this.#sender.ramp(to, seconds)
    await done
  }

  /**
   * Ends connections as the network would; they are reopened.
   * @param {number} share 0 to 1 @param {'close' | 'reset'} how @returns {Promise<number>} connections
   */
  async cut(share, how) {
    const up = this.#list.all.filter(drone => drone.up)
    if (up.length === 0) throw new Error('no drone is connected')
    const answers = await Promise.all(up.map(drone => drone.request({ type: 'cut', share, how })))
    return answers.reduce((sum, { cut }) => sum + cut, 0)
  }

  /** Resets the distributions; counters continue. */
  resetStatistics() {
    this.#distributions.reset()
  }

  /**
   * Compares publications and receptions. Publishing must have stopped, and messages under way must have arrived.
   * @returns {Promise<import('../schema.js').Reckoning & {publishers: number, missing: string[]}>} `missing`:
   *   disconnected drones
   */
  async reckon() {
    const missing = this.#list.all.filter(drone => !drone.up).map(({ id }) => id)
    const up = this.#list.all.filter(drone => drone.up)
    /** @type {import('../schema.js').Ledger[]} */
    const ledgers = (await Promise.all(up.map(drone => drone.request({ type: 'ledgers' })))).flat()
    const total = { expected: 0, lost: 0, unknown: 0, publishers: ledgers.length, missing }
    for (const part of await Promise.all(up.map(drone => drone.request({ type: 'reckon', ledgers })))) {
      total.expected += part.expected
      total.lost += part.lost
      total.unknown += part.unknown
    }
    return total
  }

  /**
   * @param {number} n drones @param {import('./launch.js').LaunchOptions} launch
   * @returns {Promise<LaunchPlan>} @throws {Error} one line
   */
  plan(n, launch) {
    return this.#launcher.plan(n, launch, this.#address)
  }

  /**
   * Launches, and waits until all drones have reported.
   * @param {LaunchPlan} plan of this fleet
   * @param {object} [options] @param {OnProgress} [options.onProgress]
   * @param {boolean} [options.keep] keep what was launched when a part fails; otherwise all of it is stopped
   * @param {number} [options.timeout] ms
   * @param {AbortSignal} [options.signal] cancels the launch, or only the wait with `keep`
   * @returns {Promise<import('./launch.js').LaunchOutcome & {fault: string}>} `fault`: what failed although the rest
   *   was kept
   * @throws {Error} one line, with the drones that never reported and what became of the rest
   */
  launch(plan, options = {}) {
    return this.#launcher.launch(plan, options)
  }

  /**
   * Restarts drones: connected ones restart their processes, the others are launched again.
   * @param {string[]} [ids] default: all @returns {Promise<string[]>} ids @throws {Error} one line
   */
  async restart(ids = this.#list.all.map(({ id }) => id)) {
    await this.#launcher.restart(ids)
    return ids
  }

  /**
   * @param {number | 'all'} n the last n drones @param {{onProgress?: OnProgress}} [options]
   * @returns {Promise<string[]>} ids of ended drones @throws {Error} one line: some may still run
   */
  stop(n, { onProgress = () => {} } = {}) {
    return this.#launcher.stop(n, onProgress)
  }

  /** Ends the controller; the drones stay and wait for another one. */
  async close() {
    if (this.#closed) return
    this.#closed = true
    clearInterval(this.#clock)
    this.#launcher.close()
    await this.#sender.close()
    await this.#links.close()
    await this.#list.save()
  }
}
