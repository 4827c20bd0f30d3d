import { byId, inputById, make, transferred } from './dom.js'
import { keepTransport, readTransport, transports } from './transports.js'

/** @import { Transport } from './transports.js' */

const REDRAW_MS = 250

/** @param {Transport} transport */
const label = ({ name, codec }) => `${name} · ${codec}`

/** The available transports, the current one, and its traffic. */
export class TransportSwitch {
  #connection
  #recovery
  /** @type {Transport | undefined} the one in use */
  #transport
  #began = 0
  #timer = 0

  /**
   * @param {import('./connection.js').Connection} connection with all its channels; need not be open yet
   * @param {import('./recovery.js').Recovery} recovery
   */
  constructor(connection, recovery) {
    this.#connection = connection
    this.#recovery = recovery
    connection.on('connecting', () => {
      this.#began = performance.now()
      byId('connect-time').textContent = '–'
    })
    connection.on('connected', () => {
      byId('connect-time').textContent = `${Math.round(performance.now() - this.#began)} ms`
    })
    connection.onTraffic = () => {
      // Pointers arrive by the dozen a second: too fast to read.
      this.#timer ||= window.setTimeout(() => this.#count(), REDRAW_MS)
    }
    byId('transports').append(...transports.map(transport => this.#row(transport)))
    const chosen = readTransport()
    if (chosen) this.#go(chosen)
    else this.#showNone()
  }

  /** @param {Transport} transport */
  #row(transport) {
    const { id, name, codec, how } = transport
    const input = /** @type {HTMLInputElement} */ (make('input'))
    input.type = 'radio'
    input.name = 'transport'
    input.id = `transport-${id}`
    input.addEventListener('change', () => this.#go(transport))
    const words = make('span', 'words', make('span', 'way', name), make('span', 'how', how))
    return make('label', 'transport', input, words, make('span', 'codec', codec))
  }

  /** @param {Transport} transport */
  async #go(transport) {
    const { id, unit } = transport
    const online = this.#connection.state !== 'disconnected'
    inputById(`transport-${id}`).checked = true
    try {
      if (!(await this.#connection.use(transport))) return
    } catch (error) {
      const before = this.#transport
      if (before) inputById(`transport-${before.id}`).checked = true
      // A reload may request one that cannot be loaded now.
      else if (transport !== transports[0]) await this.#go(transports[0])
      return this.#showError(`${label(transport)} is not to be had: ${error.message}.`)
    }
    this.#transport = transport
    keepTransport(transport)
    if (online) this.#recovery.switched(label(transport))
    byId('link-transport').textContent = label(transport)
    byId('traffic-unit').textContent = unit
    this.#count()
  }

  #count() {
    clearTimeout(this.#timer)
    this.#timer = 0
    const { count, bytes } = this.#connection.meter
    byId('traffic-count').textContent = count.toLocaleString('en')
    byId('traffic-bytes').textContent = transferred(bytes)
  }

  #showNone() {
    byId('transports').closest('article')?.remove()
    byId('link').dataset.state = 'disconnected'
    byId('link-state').textContent = 'disconnected'
    byId('link-transport').remove()
    byId('offline').setAttribute('disabled', '')
    this.#showError('The gateway has no transport open that this page can use: all of them are switched off.')
  }

  /** @param {string} text */
  #showError(text) {
    const notice = byId('notice')
    notice.textContent = text
    notice.hidden = false
  }
}
