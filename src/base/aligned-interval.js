// Intervals that share their wake-ups. Waking a process costs more than most periodic jobs do, so jobs whose periods
// are multiples of one another run together, at multiples of their period on the wall clock.

/**
 * As `setInterval`, without keeping the process alive. The first call comes after 0.2 to 1.2 periods, and so does the next
 * one when the wall clock was set: not for counts that belong to a whole period.
 * @param {() => void} call @param {number} ms
 * @returns {() => void} stops it
 */
export function setAlignedInterval(call, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const wait = () => {
    timer = setTimeout(run, timeToMultiple(ms)).unref()
  }
  const run = () => {
    wait()
    call()
  }
  wait()
  return () => clearTimeout(timer)
}

/**
 * ms until the wall clock shows a multiple of `ms`. A multiple less than a fifth of `ms` away is left out: the timer for
 * it was early by less than a millisecond, or the one before it came late.
 * @param {number} ms @param {number} [now] unix ms
 */
export function timeToMultiple(ms, now = Date.now()) {
  const rest = ms - (now % ms)
  return rest < ms / 5 ? rest + ms : rest
}
