/** @import { StatsCommand } from './schema.js' */

/**
 * Run in the primary; errors are returned to the caller.
 * @typedef {object} StatsActions
 * @property {(worker: number | null) => unknown} gc null: all workers
 * @property {(worker: number | null) => unknown} restart null: all, one after another
 * @property {() => unknown} stop starts the shutdown
 * @property {() => Promise<string>} reload returns one line about the changes
 * @property {(listener: (line: string) => void) => () => void} log passes JSON lines until the returned call
 */

/** @param {any} command @param {number} workers slots @returns {StatsCommand} @throws {Error} */
export function checkCommand(command, workers) {
  const { type } = command ?? {}
  if (type === 'reload' || type === 'stop') return { type }
  if (type === 'log') {
    if (typeof command.on !== 'boolean') throw new Error('log: `on` must be true or false')
    return { type, on: command.on }
  }
  if (type !== 'gc' && type !== 'restart')
    throw new Error('unknown command: use log, gc, restart, reload or stop')
  const { worker = type === 'gc' ? null : undefined } = command
  if (worker !== null && !(Number.isInteger(worker) && worker >= 0 && worker < workers))
    throw new Error(`${type}: \`worker\` must be an index, or null for all`)
  return { type, worker }
}

/** Of the `done` message. @param {any} command */
export const commandName = command => (typeof command?.type === 'string' ? command.type.slice(0, 32) : '')

/** One line for the caller. @param {Exclude<StatsCommand, {type: 'log'}>} command @param {StatsActions} actions */
export async function runCommand(command, actions) {
  if (command.type === 'reload') return await actions.reload()
  // Not awaited: its completion ends this process.
  if (command.type === 'stop') Promise.resolve(actions.stop()).catch(() => {})
  else await actions[command.type](command.worker)
  return undefined
}
