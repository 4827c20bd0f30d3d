// A process of the drone: an engine that does what its parent says.

import { Engine } from './engine/engine.js'
import { Usage } from './machine.js'

/** Connections that have come or gone after which it is worth it to collect what that has left behind. */
const WORTH = 200

/**
 * What its parent says is `{id, method, params}`; each is answered by its number (see engine-process.js). Methods are those of an engine,
 * but `sample` and `stop` are answered with a ProcessSample, and after `stop` the process ends.
 *
 * @param {ConstructorParameters<typeof Engine>[0] & {role: 'connections' | 'publisher'}} launch
 * @param {(message: object, then?: () => void) => void} tell the parent
 * @param {() => void} collect garbage, if that can be done
 * @param {() => void} end this process
 * @returns {(message: {id: number, method: string, params: any[]}) => Promise<void>} takes what the parent says
 */
export function serveEngine(launch, tell, collect, end) {
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
    // When a ramp is over, not in the midst of it.
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
        tell({ id, result: takeSample() }, end)
      } else tell({ id, result: method === 'sample' ? takeSample() : await engine[method](...params) })
    } catch (error) {
      tell({ id, error: error.message })
    }
  }
}

/**
 * Makes a process that was forked an engine's.
 * @param {NodeJS.Process} own this process
 * @param {Partial<ConstructorParameters<typeof Engine>[0]>} [more] options of the engine that cannot be told it
 */
export function beEngine(own, more = {}) {
  const end = () => own.exit()
  const tell = (/** @type {object} */ message, then = () => {}) => own.send?.(message, then)
  own.once('message', (/** @type {any} */ launch) => {
    const take = serveEngine({ ...launch, ...more }, tell, () => globalThis.gc?.(), end)
    own.on('message', message => take(/** @type {any} */ (message)))
  })
  // Whoever ends the parent, and however: nobody loads a target without it.
  own.on('disconnect', end)
  // They mean the parent, which ends this process in order.
  for (const signal of ['SIGINT', 'SIGTERM']) own.on(signal, () => {})
  // It ends by itself then, and writes where that was; this is for the controller.
  own.on('uncaughtExceptionMonitor', error => tell({ fault: error.message }))
}
