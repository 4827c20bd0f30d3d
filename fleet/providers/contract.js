/** @import { Handle, LaunchConfig } from '../schema.js' */

// A provider launches drones. To add one, write a file (or folder) and a row in providers/index.js.
//
// A provider MUST
//   - write nothing and launch nothing in `plan`, also used by `--dry-run`;
//   - tag all launched resources with the run, so that `find` works in another process after a crash;
//   - ensure that everything it launches ends without the controller;
//   - list in LaunchError the drones that run after a partial launch: the caller keeps or stops them;
//   - accept `stop` for stopped drones.
// It MUST NOT end the process, write to the terminal or prompt.

/**
 * @typedef {object} LaunchPlan
 * @property {string[]} lines everything to launch, to print
 * @property {{hourly: number, currency: string, note: string} | null} price of all drones; null: free
 * @property {any} details the provider's own
 * @typedef {{dir: string, flags: Record<string, any>}} Options folder for its files; its command-line flags, by name
 * @typedef {Options & {drones: LaunchConfig[]}} LaunchOptions
 * @typedef {object} Provider
 * @property {string} name
 * @property {string} help lines about its flags, for `--help`
 * @property {Record<string, import('../../src/cli/args.js').Flag>} flags
 * @property {(options: LaunchOptions) => Promise<LaunchPlan>} plan
 * @property {(plan: LaunchPlan, onProgress: (text: string) => void) => Promise<Handle[]>} launch
 * @property {(runs: string[] | 'all', options: Options) => Promise<Handle[]>} find existing drones, orphans included
 * @property {(handles: Handle[], options: Options, onProgress: (text: string) => void) => Promise<void>} stop also
 *   deletes resources of a run without drones (a security group)
 * @property {(handle: Handle, options: Options) => Promise<Handle>} restart
 * @property {boolean} [autoRelaunch] the controller relaunches dead drones, which is free and immediate
 * @property {boolean} [sharedHost] its drones share one host: each needs its own status port
 * @property {string} [bind] listen host of the controller; default 127.0.0.1
 * @property {(count: number) => Promise<string[]>} [listen] host:port of listening drones; default 0.0.0.0:7410
 */

/** A provider error for the user; the message is one line. */
export class ProviderError extends Error {}

export class LaunchError extends ProviderError {
  /** @param {string} message one line @param {Handle[]} launched running drones */
  constructor(message, launched) {
    super(message)
    this.launched = launched
  }
}
