/** @import { Sessions } from '../../clients/session/sessions.js' */

/** Time from a change until it is sent, ms. */
const DELAY_MS = 20

/**
 * Sends the number of open sessions after each change, for the other workers, while there is a limit. An idle worker
 * needs no timer for it.
 * @param {Sessions} sessions @param {() => number} limit of connections; 0 = none @param {(count: number) => void} send
 * @returns {() => void} to be called when the limit may have changed
 */
export function sendConnectionCount(sessions, limit, send) {
  let sent = 0
  /** @type {NodeJS.Timeout | null} */
  let timer = null
  const sendNow = () => {
    timer = null
    if (sessions.open !== sent && limit() > 0) send((sent = sessions.open))
  }
  const changed = () => {
    if (timer === null && limit() > 0) timer = setTimeout(sendNow, DELAY_MS)
  }
  sessions.onOpenChange = changed
  return changed
}
