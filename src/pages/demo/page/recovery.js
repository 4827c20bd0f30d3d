import { plural, whole } from '../../../base/format.js'
import { byId, make } from '../../web/dom.js'

const CELLS = 60

/** Counts and reports the recovered publications of all watched channels. */
export class Recovery {
  #totals = { live: 0, recovered: 0 }
  /** Recovered by the current reconnect. */
  #batch = 0
  #announced = false
  /** Unix ms of the disconnect. 0: connected */
  #leftAt = 0
  /** New transport, until its channels are subscribed. */
  #newTransport = ''

  constructor() {
    byId('strip').replaceChildren(...Array.from({ length: CELLS }, () => make('li')))
  }

  /**
   * @param {ReturnType<import('./connection.js').Connection['channel']>} channel
   * @param {(data: any, recovered: boolean, publication: import('centrifuge').PublicationContext) => void} take
   */
  watch(channel, take) {
    let recovering = false
    channel.on('subscribed', ({ wasRecovering, recovered }) => {
      if (!wasRecovering) return
      if (!recovered) return this.#lost(channel.name)
      // The SDK emits recovered publications right after this event, before new ones.
      recovering = true
      setTimeout(() => {
        recovering = false
      })
      this.#announce()
    })
    channel.on('publication', publication => {
      const kind = recovering ? 'recovered' : 'live'
      this.#totals[kind]++
      if (recovering) this.#batch++
      byId(`${kind}-total`).textContent = whole(this.#totals[kind])
      this.#cell(kind)
      take(publication.data, recovering, publication)
    })
  }

  left() {
    this.#leftAt ||= Date.now()
  }

  /** @param {string} transport the new one, if changed while connected */
  switched(transport) {
    this.#newTransport = transport
  }

  /** @param {string} kind */
  #cell(kind) {
    byId('strip').firstElementChild?.remove()
    byId('strip').append(make('li', kind))
  }

  /** Reports once for all channels: they recover within one turn. */
  #announce() {
    if (this.#announced) return
    this.#announced = true
    setTimeout(() => {
      this.#back(this.#summary())
      this.#announced = false
      this.#batch = 0
    }, 300)
  }

  /** @param {string} text */
  #back(text) {
    byId('recovery-text').textContent = text
    this.#newTransport = ''
    this.#leftAt = 0
  }

  #summary() {
    const messages = `${plural(this.#batch, 'missed message')} recovered, in order, each once.`
    if (this.#newTransport !== '')
      return `Now over ${this.#newTransport}${this.#batch === 0 ? ', no messages missed.' : `: ${messages}`}`
    if (this.#batch === 0) return 'Reconnected. Nothing was published meanwhile.'
    const seconds = Math.max(1, Math.round((Date.now() - this.#leftAt) / 1000))
    return `Offline for ${plural(seconds, 'second')}: ${messages}`
  }

  /** @param {string} channel */
  #lost(channel) {
    this.#cell('lost')
    this.#back(
      `Offline too long: the history of ${channel} no longer has the missed messages (recovered: false).`,
    )
  }
}
