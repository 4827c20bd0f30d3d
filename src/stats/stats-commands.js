// What may be asked of a gateway by those who watch it.

/**
 * What the primary does when it is asked to. What throws or rejects is told to who asked.
 *
 * @typedef {object} StatsActions
 * @property {(worker: number | null) => unknown} gc collects garbage in one worker, or in all
 * @property {(worker: number) => unknown} restart
 * @property {() => unknown} stop begins to end the gateway
 * @property {(listener: (line: string) => void) => () => void} log each line of the log as JSON text from now on; returns what ends that
 */

/** @typedef {import('./schema.js').StatsCommand} StatsCommand */

/**
 * @param {any} value
 * @param {number} workers
 */
const isWorker = (value, workers) => Number.isInteger(value) && value >= 0 && value < workers

/**
 * @param {any} command from outside
 * @param {number} workers how many places there are
 * @returns {StatsCommand}
 * @throws {Error} when it is none
 */
export function checkCommand(command, workers) {
  switch (command?.type) {
    case 'log':
      if (typeof command.on !== 'boolean') throw new Error('log: `on` is true or false')
      return { type: 'log', on: command.on }
    case 'gc': {
      const { worker = null } = command
      if (worker !== null && !isWorker(worker, workers))
        throw new Error('gc: `worker` is an index, or null for all')
      return { type: 'gc', worker }
    }
    case 'restart':
      if (!isWorker(command.worker, workers)) throw new Error('restart: `worker` is an index')
      return { type: 'restart', worker: command.worker }
    case 'stop':
      return { type: 'stop' }
    default:
      throw new Error('unknown command: there are log, gc, restart and stop')
  }
}

/**
 * @param {any} command
 * @returns {string} what a `done` message calls it
 */
export const commandName = command => (typeof command?.type === 'string' ? command.type.slice(0, 32) : '')

/**
 * @param {Exclude<StatsCommand, {type: 'log'}>} command
 * @param {StatsActions} actions
 * @returns {Promise<void>}
 */
export async function carryOut(command, actions) {
  switch (command.type) {
    case 'gc':
      await actions.gc(command.worker)
      break
    case 'restart':
      await actions.restart(command.worker)
      break
    case 'stop':
      // Its end is the end of this process, so nobody could be told.
      Promise.resolve(actions.stop()).catch(() => {})
  }
}
