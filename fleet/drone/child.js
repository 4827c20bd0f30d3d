// A process of the drone: an engine that does what its agent says.

import { Engine } from './engine/engine.js'
import { Usage } from './machine.js'

/** Connections that have come or gone after which it is worth it to collect what that has left behind. */
const WORTH = 200

/**
 * What an agent says is `[method, ...parameters]`, of an engine. Each is answered, in their order: `['result', value]` or
 * `['error', text]`. But `['sample']` is answered with `['sample', ProcessSample]`, whenever it comes, and so is `['stop']`, at the end.
 */
export class EngineServer {
  #engine
  #options
  #usage
  #role
  #changes = 0
  #collected = 0

  /**
   * @param {ConstructorParameters<typeof Engine>[0] & {role: 'connections' | 'publisher'}} launch
   * @param {object} options
   * @param {(kind: string, value: any, then?: () => void) => void} options.tell the agent
   * @param {() => void} options.collect garbage, if that can be done
   * @param {() => void} options.end this process
   */
  constructor(launch, options) {
    this.#options = options
    this.#engine = new Engine(launch)
    options.collect()
    this.#usage = new Usage()
    this.#role = launch.role
  }

  /** @param {[string, ...any]} message */
  async take([method, ...values]) {
    const { tell, end } = this.#options
    /** @type {any} */
    const engine = this.#engine
    if (method === 'sample') return tell(method, this.#sample())
    if (method === 'stop') {
      await engine.stop()
      return tell('sample', this.#sample(), end)
    }
    try {
      tell('result', engine[method](...values))
    } catch (error) {
      tell('error', error.message)
    }
  }

  #sample() {
    const sample = this.#engine.sample()
    const { opened, ended, closed } = sample.counters
    const changes = opened + ended + closed
    // When a ramp is over, not in the midst of it.
    if (changes !== this.#changes) this.#changes = changes
    else if (changes - this.#collected > WORTH) {
      this.#collected = changes
      this.#options.collect()
    }
    return { ...sample, process: this.#usage.now(this.#role, sample.gauges.open) }
  }
}
