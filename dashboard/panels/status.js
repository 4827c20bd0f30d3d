import { duration } from '../../src/base/format.js'
import { isStale } from '../picture.js'
import { statusOf, waitingOf } from '../view/panels.js'

/** @import { Panel, State } from '../state.js' */

/** Why the figures are old. @type {Panel} */
export const status = statusOf(isStale, (state, time) => [
  `${staleReason(state)}; figures of ${time}`,
  state.link.state === 'connecting' ? 'warn' : 'bad',
])

/** @param {State} state @returns {string} */
function staleReason({ link, receivedAt, now }) {
  switch (link.state) {
    case 'open':
      return `no data for ${duration(now - receivedAt)}: the gateway's primary process is stuck or stopped`
    case 'refused':
      return link.text
    case 'lost':
      return `gateway gone, retrying for ${duration(now - link.since)} (${link.text})`
    case 'connecting':
      return 'connecting'
  }
}

/** @type {Record<import('../source/link.js').LinkState, string>} */
const STYLES = { connecting: 'label', open: 'label', lost: 'warn', refused: 'bad' }

/** The page before the first figures. @type {Panel} */
export const waiting = waitingOf('Halley', state => {
  const { link, now } = state
  const style = STYLES[link.state]
  if (link.state === 'open') return ['connected; the first figures come within a second', style]
  if (link.state === 'lost') return [`${link.text}; retrying for ${duration(now - link.since)}`, style]
  return [staleReason(state), style]
})
