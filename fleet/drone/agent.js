import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { dialLink } from '../link/dial.js'
import { listenLinks } from '../link/listen.js'
import { channelNumber } from '../subjects.js'
import { Crew } from './crew.js'
import { lookAround, machineNow, Usage } from './machine.js'
import { checkOrder } from './orders.js'

/** @typedef {import('../link/line.js').Line} Line */
/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {'info' | 'warn' | 'error'} Level */

/** ms between two samples. */
const SAMPLED = 1000
/** ms before the controller is dialled again, at first; doubles. */
const REDIAL = 200
const MAX_REDIAL = 5_000
/** Events that wait for a controller. */
const MAX_EVENTS = 20

/** A drone: hears what a controller says, has its processes do it, and tells how it goes. */
export class Agent {
  #config
  #place
  #log
  #crew
  #hello
  #born = performance.now()
  #usage = new Usage()
  #revision = 0
  /** @type {Settings | null} */
  #settings = null
  /** @type {Line | null} */
  #line = null
  /** @type {{type: 'event', level: Level, text: string}[]} */
  #events = []
  #redial = REDIAL
  /** What was said about the controller last: once is enough. */
  #said = ''
  /** @type {NodeJS.Timeout[]} run while there is no controller */
  #lonely = []
  #stopping = false
  #onEnd

  /**
   * @param {import('../schema.js').LaunchConfig} config
   * @param {{host: string, port: number, secret: string}} place where its controller is, or where it listens
   * @param {object} options
   * @param {string} options.version
   * @param {() => import('node:child_process').ChildProcess} options.fork a process of this drone
   * @param {(level: Level, text: string) => void} options.log
   * @param {() => void} options.onEnd it is over
   */
  constructor(config, place, { version, fork, log, onEnd }) {
    const { id, run, allow, apiKey, tokenSecret, hangAfter = 20 } = config
    const { facts, perProcess } = lookAround(config.perProcess || undefined)
    this.#config = config
    this.#place = place
    this.#log = log
    this.#onEnd = onEnd
    this.#hello = { type: 'hello', id, run, start: randomBytes(8).toString('hex'), version, facts }
    this.#crew = new Crew({
      fork,
      launch: { allow, apiKey, tokenSecret, machine: channelNumber(facts.bootId) },
      perProcess,
      hangAfter,
      onDeath: text => this.event('warn', text),
    })
  }

  /**
   * Begins to look for its controller.
   * @throws {Error} it cannot listen
   */
  async start() {
    this.#mourn()
    setInterval(() => this.#sample(), SAMPLED)
    if (!this.#config.listen) return void this.#dial()
    const { port } = await listenLinks({
      ...this.#place,
      run: this.#config.run,
      onLine: line => void this.#onLine(line),
      // Who scans ports is no news, and must not fill the disk.
      onFault: () => {},
    })
    this.#log('info', `listens on port ${port}`)
  }

  async #dial() {
    const { run, id } = this.#config
    while (!this.#stopping) {
      try {
        await this.#onLine(await dialLink({ ...this.#place, identity: `${run}/${id}` }))
      } catch (error) {
        this.#say('warn', `controller ${error.message}`)
      }
      // Not all drones at the same moment.
      await sleep(this.#redial * (0.5 + Math.random() / 2))
      this.#redial = Math.min(MAX_REDIAL, this.#redial * 2)
    }
  }

  /** @param {Level} level @param {string} text */
  #say(level, text) {
    if (text !== this.#said) this.#log(level, text)
    this.#said = text
  }

  /**
   * @param {Line} line
   * @returns {Promise<void>} when it is closed
   */
  #onLine(line) {
    const before = this.#line
    this.#line = line
    before?.close('another controller has come')
    for (const timer of this.#lonely) clearTimeout(timer)
    this.#say('info', 'has a controller')
    line.onMessage = message => {
      this.#redial = REDIAL
      this.#order(line, message)
    }
    line.send(this.#hello)
    for (const event of this.#events.splice(0)) line.send(event)
    return new Promise(resolve => {
      line.onClose = reason => {
        resolve()
        if (this.#line !== line) return
        this.#line = null
        this.#say('warn', `has lost its controller: ${reason}`)
        this.#mourn()
      }
    })
  }

  /** Without a controller it does not load for long, and is not there for ever. */
  #mourn() {
    if (this.#stopping) return
    const { orphanAfter = 30, exitAfter = 600 } = this.#config
    const end = () => {
      this.#log('warn', `ends: no controller for ${exitAfter} s`)
      this.stop()
    }
    // Timers go no further than 24 days.
    const later = (/** @type {() => void} */ run, /** @type {number} */ seconds) =>
      setTimeout(run, Math.min(2e6, seconds) * 1000)
    this.#lonely = [later(() => this.#rest(orphanAfter), orphanAfter)]
    if (exitAfter > 0) this.#lonely.push(later(end, exitAfter))
  }

  /** @param {number} seconds */
  #rest(seconds) {
    if (!this.#settings) return
    this.event('warn', `no controller for ${seconds} s: it stops loading`)
    this.#revision = 0
    this.#settings = { ...this.#settings, connections: 0, publish: null, publishFrom: 0 }
    this.#crew.apply(this.#settings).catch(() => {})
  }

  /**
   * Tells the controller, and the log.
   * @param {Level} level
   * @param {string} text
   */
  event(level, text) {
    this.#log(level, text)
    const event = { type: /** @type {const} */ ('event'), level, text }
    if (this.#line) this.#line.send(event)
    else if (this.#events.push(event) > MAX_EVENTS) this.#events.shift()
  }

  /**
   * @param {Line} line
   * @param {any} message
   */
  async #order(line, message) {
    const { type, ask } = message
    try {
      if (this.#stopping) throw new Error('the drone ends')
      checkOrder(message, this.#config.allow, this.#hello.facts.capacity)
      line.send({ type: 'answer', ask, result: (await this.#do(message)) ?? {} })
      if (type === 'stop') this.#leave()
    } catch (error) {
      line.send({ type: 'answer', ask, error: error.message })
    }
  }

  /** @param {import('../schema.js').ToDrone} message checked */
  #do(message) {
    switch (message.type) {
      case 'settings':
        return this.#set(message)
      case 'cut':
        return this.#crew
          .ask('cut', message.share, message.how)
          .then(cuts => ({ cut: cuts.reduce((sum, count) => sum + count, 0) }))
      case 'ledgers':
        return this.#crew.ask('ledgers')
      case 'reckon':
        return this.#reckon(message.ledgers)
      case 'restart':
        return this.#crew.restart()
      case 'stop':
        this.#stopping = true
        return this.#crew.stop()
    }
  }

  /** @param {import('../schema.js').SettingsMessage} message */
  async #set({ revision, settings }) {
    try {
      await this.#crew.apply(settings)
    } catch (error) {
      // What one process does not like holds for none of them.
      if (this.#settings) await this.#crew.apply(this.#settings)
      throw error
    }
    this.#settings = settings
    this.#revision = revision
  }

  /** @param {import('../schema.js').Ledger[]} ledgers */
  async #reckon(ledgers) {
    /** @type {Record<string, number>} */
    const sum = { expected: 0, lost: 0, unknown: 0 }
    for (const part of await this.#crew.ask('reckon', ledgers))
      for (const name in sum) sum[name] += part[name]
    return sum
  }

  async #sample() {
    const { processes, ...sample } = await this.#crew.sample()
    this.#line?.send({
      type: 'sample',
      sample: {
        at: Date.now(),
        up: Math.round(performance.now() - this.#born),
        revision: this.#revision,
        processes: [{ role: 'agent', connections: 0, ...this.#usage.now() }, ...processes],
        machine: machineNow(),
        ...sample,
      },
    })
  }

  /** Closes all connections, in order, and ends. */
  async stop() {
    if (this.#stopping) return
    this.#stopping = true
    await this.#crew.stop()
    await this.#leave()
  }

  async #leave() {
    const line = this.#line
    this.#line = null
    await line?.close('the drone ends')
    this.#onEnd()
  }
}
