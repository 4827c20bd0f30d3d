import { byId, make, plural } from './dom.js'

const CELLS = 60

/** Counts recovered publications of all watched channels. */
export class Recovery {
  #live = 0
  #recovered = 0
  /** Of the current reconnect. */
  #batch = 0
  #announced = false
  /** Time of the disconnect. */
  #away = 0
  #back = true
  /** The new transport, until its channels are subscribed. */
  #over = ''

  constructor() {
    byId('strip').replaceChildren(...Array.from({ length: CELLS }, () => make('li')))
  }

  /**
   * @param {import('./channel.js').Channel} channel
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
      this.#count(recovering)
      take(publication.data, recovering, publication)
    })
  }

  left() {
    if (this.#back) this.#away = Date.now()
    this.#back = false
  }

  /** @param {string} transport the new one, if it was changed while connected */
  switched(transport) {
    this.#over = transport
  }

  /** @param {boolean} recovered */
  #count(recovered) {
    if (recovered) {
      this.#recovered++
      this.#batch++
    } else this.#live++
    this.#cell(recovered ? 'recovered' : 'live')
    byId('live-total').textContent = this.#live.toLocaleString('en')
    byId('recovered-total').textContent = this.#recovered.toLocaleString('en')
  }

  /** @param {string} kind */
  #cell(kind) {
    const strip = byId('strip')
    strip.firstElementChild?.remove()
    strip.append(make('li', kind))
  }

  /** Reports once for all channels: they recover within one turn. */
  #announce() {
    if (this.#announced) return
    this.#announced = true
    setTimeout(() => {
      byId('recovery-text').textContent = this.#verdict()
      this.#over = ''
      this.#announced = false
      this.#batch = 0
      this.#back = true
    }, 300)
  }

  #verdict() {
    const seconds = Math.max(1, Math.round((Date.now() - this.#away) / 1000))
    const messages = plural(this.#batch, 'missed message')
    if (this.#over !== '') {
      return this.#batch === 0
        ? `Now over ${this.#over}, and nothing was missed on the way.`
        : `Now over ${this.#over}: ${messages} recovered, in order, each once.`
    }
    return this.#batch === 0
      ? 'Back again. Nothing had been published meanwhile.'
      : `Away for ${plural(seconds, 'second')}: ${messages} recovered, in order, each once.`
  }

  /** @param {string} channel */
  #lost(channel) {
    this.#back = true
    this.#over = ''
    this.#cell('lost')
    byId('recovery-text').textContent =
      `Away too long: the history of ${channel} no longer reaches back, and the gateway said so (recovered: false).`
  }
}
