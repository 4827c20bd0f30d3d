// A process of the drone: an engine that does what its agent says.

import { Engine } from './engine/engine.js'
import { Usage } from './machine.js'

/** Connections that have come or gone after which it is worth it to collect what that has left behind. */
const WORTH = 200

/**
 * What an agent says is `[method, ...parameters]`, of an engine. Each is answered, in their order: `['result', value]` or
 * `['error', text]`. But `['sample']` is answered with `['sample', ProcessSample]`, whenever it comes, and so is `['stop']`, at the end.
 *
 * @param {ConstructorParameters<typeof Engine>[0] & {role: 'connections' | 'publisher'}} launch
 * @param {(kind: string, value: any, then?: () => void) => void} tell the agent
 * @param {() => void} collect garbage, if that can be done
 * @param {() => void} end this process
 * @returns {(message: [string, ...any]) => Promise<void>} takes what the agent says
 */
export function serveEngine(launch, tell, collect, end) {
  /** @type {any} */
  const engine = new Engine(launch)
  collect()
  const usage = new Usage()
  let changes = 0
  let collected = 0

  /** @param {() => void} [then] */
  const tellSample = then => {
    const sample = engine.sample()
    const { opened, ended, closed } = sample.counters
    const before = changes
    changes = opened + ended + closed
    // When a ramp is over, not in the midst of it.
    if (changes === before && changes - collected > WORTH) {
      collected = changes
      collect()
    }
    tell('sample', { ...sample, process: usage.now(launch.role, sample.gauges.open) }, then)
  }

  return async ([method, ...values]) => {
    if (method === 'sample') return tellSample()
    if (method === 'stop') {
      await engine.stop()
      return tellSample(end)
    }
    try {
      tell('result', engine[method](...values))
    } catch (error) {
      tell('error', error.message)
    }
  }
}
