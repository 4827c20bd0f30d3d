import { statusOf, waitingOf } from '../../../dashboard/view/panels.js'
import { duration } from '../../../src/base/format.js'
import { isStale } from '../picture.js'

/** Why the figures are old. @type {import('../state.js').Panel} */
export const status = statusOf(isStale, (state, time) => [staleReason(state, time), 'bad'])

/**
 * @param {import('../state.js').State} state with old figures
 * @param {string} time of the figures
 * @returns {string}
 */
function staleReason({ lost, receivedAt, now }, time) {
  if (lost === null)
    return `no data for ${duration(now - receivedAt)}: controller stuck or stopped; figures of ${time}`
  // The text of NoFleetError.
  if (/^no fleet is in/.test(lost.reason))
    return `the fleet was stopped ${duration(now - lost.since)} ago; figures of ${time}`
  // The beginning of the text says it already.
  const reason = lost.reason === '' || /^the controller has/.test(lost.reason) ? '' : ` (${lost.reason})`
  return `controller gone for ${duration(now - lost.since)}, retrying; figures of ${time}${reason}`
}

/** The page before the first figures. @type {import('../state.js').Panel} */
export const waiting = waitingOf('halley fleet', ({ lost, now, receivedAt }) => {
  const waited = duration(now - receivedAt)
  if (lost === null)
    return [`the first figures come within a second${now - receivedAt > 2000 ? ` (${waited})` : ''}`, 'label']
  return [
    `no controller for ${duration(now - lost.since)}${lost.reason === '' ? '' : `: ${lost.reason}`}`,
    'warn',
  ]
})
