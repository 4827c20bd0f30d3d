// A provider launches drones somewhere. A new one is a file (or folder) and a row in providers/index.js.
//
// A provider MUST
//   - write nothing and launch nothing in `plan`, which is what `--dry-run` prints;
//   - mark what it launches with the run, so that `find` in another process sees it even if this one was killed;
//   - make everything it launches end by itself, whatever happens to the controller;
//   - list in LaunchError the drones that run after a partial launch: the caller keeps or stops them;
//   - accept `stop` for what is stopped already.
// It MUST NOT end the process, write to the terminal or prompt.

/**
 * @typedef {import('../schema.js').Handle} Handle
 * @typedef {import('../schema.js').LaunchConfig} LaunchConfig
 */

/**
 * @typedef {object} LaunchPlan
 * @property {string[]} lines everything that would be launched, to print
 * @property {{hourly: number, currency: string, note: string} | null} price of all together; null: free
 * @property {any} details the provider's own
 * @typedef {object} LaunchOptions
 * @property {LaunchConfig[]} drones one each
 * @property {Record<string, any>} flags the provider's command-line flags, by name
 * @property {string} dir folder for its files
 * @typedef {object} Provider
 * @property {string} name
 * @property {string} help lines about its flags, for `--help`
 * @property {Record<string, import('../../src/cli/args.js').Flag>} flags
 * @property {(options: LaunchOptions) => Promise<LaunchPlan>} plan
 * @property {(plan: LaunchPlan, onProgress: (text: string) => void) => Promise<Handle[]>} launch
 * @property {(runs: string[] | 'all', options: {dir: string, flags: Record<string, any>}) => Promise<Handle[]>} find
 *   existing drones, orphans included
 * @property {(handles: Handle[], options: {dir: string, flags: Record<string, any>}, onProgress: (text: string) =>
 *   void) => Promise<void>} stop also deletes what belongs to a run without drones (a security group)
 * @property {(handle: Handle, options: {dir: string, flags: Record<string, any>}) => Promise<Handle>} restart a dead
 *   one
 * @property {boolean} [autoRelaunch] the controller relaunches dead drones itself, because that is free and
 *   immediate; else the user does
 * @property {string} [bind] default host that the controller listens on for its drones; default 127.0.0.1
 * @property {(count: number) => Promise<string[]>} [listen] host:port for each of `count` drones that are to be
 *   dialled; default 0.0.0.0:7410
 */

/** An error of a provider that the user can act on; the message is one line. */
export class ProviderError extends Error {}

/** A partial launch. */
export class LaunchError extends ProviderError {
  /** @param {string} message one line @param {Handle[]} launched running drones */
  constructor(message, launched) {
    super(message)
    this.launched = launched
  }
}
