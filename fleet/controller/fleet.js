// The controller of a fleet: launches, directs, watches and stops its drones. Fleet is the room's interface: commands reach it over the
// control socket (control-server.js, client.js), the runner directly. State on disk is in folder.js, connections to drones in links.js.
// May import: link/, providers/ (contract and index), statistics/, settings, program; never drone/, runner/ or cli/.
// Promises: after a crash a new controller finds every drone that was launched, and what they had counted; a setting holds for all drones
// or for none; no message of a drone is used unchecked.

import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { readProgram } from '../program.js'
import { defaultSettings } from '../settings.js'
import { DroneList } from './drone-list.js'
import { prepareFolder, readState } from './folder.js'
import { reachable } from './launch.js'
import { Launcher } from './launcher.js'
import { hostAndPort, Links } from './links.js'
import { Orders } from './orders.js'
import { reckonAll } from './reckon.js'
import { addTally, Statistics, settled, snapshotOf, zeroTally } from './snapshot.js'

/** @typedef {import('../schema.js').FleetSettings} FleetSettings */
/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../providers/contract.js').LaunchPlan} LaunchPlan */
/** @typedef {import('../providers/contract.js').Provider} Provider */
/** @typedef {(text: string) => void} OnProgress */

/** ms between two pictures of the fleet. */
const SECOND = 1000
/** Pictures between two writes of what was counted. */
const SAVE_EACH = 5
/** Events that are kept. */
const EVENTS = 100
/** ms that the drones of another controller may take to call this one. */
const ADOPTION = 4000
const POLL = 50

/**
 * A fleet's drones are launched, told what to do, watched and stopped here. It emits `snapshot` each second (FleetSnapshot) and `event`
 * ({time, level, text}).
 */
export class Fleet extends EventEmitter {
  /** What a run of a scenario is at, for those who watch. @type {FleetSnapshot['scenario']} */
  scenario = null
  #provider
  #log
  #list
  #links
  #orders
  #launcher
  #statistics = new Statistics()
  /** @type {FleetSnapshot['events']} */
  #events = []
  /** host:port that drones dial */
  #address = ''
  /** @type {NodeJS.Timeout | undefined} */
  #clock
  #beats = 0
  /** Until when those are waited for that knew another controller. */
  #adopting = 0
  #closed = false

  /**
   * Reads the fleet's state from disk, if there is one, and waits for its drones to call; else begins a new one.
   *
   * @param {object} options
   * @param {string} options.dir folder for the fleet's state; made if it is not there
   * @param {Provider} options.provider
   * @param {Record<string, any>} [options.flags] of the provider; default: those of the state
   * @param {OnProgress} [options.log] a line for each event
   * @param {string} [options.bind] host or host:port to listen on; default: the provider's choice of the host, a free port
   * @param {string} [options.advertise] host or host:port that drones dial, when it is another one
   * @returns {Promise<Fleet>}
   * @throws {Error} one line: the port is in use, the state is damaged or of another provider
   */
  static async open({ dir, provider, flags, log = () => {}, bind, advertise }) {
    await prepareFolder(dir)
    const known = await readState(dir)
    if (known !== null && known.provider !== provider.name)
      throw new Error(
        `the fleet of ${dir} is of ${known.provider}, not of ${provider.name}: stop it first, or use another --dir`,
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
   * Fleet.open() makes them.
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
    const orders = new Orders(list, onEvent)
    this.#list = list
    this.#links = links
    this.#orders = orders
    this.#launcher = new Launcher({ list, provider, links, orders, onEvent })
  }

  async #begin() {
    const { state, size } = this.#list
    state.port = await this.#links.listen(state.host, state.port)
    const { advertise } = state
    const told = advertise.includes(':') ? hostAndPort(advertise) : { host: advertise, port: state.port }
    this.#address = `${told.host || reachable(state.host)}:${told.port}`
    // What a controller that was killed told its drones last may not have been written.
    state.revision += 1000
    if (size > 0) {
      this.#event('info', `controller restarted; waiting for its ${size} drones`)
      this.#adopting = Date.now() + ADOPTION
    }
    await this.#launcher.adopt()
    this.#orders.resume()
    this.#clock = setInterval(() => this.#beat(), SECOND)
    await this.#list.save()
  }

  get run() {
    return this.#list.state.run
  }

  get dir() {
    return this.#list.dir
  }

  get provider() {
    return this.#provider
  }

  /** @returns {Readonly<FleetSettings>} */
  get settings() {
    return this.#list.state.settings
  }

  /** Drones that there are, reporting or not. */
  get size() {
    return this.#list.size
  }

  /**
   * @returns {Promise<void>} when the drones that knew another controller have told this one how they are, or have had the time to; at
   *   once, if there was no other one
   */
  async settled() {
    while (Date.now() < this.#adopting && this.#list.members.some(({ sample }) => sample === null))
      await new Promise(resolve => setTimeout(resolve, POLL))
  }

  /** @returns {FleetSnapshot} */
  snapshot() {
    return snapshotOf({
      time: Date.now(),
      state: this.#list.state,
      drones: this.#list.all,
      statistics: this.#statistics,
      events: [...this.#events],
      scenario: this.scenario,
    })
  }

  #beat() {
    if (++this.#beats % SAVE_EACH === 0) void this.#list.save()
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
    if (tally !== null) addTally(this.#list.state.past, settled(tally, 'ended'))
    if (restarts) this.#event('info', `${drone.id} is there again`)
    this.#launcher.onHello(drone)
    if (drone.state.member) {
      // One that holds more or less than before changes what is left for the others.
      if (capacity !== drone.state.capacity) void this.#list.inTurn(() => this.#orders.rebalance())
      else void this.#orders.onHello(drone)
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
      this.#statistics.add(message.sample)
    } else if (message.type === 'event') this.#event(message.level, `${id}: ${message.text}`)
  }

  /** @type {import('./links.js').LinkEvents['onLost']} */
  #onLost(id, link, reason) {
    const drone = this.#list.get(id)
    if (drone === undefined || drone.link !== link) return
    drone.detach()
    if (drone.leaving || this.#closed) return
    this.#event('warn', `the connection to ${id} is lost: ${reason}`)
    this.#launcher.onLost(drone)
  }

  /**
   * @param {Partial<FleetSettings>} partial values as the table's `parse` returns them. A new `n` ends a ramp
   * @returns {Promise<string[]>} when all drones that are up have answered: what a person should know, a line each
   * @throws {Error} one line: a drone refuses, or the settings contradict each other; nothing is changed then
   */
  set(partial) {
    return this.#orders.set(partial)
  }

  /**
   * @param {number} to connections
   * @param {number} seconds
   * @returns {Promise<{done: Promise<void>, warnings: string[]}>} when it is under way; `warnings`: what a person should know
   * @throws {Error} one line
   */
  beginRamp(to, seconds) {
    return this.#orders.ramp(to, seconds)
  }

  /**
   * @param {number} to connections
   * @param {number} seconds
   * @returns {Promise<void>} when the drones have been told the last number
   * @throws {Error} one line: it was ended before, or a drone refuses
   */
  async ramp(to, seconds) {
    const { done } = await this.#orders.ramp(to, seconds)
    await done
  }

  /**
   * Ends connections as if the network had; they are opened again.
   * @param {number} share 0 to 1
   * @param {'close' | 'reset'} how
   * @returns {Promise<number>} connections
   */
  async cut(share, how) {
    const up = this.#list.all.filter(drone => drone.up)
    if (up.length === 0) throw new Error('no drone reports')
    const answers = await Promise.all(up.map(drone => drone.request({ type: 'cut', share, how })))
    return answers.reduce((sum, { cut }) => sum + cut, 0)
  }

  /** Latency and the like begin anew; what is counted goes on. */
  resetStatistics() {
    this.#statistics.reset()
  }

  /**
   * What all subscriptions should have received; after publishing was stopped, and what was under way has arrived.
   * @returns {Promise<import('../schema.js').Reckoning & {publishers: number, missing: string[]}>} `missing`: drones that do not report
   */
  reckon() {
    return reckonAll(this.#list.all)
  }

  /**
   * @param {number} n drones
   * @param {import('./launch.js').LaunchOptions} launch
   * @returns {Promise<LaunchPlan>}
   * @throws {Error} one line
   */
  plan(n, launch) {
    return this.#launcher.plan(n, launch, this.#address)
  }

  /**
   * Launches, and waits until all have reported.
   * @param {LaunchPlan} plan of this fleet
   * @param {object} [options] @param {OnProgress} [options.onProgress]
   * @param {boolean} [options.keep] what came up stays when something did not; otherwise all of them are stopped
   * @param {number} [options.patience] ms
   * @param {AbortSignal} [options.signal] takes it back, or ends the wait when it is to be kept
   * @returns {Promise<import('./launch.js').Arrival & {fault: string}>} `fault`: what went wrong, though the rest was
   *   kept
   * @throws {Error} one line, which names what never reported, and says what became of the rest
   */
  launch(plan, options = {}) {
    return this.#launcher.launch(plan, options)
  }

  /**
   * Starts drones anew: those that report end their processes and start them again, the others are launched again.
   * @param {string[]} [ids] default: all
   * @returns {Promise<string[]>} ids
   * @throws {Error} one line
   */
  async restart(ids = this.#list.all.map(({ id }) => id)) {
    await this.#launcher.restart(ids)
    return ids
  }

  /**
   * @param {number | 'all'} n the last n drones
   * @param {{onProgress?: OnProgress}} [options]
   * @returns {Promise<string[]>} ids of those that are no more
   * @throws {Error} one line: some may be there still
   */
  stop(n, { onProgress = () => {} } = {}) {
    return this.#launcher.stop(n, onProgress)
  }

  /** The controller goes; the drones stay, and wait for another one. */
  async close() {
    if (this.#closed) return
    this.#closed = true
    clearInterval(this.#clock)
    this.#launcher.close()
    await this.#orders.close()
    await this.#links.close()
    await this.#list.save()
  }
}
