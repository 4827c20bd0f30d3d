// The controller of a fleet: launches, directs, watches and stops its drones. Fleet is the folder's interface; commands
// use it over the control socket (client.js -> control-server.js -> daemon.js), the runner directly.
//
//   folder.js, drones.js, snapshot.js    state: on disk, in memory, merged
//   links.js, messages.js                links to drones, and checks of their messages
//   launcher.js, launch.js               launch, stop, relaunch
//   settings-sender.js, shares.js        settings and ramps
//
// May import: link/, providers/ (contract and index), statistics/, settings, program; never drone/, runner/, cli/.
// Promises: after a crash a new controller finds every launched drone and its counts; a setting applies to all drones
// or to none; every message of a drone is checked.

import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProgram } from '../program.js'
import { defaultSettings } from '../settings.js'
import { Distributions } from '../statistics/distribution.js'
import { DroneList } from './drones.js'
import { prepareFolder, readState } from './folder.js'
import { hostForDrones } from './launch.js'
import { Launcher } from './launcher.js'
import { addressOf, Links } from './links.js'
import { SettingsSender } from './settings-sender.js'
import { addTally, finalTally, snapshotOf, zeroTally } from './snapshot.js'

/** @import { LaunchPlan, Provider } from '../providers/contract.js' */
/** @import { FleetSettings, FleetSnapshot, Ledger, Reconciliation } from '../schema.js' */
/** @import { OnEvent } from './drones.js' */
/** @import { FleetState } from './folder.js' */
/** @import { LaunchOptions, LaunchOutcome } from './launch.js' */
/** @import { OnProgress, WaitOptions } from './launcher.js' */
/** @import { LinkEvents } from './links.js' */

const SECOND = 1000
const SAVE_EACH = 5
const EVENTS = 100
/** Timeout for drones of a previous controller to connect, ms. */
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
  #address = ''
  /** @type {NodeJS.Timeout | undefined} */
  #clock
  #ticks = 0
  #adopting = 0
  #closed = false

  /**
   * Reads the fleet's state from disk and waits for its drones, or creates a new fleet.
   * @param {object} options
   * @param {string} options.dir folder for the fleet's state; created if necessary
   * @param {Provider} options.provider
   * @param {Record<string, any>} [options.flags] of the provider; default: those of the state
   * @param {OnProgress} [options.log] a line for each event
   * @param {string} [options.bind] host or host:port to listen on; default: the provider's host, a free port
   * @param {string} [options.advertise] host or host:port that drones dial, if different
   */
  static async open({ dir, provider, flags, log = () => {}, bind, advertise }) {
    await prepareFolder(dir)
    const known = await readState(dir)
    if (known !== null && known.provider !== provider.name)
      throw new Error(
        `the fleet of ${dir} uses provider ${known.provider}, not ${provider.name}: stop it first, or use another --dir`,
      )
    const { host, port } = addressOf(bind ?? provider.bind ?? '127.0.0.1')
    /** @type {FleetState} */
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

  /** Private: use Fleet.open(). @param {{dir: string, provider: Provider, log: OnProgress, state: FleetState}} options */
  constructor({ dir, provider, log, state }) {
    super()
    this.#provider = provider
    this.#log = log
    /** @type {OnEvent} */
    const onEvent = (level, text) => this.#event(level, text)
    this.#list = new DroneList(dir, state, onEvent)
    this.#links = new Links(state, {
      onHello: (hello, link) => this.#onHello(hello, link),
      onProgram: sha256 => readProgram(dir, sha256),
      onMessage: (id, link, message) => this.#onMessage(id, link, message),
      onLost: (id, link, reason) => this.#onLost(id, link, reason),
      onFault: text => this.#event('warn', text),
    })
    this.#sender = new SettingsSender(this.#list, onEvent)
    const parts = { list: this.#list, provider, links: this.#links, sender: this.#sender, onEvent }
    this.#launcher = new Launcher(parts)
  }

  async #begin() {
    const { state, size } = this.#list
    state.port = await this.#links.listen(state.host, state.port)
    const { host, port } = addressOf(state.advertise, state.port)
    this.#address = `${host || hostForDrones(state.host)}:${port}`
    // A killed controller may not have saved its last revisions.
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

  get size() {
    return this.#list.size
  }

  /** Waits until the drones of a previous controller have reported, or until a timeout. */
  async adopted() {
    while (Date.now() < this.#adopting && this.#list.members.some(({ sample }) => sample === null))
      await sleep(POLL)
  }

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

  /** @type {OnEvent} */
  #event(level, text) {
    const event = { time: Date.now(), level, text }
    this.#events.push(event)
    if (this.#events.length > EVENTS) this.#events.shift()
    this.#log(text)
    this.emit('event', event)
  }

  /** @type {LinkEvents['onHello']} */
  #onHello(hello, link) {
    const drone = this.#list.get(hello.id)
    if (drone === undefined || drone.leaving) return `unknown drone ${hello.id}`
    const { link: before } = drone
    const { capacity } = drone.state
    const restarts = drone.state.start !== '' && drone.state.start !== hello.start
    const tally = drone.attach(link, hello)
    if (before !== null) void before.close('replaced by a new connection')
    if (tally !== null) addTally(this.#list.state.past, finalTally(tally, 'ended'))
    if (restarts) this.#event('info', `${drone.id} reconnected`)
    this.#launcher.onHello(drone)
    if (drone.state.member) {
      // A changed capacity changes the shares of all.
      if (capacity !== drone.state.capacity) void this.#list.inTurn(() => this.#sender.rebalance())
      else void this.#sender.onHello(drone)
    }
    void this.#list.save()
    return ''
  }

  /** @type {LinkEvents['onMessage']} */
  #onMessage(id, link, message) {
    const drone = this.#list.get(id)
    if (drone === undefined || drone.link !== link) return
    if (message.type === 'sample') {
      drone.receive(message.sample, Date.now())
      this.#distributions.merge(message.sample)
    } else if (message.type === 'event') this.#event(message.level, `${id}: ${message.text}`)
  }

  /** @type {LinkEvents['onLost']} */
  #onLost(id, link, reason) {
    const drone = this.#list.get(id)
    if (drone === undefined || drone.link !== link) return
    drone.detach()
    if (drone.leaving || this.#closed) return
    this.#event('warn', `lost the connection to ${id}: ${reason}`)
    this.#launcher.onLost(drone)
  }

  /**
   * Returns warnings after all connected drones have replied. A new `n` ends a ramp.
   * @param {Partial<FleetSettings>} partial @throws {Error} one line: refused by a drone, or contradictory; no change
   */
  set(partial) {
    return this.#sender.set(partial)
  }

  /** @param {number} to connections @param {number} seconds */
  beginRamp(to, seconds) {
    return this.#sender.ramp(to, seconds)
  }

  /** @param {number} to connections @param {number} seconds @throws {Error} one line: ended early, or refused */
  async ramp(to, seconds) {
    const { done } = await this.#sender.ramp(to, seconds)
    await done
  }

  /** Simulates lost connections; drones reopen them. @param {number} share @param {'close' | 'reset'} how */
  async cut(share, how) {
    const up = this.#list.all.filter(drone => drone.up)
    if (up.length === 0) throw new Error('no drone is connected')
    const answers = await Promise.all(up.map(drone => drone.request({ type: 'cut', share, how })))
    return answers.reduce((sum, { cut }) => sum + cut, 0)
  }

  resetStatistics() {
    this.#distributions.reset()
  }

  /**
   * Compares published and received messages. Call it after publishing, with no message in flight.
   * @returns {Promise<Reconciliation & {publishers: number, missing: string[]}>} `missing`: disconnected drones
   */
  async reconcile() {
    const missing = this.#list.all.filter(drone => !drone.up).map(({ id }) => id)
    const up = this.#list.all.filter(drone => drone.up)
    /** @type {Ledger[]} */
    const ledgers = (await Promise.all(up.map(drone => drone.request({ type: 'ledgers' })))).flat()
    const total = { expected: 0, lost: 0, unknown: 0, publishers: ledgers.length, missing }
    for (const part of await Promise.all(up.map(drone => drone.request({ type: 'reconcile', ledgers }))))
      for (const name of /** @type {const} */ (['expected', 'lost', 'unknown'])) total[name] += part[name]
    return total
  }

  /** @param {number} n drones @param {LaunchOptions} launch */
  plan(n, launch) {
    return this.#launcher.plan(n, launch, this.#address)
  }

  /**
   * Launches, and waits until all drones have reported.
   * @param {LaunchPlan} plan of this fleet @param {WaitOptions} [options]
   * @returns {Promise<LaunchOutcome & {fault: string}>} `fault`: what failed if the rest was kept
   * @throws {Error} one line: drones that never reported, and the state of the rest
   */
  launch(plan, options = {}) {
    return this.#launcher.launch(plan, options)
  }

  /** Restarts the processes of connected drones; relaunches other drones. @param {string[]} [ids] default: all */
  async restart(ids = this.#list.all.map(({ id }) => id)) {
    await this.#launcher.restart(ids)
    return ids
  }

  /** @param {number | 'all'} n the last n drones @param {{onProgress?: OnProgress}} [options] @returns {Promise<string[]>} */
  stop(n, { onProgress = () => {} } = {}) {
    return this.#launcher.stop(n, onProgress)
  }

  /** Stops the controller; the drones wait for another one. */
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
