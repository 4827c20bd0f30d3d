import { createRequire } from 'node:module'
import { pino } from 'pino'

/** @import { Logger } from 'pino' */

/** For pino-pretty: loading it takes 15 ms and few processes need it. */
const require = createRequire(import.meta.url)

/** Destination of a process's log lines: a file or standard output, and a forwarding function. */
export class LogOutput {
  /** Whether lines are written to standard output; a file always gets them. */
  shown = true
  /** @type {((line: string) => void) | null} gets each line as JSON text, with its line feed */
  forward = null
  #destination

  /**
   * Writes JSON lines; readable lines to a terminal.
   * @param {{file: string}} options of `log` @param {boolean} terminal whether standard output is one
   */
  constructor({ file }, terminal) {
    this.toFile = file !== ''
    if (file) this.#destination = pino.destination({ dest: file, append: true, sync: true })
    else if (terminal)
      this.#destination = /** @type {typeof import('pino-pretty')} */ (require('pino-pretty'))({
        sync: true,
        translateTime: 'HH:MM:ss.l',
        ignore: 'pid,hostname',
        singleLine: true,
      })
    else this.#destination = pino.destination({ dest: 1, sync: true })
  }

  /** @param {string} line called by pino */
  write(line) {
    if (this.shown || this.toFile) this.#destination.write(line)
    this.forward?.(line)
  }
}

/** @param {{level: string}} options of `log` @returns {string} pino's name */
export const levelOf = ({ level }) => (level === 'none' ? 'silent' : level)

/**
 * @param {{level: string, file: string}} options of `log` @param {LogOutput} output
 * @param {object} [bindings] fields of every line
 * @returns {Logger}
 */
export function createLog({ level }, output, bindings = {}) {
  return pino(
    {
      level: levelOf({ level }),
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    output,
  )
}
