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
  #leftAt = 0
  #isBack = true
  /** The new transport, until its channels are subscribed. */
  #newTransport = ''

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
    if (this.#isBack) this.#leftAt = Date.now()
    this.#isBack = false
  }

  /** @param {string} transport the new one, if it was changed while connected */
  switched(transport) {
    this.#newTransport = transport
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
      byId('recovery-text').textContent = this.#summary()
      this.#newTransport = ''
      this.#announced = false
      this.#batch = 0
      this.#isBack = true
    }, 300)
  }

  #summary() {
    const seconds = Math.max(1, Math.round((Date.now() - this.#leftAt) / 1000))
    const messages = plural(this.#batch, 'missed message')
    if (this.#newTransport !== '') {
      return this.#batch === 0
        ? `Now over ${this.#newTransport}, and nothing was missed on the way.`
        : `Now over ${this.#newTransport}: ${messages} recovered, in order, each once.`
    }
    return this.#batch === 0
      ? 'Back again. Nothing had been published meanwhile.'
      : `Away for ${plural(seconds, 'second')}: ${messages} recovered, in order, each once.`
  }

  /** @param {string} channel */
  #lost(channel) {
    this.#isBack = true
    this.#newTransport = ''
    this.#cell('lost')
    byId('recovery-text').textContent =
      `Away too long: the history of ${channel} no longer reaches back, and the gateway said so (recovered: false).`
  }
}
