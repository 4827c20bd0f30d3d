// Messages between the primary and its processes.

/** @import { NodeIdentity } from '../backends/api/context.js' */
/** @import { KnownKeys } from '../clients/auth/jwks.js' */

/**
 * @typedef {object} WorkerStart the first message to a worker
 * @property {'start'} type
 * @property {any} config
 * @property {number} number of the process, see workerNumber()
 * @property {number} index of its slot, 0 ...
 * @property {number} workers
 * @property {NodeIdentity} node
 * @property {boolean} terminal
 * @property {boolean} quiet log lines go to the primary, not to standard output
 * @property {string} cursorKey
 * @property {KnownKeys[]} keySets
 * @property {boolean} lifecycle whether the primary reads events for the lifecycle log
 * @property {boolean} watch whether it reads which handler of the hooks module blocks the worker
 */

export {}
