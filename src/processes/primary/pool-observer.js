/** @import { WorkerProcess } from './worker-process.js' */

/**
 * @typedef {{reason: string, died: boolean}} WorkerEnd `died`: while it served clients, or instead of beginning to
 *
 * @typedef {object} PoolObserver receives worker events
 * @property {(process: WorkerProcess) => void} starting
 * @property {(process: WorkerProcess) => void} listening
 * @property {(process: WorkerProcess) => void} draining its successor listens
 * @property {(process: WorkerProcess, end: WorkerEnd) => void} ended
 * @property {(process: WorkerProcess, message: any) => void} message of a type unknown to the pool
 */

/** @type {PoolObserver} */
export const NO_OBSERVER = Object.freeze({
  starting() {},
  listening() {},
  draining() {},
  ended() {},
  message() {},
})
