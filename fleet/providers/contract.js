// A provider launches drones somewhere. One file (or folder) and one row in providers/index.js add one.
//
// A provider MUST
//   - write nothing and launch nothing in `plan`, which is what `--dry-run` prints;
//   - mark what it launches with the run, so that `find` of another process sees it, also after this one was killed;
//   - see to it that what it launches ends by itself, whatever happens to the controller;
//   - say in LaunchError which drones are there when a launch fails halfway: the caller keeps them or takes them back;
//   - be able to stop what is stopped already.
// It MUST NOT end the process, write to the terminal, or ask anything.

/**
 * @typedef {import('../schema.js').Handle} Handle
 * @typedef {import('../schema.js').LaunchConfig} LaunchConfig
 */

/**
 * @typedef {object} LaunchPlan
 * @property {string[]} lines what would be launched, for people: all of it, exactly
 * @property {{hourly: number, currency: string, note: string} | null} price of all together; null: it costs nothing
 * @property {any} details the provider's own
 * @typedef {object} LaunchOptions
 * @property {LaunchConfig[]} drones one each
 * @property {Record<string, any>} flags the provider's own ones of the command line, by their names
 * @property {string} dir folder for its files
 * @typedef {object} Provider
 * @property {string} name
 * @property {string} help lines about its flags, for `--help`
 * @property {Record<string, import('../../src/cli/args.js').Flag>} flags
 * @property {(options: LaunchOptions) => Promise<LaunchPlan>} plan
 * @property {(plan: LaunchPlan, onProgress: (text: string) => void) => Promise<Handle[]>} launch
 * @property {(runs: string[] | 'all', options: {dir: string, flags: Record<string, any>}) => Promise<Handle[]>} find
 *   what is there, orphans too
 * @property {(handles: Handle[], options: {dir: string, flags: Record<string, any>}, onProgress: (text: string) =>
 *   void) => Promise<void>} stop also takes away what belongs to a run without drones (a security group)
 * @property {(handle: Handle, options: {dir: string, flags: Record<string, any>}) => Promise<Handle>} restart one that
 *   died
 * @property {boolean} [heals] the controller restarts by itself what died: it costs nothing, and is there at once.
 *   Else a person asks
 * @property {string} [bind] host that the controller listens on for its drones, unless told otherwise; default
 *   127.0.0.1
 * @property {(count: number) => Promise<string[]>} [listen] host:port that so many drones listen at, when they are to
 *   be dialled; without it each one listens at 0.0.0.0:7410
 */

/** An error of a provider that a person can act on; the message is one line. */
export class ProviderError extends Error {}

/** A launch that failed halfway. */
export class LaunchError extends ProviderError {
  /** @param {string} message one line @param {Handle[]} launched what is there */
  constructor(message, launched) {
    super(message)
    this.launched = launched
  }
}
