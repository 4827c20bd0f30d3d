// A process of the drone: an engine that does what its agent says.

import { Engine } from './engine/engine.js'
import { Usage } from './machine.js'

/** Connections that have come or gone after which it is worth it to collect what that has left behind. */
const WORTH = 200
/** Seconds without change after which a ramp is over. */
const CALM = 2

/**
 * What an agent asks, and how it is answered: `[number, method, ...parameters]`, `[number, result, error]`. Methods are those of an engine,
 * beside `begin`, which has the parameters of its constructor.
 */
export class EngineServer {
  /** @type {any} */
  #engine
  #collect
  /** @type {Usage | undefined} */
  #usage
  #changes = 0
  #collected = 0
  #calm = 0

  /** @param {() => void} collect garbage, if that can be done */
  constructor(collect) {
    this.#collect = collect
  }

  /**
   * @param {[number, string, ...any]} message
   * @param {(answer: [number, any, string?]) => void} answer
   */
  async take([ask, method, ...values], answer) {
    try {
      answer([ask, await this.#do(method, values)])
    } catch (error) {
      answer([ask, null, error.message])
    }
  }

  /** @param {string} method @param {any[]} values */
  async #do(method, values) {
    if (method === 'begin') {
      this.#engine = new Engine(values[0])
      this.#collect()
      this.#usage = new Usage()
      return
    }
    if (method === 'sample') return this.#sample()
    const result = await this.#engine[method](...values)
    return method === 'stop' ? this.#sample() : result
  }

  #sample() {
    const sample = this.#engine.sample()
    const { opened, ended, closed } = sample.counters
    const changes = opened + ended + closed
    if (changes !== this.#changes || sample.gauges.opening > 0) this.#calm = 0
    else if (++this.#calm === CALM && changes - this.#collected > WORTH) {
      this.#collected = changes
      this.#collect()
    }
    this.#changes = changes
    return { ...sample, usage: this.#usage?.now() }
  }
}
