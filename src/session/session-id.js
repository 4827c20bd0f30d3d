import { createClientIds } from './client-id.js'

/**
 * Makes session ids: UUIDs, which act as a secret, and which end with the index of the worker that holds the session, so that
 * any other worker finds it.
 * @param {number} worker below 65,536
 * @returns {() => string}
 */
export function createSessionIds(worker) {
  const next = createClientIds()
  const end = worker.toString(16).padStart(4, '0')
  return () => flat(next(), end)
}

const text = Buffer.alloc(36)

/**
 * One string without parts: thousands of sessions keep theirs.
 * @param {string} id
 * @param {string} end
 */
function flat(id, end) {
  text.write(id, 0, 'latin1')
  text.write(end, 32, 'latin1')
  return text.toString('latin1')
}

/**
 * @param {string} sessionId of whatever form
 * @returns {number} index of the worker that holds the session if there is one, -1 if it cannot be the id of any
 */
export function workerOf(sessionId) {
  return /^[0-9a-f-]{32}[0-9a-f]{4}$/.test(sessionId) ? Number.parseInt(sessionId.slice(32), 16) : -1
}
