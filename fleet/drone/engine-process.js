// An engine process, from outside (EngineProcess) and inside (runEngine).
//
//   parent -> the launch options, once; then {id, method, params}
//   engine -> {id, result} | {id, error}, and {fault: text} before a crash

import { Engine } from './engine/engine.js'
import { ProcessUsage } from './machine.js'

/** Minimum opened or closed connections for a garbage collection. */
const WORTH = 200

export class ProcessEnded extends Error {}

export class EngineProcess {
  #child
  #last = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #pending = new Map()
  fault = ''
  /** Why it ended; resolves after its last message. @type {Promise<string>} */
  ended

  /**
   * @param {() => import('node:child_process').ChildProcess} fork
   * @param {object} launch options of the engine, and its role
   */
  constructor(fork, launch) {
    const child = fork()
    this.#child = child
    this.ended = new Promise(resolve => {
      child.on('message', message => this.#onMessage(/** @type {any} */ (message)))
      // A process that failed to start emits no `close`.
      child.on('error', error => child.pid ?? this.#end(error.message, resolve))
      child.on('close', (code, signal) => this.#end(signal ?? `exit code ${code}`, resolve))
    })
    this.#child.send(launch, () => {})
  }

  get pid() {
    return this.#child.pid
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
   * @param {string} method of the engine, `sample` or `stop` @param {...any} params @returns {Promise<any>} its result
   * @throws {Error} of the engine; ProcessEnded: it ended without a reply
   */
  request(method, ...params) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      // The end of the process reports a failed send.
      this.#child.send({ id, method, params }, () => {})
    })
  }

  /** @param {string} [why] */
  kill(why = '') {
    this.fault ||= why
    this.#child.kill('SIGKILL')
  }
}

/**
 * Serves the methods of an engine in a forked process; `sample` and `stop` return a ProcessSample, and `stop` ends the
 * process.
 * @param {NodeJS.Process} own
 */
export function runEngine(own) {
  const end = () => own.exit()
  const send = (/** @type {object} */ message, then = () => {}) => own.send?.(message, then)
  own.once('message', (/** @type {any} */ launch) => {
    /** @type {any} */
    const engine = new Engine(launch)
    globalThis.gc?.()
    const usage = new ProcessUsage()
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
        globalThis.gc?.()
      }
      return { ...sample, process: usage.now(launch.role, sample.gauges.open) }
    }
    own.on('message', async (/** @type {any} */ { id, method, params }) => {
      try {
        if (method === 'stop') {
          await engine.stop(true)
          send({ id, result: takeSample() }, end)
        } else send({ id, result: method === 'sample' ? takeSample() : await engine[method](...params) })
      } catch (error) {
        send({ id, error: error.message })
      }
    })
  })
  // No load without the parent.
  own.on('disconnect', end)
  // The parent handles signals and ends this process in order.
  for (const signal of ['SIGINT', 'SIGTERM']) own.on(signal, () => {})
  // Node.js still ends the process and writes the stack; this is for the controller.
  own.on('uncaughtExceptionMonitor', error => send({ fault: error.message }))
}
