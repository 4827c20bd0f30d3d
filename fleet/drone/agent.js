import { dialLink, listenLinks } from '../link/tls.js'
import { channelNumber } from '../subjects.js'
import { Crew } from './crew.js'
import { lookAround, machineNow, Usage } from './machine.js'
import { checkOrder } from './orders.js'

/** @typedef {import('../link/link.js').Link} Link */
/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {import('../schema.js').EventMessage['level']} Level */

/** ms between two samples, and between two attempts to reach the controller. */
const TICK = 1000
/** Events that wait for a controller. */
const MAX_EVENTS = 20

/** A drone: hears what a controller says, has its processes do it, and tells how it goes. */
export class Agent {
  #config
  #log
  #crew
  #hello
  #usage = new Usage()
  #revision = 0
  /** @type {Settings | null} */
  #settings = null
  /** @type {Link | null} */
  #line = null
  /** @type {import('../schema.js').EventMessage[]} */
  #events = []
  /** What was said about the controller last: once is enough. */
  #said = ''
  /** Seconds without a controller. */
  #alone = 0
  #dialling = false
  #stopping = false
  #onEnd

  /**
   * @param {ReturnType<import('./config.js').parseConfig>} config
   * @param {object} options
   * @param {string} options.version
   * @param {() => import('node:child_process').ChildProcess} options.fork a process of this drone
   * @param {(level: Level, text: string) => void} options.log
   * @param {() => void} options.onEnd it is over
   */
  constructor(config, { version, fork, log, onEnd }) {
    const { id, run } = config
    const facts = lookAround(config.perProcess)
    this.#config = config
    this.#log = log
    this.#onEnd = onEnd
    this.#hello = { type: 'hello', id, run, start: `${performance.timeOrigin}`, version, facts }
    this.#crew = new Crew({
      fork,
      launch: { ...config, machine: channelNumber(facts.bootId) },
      perProcess: facts.perProcess,
      hangAfter: config.hangAfter,
      onDeath: text => this.tell('warn', text),
    })
  }

  /**
   * Begins to look for its controller.
   * @throws {Error} it cannot listen
   */
  async start() {
    setInterval(() => this.#tick(), TICK)
    const config = this.#config
    if (!config.listen) return this.#dial()
    const { port } = await listenLinks({
      ...config,
      onLink: line => this.#onLine(line),
      // Who scans ports is no news, and must not fill the disk.
      onFault: () => {},
    })
    this.#log('info', `listens on port ${port}`)
  }

  async #dial() {
    const { run, id } = this.#config
    this.#dialling = true
    try {
      this.#onLine(await dialLink({ ...this.#config, identity: `${run}/${id}` }))
    } catch (error) {
      this.#say('warn', `controller ${error.message}`)
    }
    this.#dialling = false
  }

  /** @param {Level} level @param {string} text */
  #say(level, text) {
    if (text !== this.#said) this.#log(level, text)
    this.#said = text
  }

  /** @param {Link} line */
  #onLine(line) {
    this.#line?.close('another controller has come')
    this.#line = line
    this.#say('info', 'has a controller')
    line.onMessage = message => this.#order(line, message)
    line.onClose = reason => {
      if (this.#line !== line) return
      this.#line = null
      this.#say('warn', `has lost its controller: ${reason}`)
    }
    line.send(this.#hello)
  }

  /** Tells the controller, and the log. @param {Level} level @param {string} text */
  tell(level, text) {
    this.#log(level, text)
    this.#events.push({ type: 'event', level, text })
    this.#events = this.#events.slice(-MAX_EVENTS)
  }

  /**
   * @param {Link} line
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
  async #do(message) {
    const crew = this.#crew
    switch (message.type) {
      case 'settings':
        return this.#set(message)
      case 'cut': {
        const cuts = await crew.ask('cut', message.share, message.how)
        return { cut: cuts.reduce((sum, count) => sum + count, 0) }
      }
      case 'reckon': {
        /** @type {Record<string, number>} */
        const sum = { expected: 0, lost: 0, unknown: 0 }
        for (const part of await crew.ask('reckon', message.ledgers))
          for (const name in sum) sum[name] += part[name]
        return sum
      }
      case 'ledgers':
        return crew.ask('ledgers')
      case 'restart':
        return crew.restart()
      case 'stop':
        this.#stopping = true
        return crew.stop()
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

  async #tick() {
    if (this.#line) this.#alone = 0
    else this.#mourn(this.#alone++)
    const sample = await this.#crew.sample()
    const line = this.#line
    if (!line) return
    for (const event of this.#events.splice(0)) line.send(event)
    line.send({
      type: 'sample',
      sample: {
        ...sample,
        at: Date.now(),
        up: Math.round(performance.now()),
        revision: this.#revision,
        processes: [this.#usage.now('agent', 0), ...sample.processes],
        machine: machineNow(),
      },
    })
  }

  /**
   * Looks for a controller. Without one it does not load for long, and is not there for ever.
   * @param {number} seconds that have passed, at least
   */
  #mourn(seconds) {
    const { listen, orphanAfter, exitAfter } = this.#config
    if (!listen && !this.#dialling) this.#dial()
    if (seconds >= orphanAfter && this.#settings && this.#revision) {
      this.tell('warn', `no controller for ${seconds} s: it stops loading`)
      this.#revision = 0
      this.#settings = { ...this.#settings, connections: 0, publish: null, publishFrom: 0 }
      this.#crew.apply(this.#settings).catch(() => {})
    }
    if (exitAfter && seconds >= exitAfter) {
      this.#say('warn', `ends: no controller for ${seconds} s`)
      this.stop()
    }
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
