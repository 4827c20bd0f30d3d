// Launches, relaunches and stops drones.

import { EventEmitter } from 'node:events'
import { COMMAND } from '../../src/base/version.js'
import { didYouMean } from '../../src/config/nearest.js'
import { LaunchError, ProviderError } from '../providers/contract.js'
import { launchConfigs, listIds, missingText, waitForDrones } from './launch.js'
import { hostAndPort } from './links.js'
import { Relauncher } from './relauncher.js'

/** @typedef {import('./drone.js').Drone} Drone */
/** @typedef {import('../schema.js').Handle} Handle */
/** @typedef {import('../schema.js').LaunchConfig} LaunchConfig */
/** @typedef {import('../providers/contract.js').LaunchPlan} LaunchPlan */
/** @typedef {(text: string) => void} OnProgress */

/** Default ms for a new drone to report: a process, which is relaunched; a machine, which boots and installs Node. */
const LAUNCH_TIMEOUT = { auto: 20_000, other: 300_000 }
/** ms for a drone to close its connections and end; then its provider ends it. */
const STOP_TIMEOUT = 15_000

export class Launcher {
  #list
  #provider
  #links
  #sender
  #relauncher
  /** Emits each hello. */
  #hellos = new EventEmitter()
  /** @type {WeakMap<LaunchPlan, {configs: LaunchConfig[], flags: Record<string, any>}>} */
  #planned = new WeakMap()
  /** @type {{abort: AbortController, done: Promise<any>} | null} */
  #launching = null

  /**
   * @param {object} options @param {import('./drone-list.js').DroneList} options.list
   * @param {import('../providers/contract.js').Provider} options.provider
   * @param {import('./links.js').Links} options.links
   * @param {import('./settings-sender.js').SettingsSender} options.sender
   * @param {import('./drone-list.js').OnEvent} options.onEvent
   */
  constructor({ list, provider, links, sender, onEvent }) {
    this.#list = list
    this.#provider = provider
    this.#links = links
    this.#sender = sender
    this.#relauncher = new Relauncher({
      provider,
      find: () => this.#find(),
      restart: drone => this.#startAnew(drone),
      onEvent,
    })
  }

  /** @returns {Promise<Handle[]>} */
  #find() {
    return this.#provider.find([this.#list.state.run], this.#list.options)
  }

  /** @param {Drone} drone */
  #dial({ id, state: { listen, handle } }) {
    if (listen === undefined) return
    const { host, port } = hostAndPort(listen)
    const anywhere = host === '0.0.0.0' || host === '::'
    this.#links.dial(id, `${anywhere ? (handle?.address ?? '127.0.0.1') : host}:${port}`)
  }

  /** Adopts the drones of a previous controller; of a launch that it did not complete, those that run. */
  async adopt() {
    const half = this.#list.all.filter(({ state }) => !state.member)
    if (half.length > 0) {
      const found = await this.#find()
      for (const drone of half) {
        const handle = found.find(({ id, state }) => id === drone.id && state !== 'gone')
        if (handle === undefined) this.#list.remove(drone)
        else Object.assign(drone.state, { handle, member: true })
      }
    }
    for (const drone of this.#list.all) {
      this.#dial(drone)
      this.#relauncher.watch(drone)
    }
  }

  /** @param {Drone} drone */
  onHello(drone) {
    this.#relauncher.forget(drone.id)
    this.#hellos.emit('hello')
  }

  /** @param {Drone} drone */
  onLost(drone) {
    if (drone.state.member) this.#relauncher.watch(drone)
  }

  /**
   * @param {number} n drones @param {import('./launch.js').LaunchOptions} launch
   * @param {string} controller host:port that they dial
   * @returns {Promise<LaunchPlan>} @throws {Error} one line
   */
  async plan(n, launch, controller) {
    const { run, secret, next, flags: before } = this.#list.state
    const flags = launch.flags ?? before
    const configs = await launchConfigs({
      run: { run, secret, next, controller },
      count: n,
      provider: this.#provider,
      launch,
    })
    const plan = await this.#provider.plan({ drones: configs, flags, dir: this.#list.dir })
    this.#planned.set(plan, { configs, flags })
    return plan
  }

  /**
   * @param {LaunchPlan} plan
   * @param {{onProgress?: OnProgress, keep?: boolean, timeout?: number, signal?: AbortSignal}} options
   */
  async launch(plan, options) {
    const planned = this.#planned.get(plan)
    if (planned === undefined) throw new Error('this plan belongs to another fleet or is already launched')
    if (this.#launching !== null) throw new Error('another launch is in progress')
    this.#planned.delete(plan)
    const abort = new AbortController()
    options.signal?.addEventListener('abort', () => abort.abort())
    if (options.signal?.aborted) abort.abort()
    const done = this.#launch(plan, planned, { ...options, signal: abort.signal })
    this.#launching = { abort, done: done.catch(() => {}) }
    try {
      return await done
    } finally {
      this.#launching = null
    }
  }

  /**
   * @param {LaunchPlan} plan @param {{configs: LaunchConfig[], flags: Record<string, any>}} planned
   * @param {{onProgress?: OnProgress, keep?: boolean, timeout?: number, signal: AbortSignal}} options
   * @returns {Promise<import('./launch.js').LaunchOutcome & {fault: string}>}
   */
  async #launch(plan, { configs, flags }, options) {
    const { onProgress = () => {}, keep, signal } = options
    const { timeout = this.#provider.autoRelaunch ? LAUNCH_TIMEOUT.auto : LAUNCH_TIMEOUT.other } = options
    const { state } = this.#list
    state.flags = flags
    const drones = configs.map(({ id, listen }) => this.#list.add(id, listen))
    state.next = Math.max(state.next, ...configs.map(({ id }) => Number(id.slice(1)) + 1))
    // Saved before the launch: if this controller is killed, the next one finds the drones.
    await this.#list.save()
    let fault = await this.#order(plan, drones, onProgress)
    const there = drones.filter(drone => drone.state.handle !== null)

    /** @type {import('./launch.js').LaunchOutcome} */
    let arrived = { up: [], missing: [] }
    if (there.length > 0 && (keep || (fault === '' && !signal.aborted)))
      arrived = await waitForDrones({
        drones: there,
        timeout,
        signal,
        onProgress,
        onHello: fn => {
          this.#hellos.on('hello', fn)
          return () => this.#hellos.off('hello', fn)
        },
        find: this.#provider.autoRelaunch ? () => this.#find() : null,
      })
    if (signal.aborted) fault = 'the launch was interrupted'
    else if (arrived.missing.length > 0)
      fault = [fault, missingText(arrived.missing)].filter(text => text !== '').join('; ')

    const kept = fault === '' || keep ? there.filter(drone => drone.up) : []
    const back = there.filter(drone => !kept.includes(drone))
    if (back.length > 0) {
      onProgress(`${back.length} of ${configs.length} drones are stopped again`)
      const failed = await this.#end(back, onProgress)
      if (failed !== '') fault += `; not all could be stopped (${failed}): \`${COMMAND} fleet stop all\``
    }
    if (kept.length === 0) {
      if (this.#list.size === 0) await this.#list.forget()
      throw new Error(`${fault}${back.length > 0 ? `; stopped: ${listIds(back.map(({ id }) => id))}` : ''}`)
    }
    await this.#list.inTurn(async () => {
      for (const drone of kept) drone.state.member = true
      await this.#sender.rebalance()
    })
    if (fault !== '') fault += `; kept: ${listIds(kept.map(({ id }) => id))}`
    return { ...arrived, fault }
  }

  /**
   * @param {LaunchPlan} plan @param {Drone[]} drones get their handles; those without one are dropped
   * @param {OnProgress} onProgress
   * @returns {Promise<string>} the fault; '': none
   */
  async #order(plan, drones, onProgress) {
    let fault = ''
    /** @type {Handle[]} */
    let handles = []
    try {
      handles = await this.#provider.launch(plan, onProgress)
    } catch (error) {
      fault = error.message
      if (error instanceof LaunchError) handles = error.launched
      // After an unexpected error, any drones may have been launched.
      else if (!(error instanceof ProviderError)) handles = await this.#find().catch(() => [])
    }
    for (const drone of drones) {
      drone.state.handle = handles.find(({ id, state }) => id === drone.id && state !== 'gone') ?? null
      if (drone.state.handle === null) this.#list.remove(drone)
      else this.#dial(drone)
    }
    await this.#list.save()
    return fault
  }

  /**
   * @param {Drone[]} drones @param {OnProgress} onProgress @param {Handle[]} [others] handles of unknown drones
   * @returns {Promise<string>} why some may still run; '': all are gone
   */
  async #end(drones, onProgress, others = []) {
    for (const drone of drones) {
      drone.leaving = true
      this.#relauncher.forget(drone.id)
      this.#links.stopDialling(drone.id)
    }
    let ended = 0
    const stops = drones.map(async drone => {
      // The provider ends a drone that does not answer.
      await drone.request({ type: 'stop' }, { timeout: STOP_TIMEOUT }).catch(() => {})
      onProgress(`${++ended} of ${drones.length} drones have ended`)
    })
    await Promise.all(stops)
    const handles = drones.flatMap(({ state }) => state.handle ?? [])
    try {
      if (handles.length + others.length > 0)
        await this.#provider.stop([...handles, ...others], this.#list.options, onProgress)
    } catch (error) {
      for (const drone of drones) drone.leaving = false
      return error.message
    }
    for (const drone of drones) this.#list.remove(drone)
    await this.#list.save()
    return ''
  }

  /** @param {Drone} drone that died */
  async #startAnew(drone) {
    const { handle } = drone.state
    if (handle === null) throw new Error(`${drone.id}: its launch parameters are unknown`)
    drone.restarting = true
    try {
      drone.state.handle = await this.#provider.restart(handle, this.#list.options)
    } catch (error) {
      drone.restarting = false
      drone.gone = error.message
      throw error
    }
    this.#dial(drone)
    await this.#list.save()
  }

  /** @param {string[]} ids @throws {Error} one line */
  async restart(ids) {
    const known = this.#list.all.map(({ id }) => id)
    const drones = ids.map(id => {
      const drone = this.#list.get(id)
      if (drone !== undefined) return drone
      throw new Error(`unknown drone ${id}${didYouMean(id, known)}`)
    })
    await Promise.all(
      drones.map(async drone => {
        if (!drone.up) return await this.#startAnew(drone)
        drone.restarting = true
        try {
          await drone.request({ type: 'restart' })
        } catch (error) {
          // A restarting agent may not answer.
          if (drone.up) throw new Error(`${drone.id}: ${error.message}`)
        } finally {
          drone.restarting = !drone.up
        }
      }),
    )
  }

  /**
   * @param {number | 'all'} n @param {OnProgress} onProgress @returns {Promise<string[]>} ids @throws {Error} one line
   */
  async stop(n, onProgress) {
    if (this.#launching !== null) {
      this.#launching.abort.abort()
      await this.#launching.done
    }
    return await this.#list.inTurn(async () => {
      const { all } = this.#list
      const drones = n === 'all' ? all : all.slice(Math.max(0, all.length - n))
      if (n === 'all') this.#sender.endRamp('the fleet is stopped')
      const ids = drones.map(({ id }) => id)
      // Includes drones unknown here: a previous controller may have been killed during a launch.
      const launched = this.#list.state.next > 1
      const found = n === 'all' && launched ? await this.#find() : []
      const others = found.filter(({ id, state }) => !ids.includes(id) && state !== 'gone')
      const fault = await this.#end(drones, onProgress, others)
      if (fault !== '') throw new Error(fault)
      if (this.#list.size === 0) await this.#list.forget()
      else await this.#sender.rebalance()
      return [...ids, ...others.map(({ id }) => id)]
    })
  }

  close() {
    this.#relauncher.close()
  }
}
