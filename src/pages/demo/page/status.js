// The state of the connection, its traffic, the transport selection, and the button to disconnect and reconnect.

import { bytes, UNKNOWN, whole } from '../../../base/format.js'
import { byId, inputById, make } from '../../web/dom.js'
import { keepTransport, readTransport, transports } from './transports.js'

/** @import { Connection } from './connection.js' */
/** @import { Recovery } from './recovery.js' */
/** @import { Transport } from './transports.js' */

const TRAFFIC_MS = 250

/** @param {string} text */
function showNotice(text) {
  byId('notice').textContent = text
  byId('notice').hidden = false
}

/** @param {'connecting' | 'connected' | 'disconnected'} state @param {string} detail */
function showState(state, detail) {
  byId('link').dataset.state = state
  byId('link-state').textContent = state
  byId('link-detail').textContent = detail
  byId('offline').textContent = state === 'disconnected' ? 'Go online' : 'Go offline'
  byId('notice').hidden = true
}

/** @param {Connection} connection @param {Recovery} recovery */
export function showStatus(connection, recovery) {
  let connected = 0
  let began = 0
  let seconds = 0
  const took = byId('connect-time')
  connection.on('connecting', ({ code, reason }) => {
    clearInterval(seconds)
    began = performance.now()
    took.textContent = UNKNOWN
    if (connected > 0) recovery.left()
    showState('connecting', code === 0 ? '' : `${reason} (${code})`)
  })
  connection.on('connected', ({ client: id }) => {
    clearInterval(seconds)
    took.textContent = `${Math.round(performance.now() - began)} ms`
    byId('reconnects').textContent = `${connected++}`
    showState('connected', id.slice(0, 8))
    byId('link').title = `client id ${id}`
  })
  connection.on('disconnected', ({ code, reason }) => {
    recovery.left()
    if (code !== 0) {
      showState('disconnected', `${reason} (${code})`)
      return showNotice(
        `The gateway refused this page: ${reason} (code ${code}). The demo needs anonymous clients and the channels of the development profile.`,
      )
    }
    showState('disconnected', 'by you')
    byId('recovery-text').textContent = 'Offline. The charts pause, the gateway keeps running.'
    const since = Date.now()
    seconds = window.setInterval(() => {
      byId('link-detail').textContent = `by you, ${Math.round((Date.now() - since) / 1000)} s ago`
    }, 1000)
  })
  byId('offline').addEventListener('click', () => connection.toggle())
}

/** @param {Transport} transport */
const label = ({ name, codec }) => `${name} · ${codec}`

/** Lists the transports and connects over one. @param {Connection} connection @param {Recovery} recovery */
export function offerTransports(connection, recovery) {
  /** @type {Transport | undefined} the one in use */
  let current
  /** @param {Transport} transport */
  const check = ({ id }) => {
    inputById(`transport-${id}`).checked = true
  }
  /** @param {Transport} transport */
  const go = async transport => {
    const online = connection.state !== 'disconnected'
    check(transport)
    try {
      if (!(await connection.use(transport))) return
    } catch (error) {
      if (current) check(current)
      // A reload may request an unavailable transport.
      else if (transport !== transports[0]) await go(transports[0])
      return showNotice(`${label(transport)} is not available: ${error.message}.`)
    }
    current = transport
    keepTransport(transport)
    if (online) recovery.switched(label(transport))
    byId('link-transport').textContent = label(transport)
    byId('traffic-unit').textContent = transport.unit
  }

  for (const transport of transports) {
    const { id, name, codec, how } = transport
    const input = /** @type {HTMLInputElement} */ (make('input'))
    Object.assign(input, { type: 'radio', name: 'transport', id: `transport-${id}` })
    input.addEventListener('change', () => go(transport))
    const words = make('span', 'words', make('span', 'way', name), make('span', 'how', how))
    byId('transports').append(make('label', 'transport', input, words, make('span', 'codec', codec)))
  }
  const chosen = readTransport()
  if (chosen) {
    // Pointers arrive too fast to read.
    setInterval(() => {
      byId('traffic-count').textContent = whole(connection.traffic.count)
      byId('traffic-bytes').textContent = bytes(connection.traffic.bytes)
    }, TRAFFIC_MS)
    return go(chosen)
  }
  byId('transports').closest('article')?.remove()
  showState('disconnected', '')
  byId('link-transport').remove()
  byId('offline').setAttribute('disabled', '')
  showNotice('All transports that this page can use are disabled in the gateway.')
}
