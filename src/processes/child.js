// What a worker and the queue process share: each is forked by the primary, which decides when it ends.

import { url as inspectorUrl } from 'node:inspector'
import { createLog, LogOutput } from '../base/log.js'
import { receive } from './messages.js'

/** @import { WorkerSample } from '../metrics/schema.js' */
/** @import { ChildStart, FromQueues, FromWorker, Handlers, Message, QueuesSample, ToQueues, ToWorker } from './messages.js' */

/**
 * Sends a message to the primary.
 * @param {Message<FromWorker> | Message<FromQueues>} message
 * @param {() => void} [done] called when the message has left, or cannot be sent
 */
export const send = (message, done) => process.send?.(message, undefined, undefined, done)

/** @param {WorkerSample | QueuesSample} sample of a second */
export function sendSample(sample) {
  const message = { type: 'sample', sample, debugged: inspectorUrl() !== undefined }
  send(/** @type {Message<Pick<FromWorker, 'sample'>>} */ (message))
}

/**
 * Handles messages of the primary, beside those handled already.
 * @param {Partial<Handlers<ToWorker>> | Partial<Handlers<ToQueues>>} handlers
 */
export const handle = handlers =>
  process.on('message', (/** @type {{type: string}} */ message) => receive(handlers, message))

/** Ends the process. @param {string} message the reason, which the primary logs */
function fail(message) {
  send({ type: 'failed', message }, () => process.exit(1))
}

/** Ends the process after a programming error, with its stack. @param {unknown} error */
export const crash = error => fail((error instanceof Error && error.stack) || String(error))

/**
 * Runs a child of the primary: it begins with the message `start`, and ends without its primary.
 * @template {ChildStart} Start
 * @param {(start: Start) => Promise<void>} run a rejection ends the process: its message is the reason
 * @param {object} options
 * @param {number} options.code exit code when the primary is gone
 * @param {(error: unknown) => void} [options.onRejection] of promises that nobody handles, by default the end of the
 *   process
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
 * The log of the process, which the primary directs to standard output or to itself.
 * @param {ChildStart} start
 * @param {object} fields of every line
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
 * Takes part in reloads (primary/config-switch.js). To be called before anything is awaited: a reload must reach a
 * process that is still starting.
 * @param {(next: ToWorker['prepare']) => void | Promise<void>} prepare rejects a configuration that cannot be used
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
