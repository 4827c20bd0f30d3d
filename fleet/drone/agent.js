import { channelNumber } from '../channel-template.js'
import { dialLink, listenLinks } from '../link/tls.js'
import { machineFacts, machineUsage, ProcessUsage } from './machine.js'
import { ProcessPool } from './process-pool.js'
import { checkRequest } from './requests.js'
import { serveStatus, statusOf } from './status-server.js'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Link } from '../link/link.js' */
/** @import { DroneSample, DroneStatus, EventMessage, Settings, SettingsMessage, ToDrone } from '../schema.js' */

/** @typedef {EventMessage['level']} Level */

/** Interval of samples, and of attempts to reach the controller, ms. */
const TICK = 1000
/** Events kept for a disconnected controller. */
const MAX_EVENTS = 20

/** Receives requests from the controller, passes them to the drone's processes, and sends samples. */
export class Agent {
  #config
  #log
  #processes
  #hello
  #usage = new ProcessUsage()
  #revision = 0
  /** @type {Settings | null} */
  #settings = null
  /** @type {Link | null} */
  #link = null
  /** @type {EventMessage[]} */
  #events = []
  /** Last line logged about the controller, to skip repetitions. */
  #lastLogged = ''
  #secondsAlone = 0
  #dialling = false
  #stopping = false
  /** For the status port: the last sample, and the one before it. @type {DroneSample | null} */
  #sample = null
  /** @type {DroneSample | null} */
  #sampleBefore = null
  #onEnd

  /**
   * @param {ReturnType<import('./config.js').parseConfig>} config @param {{version: string, fork: () => ChildProcess,
   *   log: (level: Level, text: string) => void, onEnd: () => void}} options
   */
  constructor(config, { version, fork, log, onEnd }) {
    const { id, run } = config
    const facts = machineFacts(config.perProcess)
    this.#config = config
    this.#log = log
    this.#onEnd = onEnd
    this.#hello = { type: 'hello', id, run, start: `${performance.timeOrigin}`, version, facts }
    this.#processes = new ProcessPool({
      fork,
      launch: { ...config, machine: channelNumber(facts.bootId) },
      perProcess: facts.perProcess,
      hangAfter: config.hangAfter,
      onExit: text => this.report('warn', text),
    })
  }

  /** @throws {Error} one line: it cannot listen, or not open its status port */
  async start() {
    const config = this.#config
    if (config.statusAddress) {
      const { port } = await serveStatus(config.statusAddress, () => this.#status())
      this.#log('info', `status on port ${port}`)
    }
    setInterval(() => this.#tick(), TICK)
    if (!config.listen) return this.#dial()
    const { port } = await listenLinks({
      ...config,
      onLink: link => this.#onLink(link),
      // Port scans are not logged: they would fill the disk.
      onFault: () => {},
    }).catch(error => {
      throw new Error(`cannot listen on ${config.listen}: ${error.message}`)
    })
    this.#log('info', `listening on port ${port}`)
  }

  /** @returns {DroneStatus} */
  #status() {
    const { id, run, version } = this.#hello
    const state = this.#stopping ? 'exiting' : this.#sample ? 'up' : 'starting'
    const controller = this.#link ? 'connected' : 'disconnected'
    return statusOf({ id, run, version, state, controller }, this.#sample, this.#sampleBefore)
  }

  async #dial() {
    const { run, id } = this.#config
    this.#dialling = true
    try {
      this.#onLink(await dialLink({ ...this.#config, identity: `${run}/${id}` }))
    } catch (error) {
      this.#logOnce('warn', `controller ${error.message}`)
    }
    this.#dialling = false
  }

  /** @param {Level} level @param {string} text */
  #logOnce(level, text) {
    if (text !== this.#lastLogged) this.#log(level, text)
    this.#lastLogged = text
  }

  /** @param {Link} link */
  #onLink(link) {
    this.#link?.close('replaced by another controller')
    this.#link = link
    this.#logOnce('info', 'controller connected')
    link.onMessage = message => this.#onMessage(link, message)
    link.onClose = reason => {
      if (this.#link !== link) return
      this.#link = null
      this.#logOnce('warn', `controller disconnected: ${reason}`)
    }
    link.send(this.#hello)
  }

  /** Sends an event to the controller, and logs it. @param {Level} level @param {string} text */
  report(level, text) {
    this.#log(level, text)
    this.#events.push({ type: 'event', level, text })
    this.#events = this.#events.slice(-MAX_EVENTS)
  }

  /** @param {Link} link @param {any} message */
  async #onMessage(link, message) {
    const { type, ask } = message
    try {
      if (this.#stopping) throw new Error('the drone is exiting')
      checkRequest(message, this.#config.allow, this.#hello.facts.capacity)
      link.send({ type: 'answer', ask, result: (await this.#execute(message)) ?? {} })
      if (type === 'stop') this.#disconnect()
    } catch (error) {
      link.send({ type: 'answer', ask, error: error.message })
    }
  }

  /** @param {ToDrone} message checked */
  async #execute(message) {
    const processes = this.#processes
    switch (message.type) {
      case 'settings':
        return this.#applySettings(message)
      case 'cut': {
        const cuts = await processes.request('cut', message.share, message.how)
        return { cut: cuts.reduce((sum, count) => sum + count, 0) }
      }
      case 'reconcile': {
        /** @type {Record<string, number>} */
        const sum = { expected: 0, lost: 0, unknown: 0 }
        for (const part of await processes.request('reconcile', message.ledgers))
          for (const name in sum) sum[name] += part[name]
        return sum
      }
      case 'ledgers':
        return processes.request('ledgers')
      case 'restart':
        return processes.restart()
      case 'stop':
        this.#stopping = true
        return processes.stop()
    }
  }

  /** @param {SettingsMessage} message */
  async #applySettings({ revision, settings }) {
    try {
      await this.#processes.apply(settings)
    } catch (error) {
      // If one process refuses settings, none applies them.
      if (this.#settings) await this.#processes.apply(this.#settings)
      throw error
    }
    this.#settings = settings
    this.#revision = revision
  }

  async #tick() {
    if (this.#link) this.#secondsAlone = 0
    else this.#checkController(this.#secondsAlone++)
    const collected = await this.#processes.sample()
    const link = this.#link
    if (!link && !this.#config.statusAddress) return
    const sample = {
      ...collected,
      at: Date.now(),
      up: Math.round(performance.now()),
      revision: this.#revision,
      processes: [this.#usage.now('agent', 0), ...collected.processes],
      machine: machineUsage(),
    }
    this.#sampleBefore = this.#sample
    this.#sample = sample
    if (!link) return
    for (const event of this.#events.splice(0)) link.send(event)
    link.send({ type: 'sample', sample })
  }

  /** Stops the load after `orphanAfter`, and exits after `exitAfter`. @param {number} seconds alone */
  #checkController(seconds) {
    const { listen, orphanAfter, exitAfter } = this.#config
    if (!listen && !this.#dialling) this.#dial()
    if (seconds >= orphanAfter && this.#settings && this.#revision) {
      this.report('warn', `no controller for ${seconds} s: stopping the load`)
      this.#revision = 0
      this.#settings = { ...this.#settings, connections: 0, publish: null, publishFrom: 0 }
      this.#processes.apply(this.#settings).catch(() => {})
    }
    if (exitAfter && seconds >= exitAfter) {
      this.#logOnce('warn', `exiting: no controller for ${seconds} s`)
      this.stop()
    }
  }

  async stop() {
    if (this.#stopping) return
    this.#stopping = true
    await this.#processes.stop()
    await this.#disconnect()
  }

  async #disconnect() {
    const link = this.#link
    this.#link = null
    await link?.close('the drone is exiting')
    this.#onEnd()
  }
}
