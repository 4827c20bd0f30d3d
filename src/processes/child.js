// Shared by workers and the queue process (child processes of the primary).

import { url as inspectorUrl } from 'node:inspector'
import { createLog, LogOutput } from '../base/log.js'
import { receive } from './messages.js'

/** @import { WorkerSample } from '../metrics/schema.js' */
/** @import { ChildStart, FromQueues, FromWorker, Handlers, Message } from './messages.js' */
/** @import { QueuesSample, ToQueues, ToWorker } from './messages.js' */

/**
 * Sends a message to the primary.
 * @param {Message<FromWorker> | Message<FromQueues>} message
 * @param {() => void} [done] called when sent or failed
 */
export const send = (message, done) => process.send?.(message, undefined, undefined, done)

/** @param {WorkerSample | QueuesSample} sample */
export function sendSample(sample) {
  const message = { type: 'sample', sample, debugged: inspectorUrl() !== undefined }
  send(/** @type {Message<Pick<FromWorker, 'sample'>>} */ (message))
}

/** Handles messages from the primary. @param {Partial<Handlers<ToWorker>> | Partial<Handlers<ToQueues>>} handlers */
export const handle = handlers =>
  process.on('message', (/** @type {{type: string}} */ message) => receive(handlers, message))

/** Exits. @param {string} message reason, for the log of the primary */
function fail(message) {
  send({ type: 'failed', message }, () => process.exit(1))
}

/** Exits after a programming error, with its stack. @param {unknown} error */
export const crash = error => fail((error instanceof Error && error.stack) || String(error))

/**
 * Runs a child of the primary: starts on the message `start`, exits with the primary.
 * @template {ChildStart} Start
 * @param {(start: Start) => Promise<void>} run a rejection ends the process with its message as the reason
 * @param {{code: number, onRejection?: (error: unknown) => void}} options `code`: exit code without the primary;
 *   `onRejection`: handles unhandled rejections; by default the process exits
 */
export function runChild(run, { code, onRejection = crash }) {
  // A terminal sends its signals to the whole process group.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  process.on('disconnect', () => process.exit(code))
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', onRejection)
  handle({
    start: (/** @type {any} */ start) => {
      run(start).catch(error => fail(String(error?.message ?? error)))
    },
  })
  send({ type: 'ready' })
}

/**
 * Opens the log. The primary directs it to standard output or to itself.
 * @param {ChildStart} start
 * @param {object} fields
 */
export function openLog({ config, terminal, quiet }, fields) {
  const output = new LogOutput(config.log, terminal)
  const direct = (/** @type {ToWorker['log']} */ { shown, forward }) => {
    output.shown = shown
    output.forward = forward ? line => send({ type: 'log', line }) : null
  }
  direct({ shown: !quiet, forward: quiet })
  handle({ log: direct })
  return { output, log: createLog(config.log, output, fields) }
}

/**
 * Takes part in reloads (primary/config-switch.js). Call it before any `await`: reloads must also reach a starting
 * process.
 * @param {(next: ToWorker['prepare']) => void | Promise<void>} prepare rejects an unusable configuration
 * @param {() => void} commit
 */
export function switchConfig(prepare, commit) {
  handle({
    async prepare(next) {
      /** @type {string | null} */
      let error = null
      try {
        await prepare(next)
      } catch (thrown) {
        error = String(thrown?.message ?? thrown)
      }
      send({ type: 'switched', id: next.id, error })
    },
    commit({ id }) {
      commit()
      send({ type: 'switched', id, error: null })
    },
  })
}
