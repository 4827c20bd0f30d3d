/** @import { Flag } from './args.js' */
/** @import { Questions } from './questions.js' */

/**
 * The process.
 * @typedef {object} Io
 * @property {Readonly<Record<string, string | undefined>>} env
 * @property {string} cwd
 * @property {(text: string) => void} stdout escapes control characters on a terminal
 * @property {(text: string) => void} stderr always escapes them
 * @property {boolean} terminal standard output is one
 * @property {{stdout: (text: string) => void, stderr: (text: string) => void}} [raw] for pre-escaped coloured text
 * @property {() => Promise<Questions>} [questions] on a terminal
 *
 * @typedef {object} Command
 * @property {string} name words after `halley`
 * @property {string} summary one line
 * @property {string} help
 * @property {Record<string, Flag>} flags
 * @property {number} [words] maximum; default 0
 * @property {(io: Io, flags: Record<string, any>) => Promise<number | undefined> | number | undefined} run exit code;
 *   undefined: keeps running
 */

/** @type {Flag} */
export const CONFIG_FLAG = Object.freeze({ type: 'string', short: 'c' })
