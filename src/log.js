import { pino } from 'pino'
import pretty from 'pino-pretty'

/**
 * JSON lines; on a terminal lines that a person reads.
 * @param {{level: string, file: string}} options of `log`
 * @param {boolean} terminal whether standard output is one
 * @param {object} [bindings] fields of every line
 * @returns {import('pino').Logger}
 */
export function createLog({ level, file }, terminal, bindings = {}) {
  const options = {
    level: level === 'none' ? 'silent' : level,
    base: bindings,
    timestamp: pino.stdTimeFunctions.isoTime,
  }
  if (file) return pino(options, pino.destination({ dest: file, append: true, sync: true }))
  if (terminal) {
    return pino(
      options,
      pretty({ sync: true, translateTime: 'HH:MM:ss.l', ignore: 'pid,hostname', singleLine: true }),
    )
  }
  return pino(options, pino.destination({ dest: 1, sync: true }))
}
