// The frame of every process that the primary forks: workers and the queue process. The primary decides when one ends.

/** Forwards a log line to the primary. @param {string} line */
export const forwardLine = line => process.send?.({ type: 'log', line })

/** Ends the process. @param {string} message the reason, which the primary logs */
function fail(message) {
  process.send?.({ type: 'failed', message }, undefined, undefined, () => process.exit(1))
}

/** Ends the process after a programming error, with its stack. @param {unknown} error */
export const crash = error => fail((error instanceof Error && error.stack) || String(error))

/**
 * Runs a child of the primary: it begins with the message `start`, and ends without its primary.
 * @param {(start: any) => Promise<void>} run a rejection ends the process: its message is the reason
 * @param {{code: number, onRejection?: (error: unknown) => void}} options `code`: exit code when the primary is gone;
 *   `onRejection`: of promises that nobody handles, by default the end of the process
 */
export function runChild(run, { code, onRejection = crash }) {
  // A terminal sends its signals to the whole process group.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  process.on('disconnect', () => process.exit(code))
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', onRejection)
  process.on('message', (/** @type {any} */ message) => {
    if (message.type === 'start') run(message).catch(error => fail(String(error?.message ?? error)))
  })
  process.send?.({ type: 'ready' })
}
