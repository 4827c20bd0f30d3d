// A process with an engine, as its parent sees it (EngineProcess) and as it is inside (beEngine).
//
//   parent -> the launch options, once; then {id, method, params}
//   engine -> {id, result} | {id, error}, and {fault: text} before it dies of an error

import { Engine } from './engine/engine.js'
import { Usage } from './machine.js'

/** Connections opened or closed after which a garbage collection is worth its time. */
const WORTH = 200

/** The process ended before it answered a request. */
export class ProcessEnded extends Error {}

export class EngineProcess {
  #child
  #last = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #pending = new Map()
  /** Its last error. */
  fault = ''
  /** @type {Promise<string>} why it ended; resolves after its last message */
  ended

  /**
   * @param {() => import('node:child_process').ChildProcess} fork
   * @param {object} launch of the engine, see serveEngine()
   */
  constructor(fork, launch) {
    const child = fork()
    this.#child = child
    this.ended = new Promise(resolve => {
      child.on('message', message => this.#onMessage(/** @type {any} */ (message)))
      // A process that was never started does not close.
      child.on('error', error => child.pid ?? this.#end(error.message, resolve))
      child.on('close', (code, signal) => this.#end(signal ?? `exit code ${code}`, resolve))
    })
    this.#send(launch)
  }

  get pid() {
    return this.#child.pid
  }

  /** A failed send is known by the end of the process. @param {object} message */
  #send(message) {
    this.#child.send(message, () => {})
  }

  /** @param {{id: number, result?: any, error?: string} | {fault: string}} message */
  #onMessage(message) {
    if ('fault' in message) {
      this.fault = message.fault
      return
    }
    const { id, result, error } = message
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (error === undefined) pending?.resolve(result)
    else pending?.reject(new Error(error))
  }

  /** @param {string} why @param {(why: string) => void} resolve */
  #end(why, resolve) {
    const text = this.fault || why
    for (const { reject } of this.#pending.values()) reject(new ProcessEnded(text))
    this.#pending.clear()
    resolve(text)
  }

  /**
   * @param {string} method of the engine, `sample` or `stop`
   * @param {...any} params
   * @returns {Promise<any>} its answer
   * @throws {Error} what the engine says; ProcessEnded: it ended before it answered
   */
  request(method, ...params) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#send({ id, method, params })
    })
  }

  /** Ends it by force. @param {string} [why] */
  kill(why = '') {
    this.fault ||= why
    this.#child.kill('SIGKILL')
  }
}

/**
 * What its parent says is `{id, method, params}`; each is answered by its number (see engine-process.js). Methods are
 * those of an engine, but `sample` and `stop` are answered with a ProcessSample, and after `stop` the process ends.
 * @param {ConstructorParameters<typeof Engine>[0] & {role: 'connections' | 'publisher'}} launch
 * @param {(message: object, then?: () => void) => void} send to the parent
 * @param {() => void} collect garbage, if that can be done
 * @param {() => void} end this process
 * @returns {(message: {id: number, method: string, params: any[]}) => Promise<void>} takes what the parent says
 */
function serveEngine(launch, send, collect, end) {
  /** @type {any} */
  const engine = new Engine(launch)
  collect()
  const usage = new Usage()
  let changes = 0
  let collected = 0

  const takeSample = () => {
    const sample = engine.sample()
    const { opened, ended, closed } = sample.counters
    const before = changes
    changes = opened + ended + closed
    // After a ramp, not during it.
    if (changes === before && changes - collected > WORTH) {
      collected = changes
      collect()
    }
    const { subscribed, lastAt } = engine
    return { ...sample, subscribed, lastAt, process: usage.now(launch.role, sample.gauges.open) }
  }

  return async ({ id, method, params }) => {
    try {
      if (method === 'stop') {
        await engine.stop()
        send({ id, result: takeSample() }, end)
      } else send({ id, result: method === 'sample' ? takeSample() : await engine[method](...params) })
    } catch (error) {
      send({ id, error: error.message })
    }
  }
}

/**
 * Turns a forked process into an engine process.
 * @param {NodeJS.Process} own this process
 * @param {Partial<ConstructorParameters<typeof Engine>[0]>} [more] options of the engine that cannot be sent
 */
export function beEngine(own, more = {}) {
  const end = () => own.exit()
  const send = (/** @type {object} */ message, then = () => {}) => own.send?.(message, then)
  own.once('message', (/** @type {any} */ launch) => {
    const serve = serveEngine({ ...launch, ...more }, send, () => globalThis.gc?.(), end)
    own.on('message', message => serve(/** @type {any} */ (message)))
  })
  // However the parent ends: nothing loads a target without it.
  own.on('disconnect', end)
  // Signals are the parent's, which ends this process in order.
  for (const signal of ['SIGINT', 'SIGTERM']) own.on(signal, () => {})
  // Node.js ends the process and writes the stack; this is for the controller.
  own.on('uncaughtExceptionMonitor', error => send({ fault: error.message }))
}
