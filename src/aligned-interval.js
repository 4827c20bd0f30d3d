// Intervals that share their wake-ups. Waking a process costs more than most periodic jobs do, so jobs whose periods
// are multiples of one another run together, at multiples of their period on the wall clock.

/**
 * As `setInterval`, without keeping the process alive. A wall clock that is set moves the next call by a period at most.
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
 * ms until the wall clock shows a multiple of `ms`: the next one after it if less than a fifth of that is left, as after
 * a timer that was late, or early by less than a millisecond.
 * @param {number} ms @param {number} [now] unix ms
 */
export function timeToMultiple(ms, now = Date.now()) {
  const rest = ms - (now % ms)
  return rest < ms / 5 ? rest + ms : rest
}
