// Launches, relaunches and stops drones.

import { setTimeout as sleep } from 'node:timers/promises'
import { COMMAND } from '../../src/base/version.js'
import { didYouMean } from '../../src/config/nearest.js'
import { LaunchError, ProviderError } from '../providers/contract.js'
import { launchConfigs, listIds, missingText } from './launch.js'
import { hostAndPort } from './links.js'

/** @import { LaunchPlan, Provider } from '../providers/contract.js' */
/** @import { Handle, LaunchConfig } from '../schema.js' */
/** @import { Drone, DroneList, OnEvent } from './drones.js' */
/** @import { LaunchOptions, LaunchOutcome } from './launch.js' */
/** @import { Links } from './links.js' */
/** @import { SettingsSender } from './settings-sender.js' */

/**
 * @typedef {(text: string) => void} OnProgress
 * @typedef {{onProgress?: OnProgress, keep?: boolean, timeout?: number, signal?: AbortSignal}} WaitOptions `keep`: keeps
 *   drones if others fail, otherwise all are stopped; `timeout`: ms for the drones to report; `signal`:
 *   cancels the launch, or only the wait with `keep`
 */

/** Default report timeout, ms: a process, which is relaunched; a machine, which boots and installs Node. */
const LAUNCH_TIMEOUT = { auto: 20_000, other: 300_000 }
/** Exit timeout of a drone, ms; then its provider ends it. */
const STOP_TIMEOUT = 15_000
const POLL = 50
/** ms between checks for drones that exit before reporting. */
const CHECK_INTERVAL = 1000

export class Launcher {
  #list
  #provider
  #links
  #sender
  #relauncher
  /** @type {WeakMap<LaunchPlan, {configs: LaunchConfig[], flags: Record<string, any>}>} */
  #planned = new WeakMap()
  /** @type {{abort: AbortController, done: Promise<any>} | null} */
  #launching = null

  /** @param {{list: DroneList, provider: Provider, links: Links, sender: SettingsSender, onEvent: OnEvent}} parts */
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

  /** Adopts the drones of a previous controller, including running ones of an incomplete launch. */
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
  }

  /** @param {Drone} drone */
  onLost(drone) {
    if (drone.state.member) this.#relauncher.watch(drone)
  }

  /** @param {number} n drones @param {LaunchOptions} launch @param {string} controller host:port */
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

  /** @param {LaunchPlan} plan @param {WaitOptions} options */
  async launch(plan, options) {
    const planned = this.#planned.get(plan)
    if (planned === undefined) throw new Error('this plan belongs to another fleet or is already launched')
    if (this.#launching !== null) throw new Error('another launch is in progress')
    this.#planned.delete(plan)
    const abort = new AbortController()
    const signal = AbortSignal.any([abort.signal, ...(options.signal ? [options.signal] : [])])
    const done = this.#launch(plan, planned, { ...options, signal })
    this.#launching = { abort, done: done.catch(() => {}) }
    try {
      return await done
    } finally {
      this.#launching = null
    }
  }

  /**
   * @param {LaunchPlan} plan @param {{configs: LaunchConfig[], flags: Record<string, any>}} planned
   * @param {WaitOptions & {signal: AbortSignal}} options
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

    /** @type {LaunchOutcome} */
    let arrived = { up: [], missing: [] }
    if (there.length > 0 && (keep || (fault === '' && !signal.aborted)))
      arrived = await this.#arrived(there, timeout, signal, onProgress)
    if (signal.aborted) fault = 'the launch was interrupted'
    else if (arrived.missing.length > 0)
      fault = [fault, missingText(arrived.missing)].filter(text => text !== '').join('; ')

    const kept = fault === '' || keep ? there.filter(drone => drone.up) : []
    const back = there.filter(drone => !kept.includes(drone))
    if (back.length > 0) {
      onProgress(`${back.length} of ${configs.length} drones stopped`)
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
   * Waits until all have reported, for `timeout` ms, or until aborted.
   * @param {Drone[]} drones @param {number} timeout @param {AbortSignal} signal @param {OnProgress} onProgress
   */
  async #arrived(drones, timeout, signal, onProgress) {
    const ends = Date.now() + timeout
    /** Reasons by id. @type {Map<string, string>} */
    const dead = new Map()
    let shown = -1
    let checkedAt = Date.now()
    for (;;) {
      const up = drones.filter(drone => drone.up).length
      if (up !== shown) onProgress(`${up} of ${drones.length} drones have reported`)
      shown = up
      if (signal.aborted || Date.now() >= ends || up + dead.size >= drones.length) break
      if (this.#provider.autoRelaunch && Date.now() - checkedAt >= CHECK_INTERVAL) {
        checkedAt = Date.now()
        // A failed check says nothing about the drones.
        for (const { id, state, note } of await this.#find().catch(() => []))
          if (state === 'gone' && drones.some(drone => drone.id === id && !drone.up))
            dead.set(id, `it exited${note ? `: ${note}` : ''}`)
      } else await sleep(POLL)
    }
    const late = `no report within ${Math.round(timeout / 1000)} s`
    const missing = drones.filter(drone => !drone.up)
    return {
      up: drones.filter(drone => drone.up).map(({ id }) => id),
      missing: missing.map(({ id }) => ({ id, why: dead.get(id) ?? late })),
    }
  }

  /**
   * Launches; drops drones without a handle.
   * @param {LaunchPlan} plan @param {Drone[]} drones @param {OnProgress} onProgress @returns {Promise<string>} fault or ''
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

  /** Returns why some may still run. @param {Drone[]} drones @param {OnProgress} onProgress @param {Handle[]} [others] unknown ones */
  async #end(drones, onProgress, others = []) {
    for (const drone of drones) {
      drone.leaving = true
      this.#relauncher.forget(drone.id)
      this.#links.stopDialling(drone.id)
    }
    let ended = 0
    const stops = drones.map(async drone => {
      // The provider ends a drone that does not reply.
      await drone.request({ type: 'stop' }, { timeout: STOP_TIMEOUT }).catch(() => {})
      onProgress(`${++ended} of ${drones.length} drones stopped`)
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

  /** @param {Drone} drone that exited */
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

  /** @param {string[]} ids */
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
          // A restarting agent may not reply.
          if (drone.up) throw new Error(`${drone.id}: ${error.message}`)
        } finally {
          drone.restarting = !drone.up
        }
      }),
    )
  }

  /** @param {number | 'all'} n @param {OnProgress} onProgress @returns {Promise<string[]>} ids */
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

/** ms from a lost link to the first check of the drone: with `autoRelaunch`, and without. */
const FIRST_LOOK = { auto: 200, other: 15_000 }
const NEXT_LOOK = { auto: 2000, other: 60_000 }
/** Maximum back-off before a relaunch, ms; it doubles with each attempt. */
const LONGEST = 60_000
/** ms until a relaunched drone counts as healthy. */
const HEALTHY = 60_000

class Relauncher {
  #provider
  #find
  #restart
  #onEvent
  /** @type {Map<string, NodeJS.Timeout>} */
  #looks = new Map()
  /** Relaunches per drone. @type {Map<string, {count: number, at: number}>} */
  #starts = new Map()

  /** @param {{provider: Provider, find: () => Promise<Handle[]>, restart: (drone: Drone) => Promise<void>, onEvent: OnEvent}} parts */
  constructor({ provider, find, restart, onEvent }) {
    this.#provider = provider
    this.#find = find
    this.#restart = restart
    this.#onEvent = onEvent
  }

  /** For a disconnected drone. @param {Drone} drone */
  watch(drone) {
    this.#later(drone, this.#provider.autoRelaunch ? FIRST_LOOK.auto : FIRST_LOOK.other)
  }

  /** @param {Drone} drone @param {number} wait ms */
  #later(drone, wait) {
    this.forget(drone.id)
    this.#looks.set(
      drone.id,
      setTimeout(() => void this.#look(drone), wait),
    )
  }

  /** @param {Drone} drone */
  async #look(drone) {
    const { id } = drone
    const done = () => drone.up || drone.leaving || !this.#looks.has(id)
    if (done()) return
    let wait = this.#provider.autoRelaunch ? NEXT_LOOK.auto : NEXT_LOOK.other
    try {
      const found = (await this.#find()).find(handle => handle.id === id)
      if (done()) return
      if (found === undefined || found.state === 'gone') {
        const why = found?.note ? `: ${found.note}` : ''
        if (!this.#provider.autoRelaunch) {
          if (drone.gone === '')
            this.#onEvent('error', `${id} is gone${why}; relaunch it with \`${COMMAND} fleet restart ${id}\``)
          drone.gone = why || 'gone'
        } else wait = await this.#relaunch(drone, why, wait)
      }
    } catch (error) {
      if (!done()) this.#onEvent('warn', `${id}: ${error.message}`)
    }
    if (!done()) this.#later(drone, wait)
  }

  /** Returns ms to the next check. @param {Drone} drone @param {string} why @param {number} wait ms if it starts */
  async #relaunch(drone, why, wait) {
    const last = this.#starts.get(drone.id)
    const now = Date.now()
    const count = last !== undefined && now - last.at < HEALTHY ? last.count : 0
    const due = last === undefined ? now : last.at + Math.min(LONGEST, 1000 * 2 ** (count - 1))
    if (count > 0 && now < due) return due - now
    this.#onEvent('warn', `${drone.id} exited${why}; relaunching it`)
    this.#starts.set(drone.id, { count: count + 1, at: now })
    await this.#restart(drone)
    return wait
  }

  /** @param {string} id */
  forget(id) {
    clearTimeout(this.#looks.get(id))
    this.#looks.delete(id)
  }

  close() {
    for (const id of [...this.#looks.keys()]) this.forget(id)
  }
}
