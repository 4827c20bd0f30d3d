import { createRequire } from 'node:module'
import { pino } from 'pino'

/** For what few processes need: loading it takes each of them 15 ms. */
const require = createRequire(import.meta.url)

/**
 * Where the lines of one process's log go: to a file or standard output, and to whoever asks for them besides.
 */
export class LogOutput {
  /** Whether lines go to file or standard output. */
  shown = true
  /** @type {((line: string) => void) | null} gets each line as JSON text, with its line feed */
  forward = null
  #destination

  /**
   * JSON lines; on a terminal lines that a person reads.
   * @param {{file: string}} options of `log`
   * @param {boolean} terminal whether standard output is one
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

/**
 * @param {{level: string, file: string}} options of `log`
 * @param {LogOutput} output
 * @param {object} [bindings] fields of every line
 * @returns {import('pino').Logger}
 */
export function createLog({ level }, output, bindings = {}) {
  return pino(
    {
      level: level === 'none' ? 'silent' : level,
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    output,
  )
}
