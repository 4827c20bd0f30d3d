// The controller's Unix socket and its commands.

import { once } from 'node:events'
import { chmod, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { COMMAND } from '../../src/base/version.js'
import { ControlConnection } from './control-connection.js'
import { allowedTargets } from './launch.js'
import { contradiction } from './shares.js'

/** @import { FleetSnapshot, Gauges } from '../schema.js' */
/** @import { FleetHost } from './daemon.js' */

export class ControlServer {
  #host
  #log
  #server
  /** @type {Set<ControlConnection>} */
  #connections = new Set()
  quietSince = Date.now()
  /** The last command failed: the next one may have another environment (credentials). */
  failed = false

  /** @param {FleetHost} host @param {(text: string) => void} log */
  constructor(host, log) {
    this.#host = host
    this.#log = log
    this.#server = createServer(socket => this.#onConnection(new ControlConnection(socket)))
  }

  get idle() {
    return this.#connections.size === 0
  }

  /** Replaces a stale socket. @param {string} path */
  async listen(path) {
    await rm(path, { force: true })
    await once(this.#server.listen(path), 'listening').catch(error => {
      throw new Error(`cannot listen on ${path}: ${error.message}`)
    })
    await chmod(path, 0o600)
    this.#server.on('error', error => this.#log(error.message))
  }

  /** @param {ControlConnection} connection */
  #onConnection(connection) {
    this.#connections.add(connection)
    const abort = new AbortController()
    /** @type {((go: boolean) => void) | null} */
    let decide = null
    let begun = false
    connection.onClose = () => {
      this.#connections.delete(connection)
      this.quietSince = Date.now()
      abort.abort()
      decide?.(false)
    }
    connection.onMessage = message => {
      if (message.cancel) {
        abort.abort()
        decide?.(false)
      } else if (message.go !== undefined) decide?.(message.go === true)
      else if (!begun) {
        begun = true
        void this.#run(connection, message, {
          params: message.params ?? {},
          progress: text => connection.send({ progress: text }),
          confirm: plan => {
            connection.send({ plan })
            return new Promise(resolve => {
              decide = resolve
            })
          },
          show: snapshot => {
            if (!connection.busy) connection.send({ snapshot })
          },
          signal: abort.signal,
        })
      }
    }
  }

  /** @param {ControlConnection} connection @param {any} message @param {Call} call */
  async #run(connection, { command }, call) {
    this.failed = false
    try {
      if (!Object.hasOwn(COMMANDS, command))
        throw new Error(`unknown command "${command}": the controller may be of another version`)
      connection.send({ result: (await COMMANDS[command](this.#host, call)) ?? {} })
    } catch (error) {
      this.failed = command === 'start'
      // Expected errors need no stack; bugs do.
      if (error instanceof TypeError || error instanceof ReferenceError)
        this.#log(error.stack ?? error.message)
      connection.send({ error: error.message })
    }
    connection.end()
  }

  async close() {
    this.#server.close()
    for (const connection of this.#connections) connection.end()
    const timer = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, 1000)
    while (this.#connections.size > 0) await sleep(10)
    clearTimeout(timer)
  }
}

/**
 * @typedef {{params: any, progress: (text: string) => void, confirm: (plan: {lines: string[], price: any}) =>
 *   Promise<boolean>, show: (snapshot: FleetSnapshot) => void, signal: AbortSignal}} Call a running command;
 *   `signal`: the caller disconnects or cancels
 */

/** Waits until the drones of a previous controller have reported. @param {FleetHost} host */
async function fleetOf(host) {
  if (host.fleet === null || host.fleet.size === 0)
    throw new Error(`no drones; start some with \`${COMMAND} fleet start N\``)
  await host.fleet.adopted()
  return host.fleet
}

/** @type {Record<string, (host: FleetHost, call: Call) => Promise<any>>} */
export const COMMANDS = {
  async start(host, { params, progress, confirm, signal }) {
    const { n, provider, flags, bind, advertise, launch, settings, keep, timeout } = params
    const fleet = await host.open({ provider, flags, bind, advertise })
    const fault = contradiction({ ...fleet.settings, ...settings })
    if (fault !== '') throw new Error(fault)
    const allow = launch.allow.length > 0 ? launch.allow : allowedTargets(fleet.settings.host)
    if (allow.length === 0)
      throw new Error('--host or --allow must name the targets that the drones may connect to')
    // Flags of a fleet without drones do not apply to new ones.
    const own = flags ?? (fleet.size === 0 ? {} : undefined)
    const plan = await fleet.plan(n, { ...launch, allow, ...(own === undefined ? {} : { flags: own }) })
    if (!(await confirm({ lines: plan.lines, price: plan.price })) || signal.aborted)
      throw new Error('nothing was launched')
    const { up, fault: missing } = await fleet.launch(plan, {
      onProgress: progress,
      keep,
      signal,
      ...(timeout === undefined ? {} : { timeout }),
    })
    /** @type {string[]} */
    let warnings = []
    try {
      if (Object.keys(settings).length > 0) warnings = await fleet.set(settings)
    } catch (error) {
      throw new Error(`${up.length} drones are up, but their settings could not be sent: ${error.message}`)
    }
    return { up, fault: missing, warnings, run: fleet.run }
  },

  async set(host, { params: { settings } }) {
    const fleet = await fleetOf(host)
    return { warnings: await fleet.set(settings) }
  },

  async ramp(host, { params: { to, seconds, wait }, progress, signal }) {
    const fleet = await fleetOf(host)
    const { done, warnings } = await fleet.beginRamp(to, seconds)
    for (const text of warnings) progress(text)
    if (!wait) return { warnings }
    /** @type {Gauges | null} */
    let last = null
    const report = (/** @type {FleetSnapshot} */ { settings, gauges, ramp }) => {
      const left = ramp === null ? 0 : Math.max(0, Math.ceil((ramp.ends - Date.now()) / 1000))
      progress(`${gauges.open} of ${settings.n} open, ramping to ${to}: ${left} s left`)
      last = gauges
    }
    fleet.on('snapshot', report)
    // A cancelled wait leaves the ramp running.
    const left = once(signal, 'abort')
    try {
      await Promise.race([done, left])
      // The drones report once a second: the next snapshot but one has the figures after the last step.
      for (let i = 0; i < 2 && !signal.aborted; i++) await Promise.race([left, once(fleet, 'snapshot')])
    } finally {
      fleet.off('snapshot', report)
    }
    return { warnings, gauges: last }
  },

  async restart(host, { params: { ids } }) {
    const fleet = await fleetOf(host)
    return { ids: await fleet.restart(ids) }
  },

  async stop(host, { params: { n }, progress }) {
    if (host.fleet === null) return { ids: [], left: 0 }
    const ids = await host.fleet.stop(n, { onProgress: progress })
    if (n === 'all') host.leave()
    return { ids, left: host.fleet.size }
  },

  async settings(host) {
    const { settings } = await fleetOf(host)
    return { settings }
  },

  async snapshot(host) {
    const fleet = await fleetOf(host)
    return { snapshot: fleet.snapshot() }
  },

  async watch(host, { show, signal }) {
    const fleet = await fleetOf(host)
    show(fleet.snapshot())
    fleet.on('snapshot', show)
    await once(signal, 'abort')
    fleet.off('snapshot', show)
  },
}
