import { setTimeout as sleep } from 'node:timers/promises'

/** A server that has just started still allocates and compiles, ms. */
export const SETTLE = 1_000
/** Memory is looked at so often, ms: garbage waits for its collector, so the least of several looks counts. */
const LOOK_EVERY = 500

/** @param {number} value @param {number} digits */
export const rounded = (value, digits) => Number(value.toFixed(digits))

/** @param {number} ms */
export const toMs = ms => rounded(ms, 2)

/**
 * @param {import('./deployment.js').Deployment} deployment
 * @param {number} seconds
 * @returns {Promise<number>} bytes, the least of that time
 */
export async function leastMemory(deployment, seconds) {
  let least = Infinity
  for (let waited = 0; waited < seconds * 1e3; waited += LOOK_EVERY) {
    await sleep(LOOK_EVERY)
    least = Math.min(least, deployment.memory())
  }
  return least
}
