/** @import { Flag } from './args.js' */
/** @import { Questions } from './questions.js' */

/**
 * The process, as commands see it.
 * @typedef {object} Io
 * @property {Readonly<Record<string, string | undefined>>} env
 * @property {string} cwd
 * @property {(text: string) => void} stdout what would act on a terminal is escaped if it is one
 * @property {(text: string) => void} stderr such characters are always escaped
 * @property {boolean} terminal whether standard output is a terminal
 * @property {{stdout: (text: string) => void, stderr: (text: string) => void}} [raw] for text with colours, whose parts
 *   have been escaped
 * @property {() => Promise<Questions>} [questions] if both standard streams are a terminal
 * @typedef {object} Command
 * @property {string} name words after `halley`
 * @property {string} summary one line
 * @property {string} help text of `--help`
 * @property {Record<string, Flag>} flags
 * @property {number} [words] most words accepted beside flags; default 0
 * @property {(io: Io, flags: Record<string, any>) => Promise<number | undefined> | number | undefined} run exit code;
 *   undefined: the process goes on
 */

/** @type {Flag} */
export const CONFIG_FLAG = Object.freeze({ type: 'string', short: 'c' })
