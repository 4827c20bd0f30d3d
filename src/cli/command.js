/** @import { Flag } from './args.js' */

/**
 * What a command gets from its process.
 * @typedef {object} Io
 * @property {Readonly<Record<string, string | undefined>>} env
 * @property {string} cwd
 * @property {(text: string) => void} stdout
 * @property {(text: string) => void} stderr
 * @typedef {object} Command
 * @property {string} name words behind `halley`
 * @property {string} summary one line
 * @property {string} help what `--help` prints
 * @property {Record<string, Flag>} flags
 * @property {number} [words] how many it takes beside its flags, at most; without it none
 * @property {(io: Io, flags: Record<string, any>) => Promise<number | undefined> | number | undefined} run exit code;
 *   undefined: the process goes on
 */

/** @type {Flag} */
export const CONFIG_FLAG = Object.freeze({ type: 'string', short: 'c' })
