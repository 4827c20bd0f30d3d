/**
 * @returns {number} whole microseconds on the machine's monotonic clock, which every process reads alike
 */
export function nowMicros() {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1e6 + Math.floor(nanos / 1e3)
}

/**
 * @param {number} ms
 * @returns {Promise<void>}
 */
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

/**
 * @param {number} micros a moment of `nowMicros`
 * @returns {Promise<void>}
 */
export const sleepUntil = micros => sleep(Math.max(0, (micros - nowMicros()) / 1e3))
