// Commands of stats clients: collect garbage, restart workers, reload, stop the gateway, follow the log.

/** @import { StatsCommand } from './schema.js' */

/**
 * Run in the primary; errors are returned to the caller.
 * @typedef {object} StatsActions
 * @property {(worker: number | null) => unknown} gc null: all workers
 * @property {(worker: number | null) => unknown} restart null: all, one after another
 * @property {() => unknown} stop starts the shutdown
 * @property {() => Promise<string>} reload reads the configuration again; one line that says what has changed
 * @property {(listener: (line: string) => void) => () => void} log passes on log lines as JSON text, until the returned
 *   function is called
 */

/** @param {any} value @param {number} workers */
const isWorker = (value, workers) => Number.isInteger(value) && value >= 0 && value < workers

/**
 * @param {any} command from outside
 * @param {number} workers slots
 * @returns {StatsCommand}
 * @throws {Error} if invalid
 */
export function checkCommand(command, workers) {
  switch (command?.type) {
    case 'log':
      if (typeof command.on !== 'boolean') throw new Error('log: `on` must be true or false')
      return { type: 'log', on: command.on }
    case 'gc': {
      const { worker = null } = command
      if (worker !== null && !isWorker(worker, workers))
        throw new Error('gc: `worker` must be an index, or null for all')
      return { type: 'gc', worker }
    }
    case 'restart': {
      const { worker } = command
      if (worker !== null && !isWorker(worker, workers))
        throw new Error('restart: `worker` must be an index, or null for all, one after another')
      return { type: 'restart', worker }
    }
    case 'reload':
    case 'stop':
      return { type: command.type }
    default:
      throw new Error('unknown command: use log, gc, restart, reload or stop')
  }
}

/** @param {any} command @returns {string} the name used in the `done` message */
export const commandName = command => (typeof command?.type === 'string' ? command.type.slice(0, 32) : '')

/**
 * @param {Exclude<StatsCommand, {type: 'log'}>} command @param {StatsActions} actions
 * @returns {Promise<string | undefined>} one line for the caller
 */
export async function runCommand(command, actions) {
  switch (command.type) {
    case 'reload':
      return await actions.reload()
    case 'gc':
      await actions.gc(command.worker)
      break
    case 'restart':
      await actions.restart(command.worker)
      break
    case 'stop':
      // Its completion ends this process: it cannot be awaited.
      Promise.resolve(actions.stop()).catch(() => {})
  }
  return undefined
}
