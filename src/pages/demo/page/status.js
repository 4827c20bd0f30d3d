import { byId } from './dom.js'

/**
 * The state of the connection in words, and the button that ends and renews it.
 * @param {import('./connection.js').Connection} connection @param {import('./recovery.js').Recovery} recovery
 */
export function showStatus(connection, recovery) {
  const link = byId('link')
  const button = /** @type {HTMLButtonElement} */ (byId('offline'))
  let connected = 0
  let tick = 0

  /** @param {'connecting' | 'connected' | 'disconnected'} state @param {string} detail */
  const show = (state, detail) => {
    link.dataset.state = state
    byId('link-state').textContent = state
    byId('link-detail').textContent = detail
    button.textContent = state === 'disconnected' ? 'Come back' : 'Go offline'
    byId('notice').hidden = true
  }

  /** Counts the seconds in an element that no screen reader announces. */
  const countSeconds = () => {
    const since = Date.now()
    tick = window.setInterval(() => {
      byId('link-detail').textContent = `by you, ${Math.round((Date.now() - since) / 1000)} s ago`
    }, 1000)
    byId('recovery-text').textContent = 'Offline. The charts stand still, the gateway goes on.'
  }

  connection.on('connecting', ({ code, reason }) => {
    clearInterval(tick)
    if (connected > 0) recovery.left()
    show('connecting', code === 0 ? '' : `${reason} (${code})`)
  })
  connection.on('connected', ({ client: id }) => {
    clearInterval(tick)
    connected++
    byId('reconnects').textContent = String(connected - 1)
    show('connected', id.slice(0, 8))
    link.title = `client id ${id}`
  })
  connection.on('disconnected', ({ code, reason }) => {
    recovery.left()
    show('disconnected', code === 0 ? 'by you' : `${reason} (${code})`)
    if (code === 0) return countSeconds()
    const notice = byId('notice')
    notice.textContent = `The gateway refused this page: ${reason} (code ${code}). The demo needs anonymous clients and the channels of the development profile.`
    notice.hidden = false
  })

  button.addEventListener('click', () => {
    if (connection.state === 'disconnected') connection.connect()
    else connection.disconnect()
  })
}
