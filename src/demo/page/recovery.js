import { byId, make, plural } from './dom.js'

const CELLS = 60

/**
 * What was missed and came after all: counted over all channels that it watches.
 */
export class Recovery {
  #live = 0
  #recovered = 0
  /** Of the reconnect under way. */
  #batch = 0
  #announced = false
  #away = 0

  constructor() {
    byId('strip').replaceChildren(...Array.from({ length: CELLS }, () => make('li')))
  }

  /**
   * @param {import('centrifuge').Subscription} subscription
   * @param {(data: any, recovered: boolean, publication: import('centrifuge').PublicationContext) => void} take
   */
  watch(subscription, take) {
    let recovering = false
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      if (!wasRecovering) return
      if (!recovered) return this.#lost(subscription.channel)
      // The SDK hands over what was recovered right after this event, before anything else can come in.
      recovering = true
      setTimeout(() => {
        recovering = false
      })
      this.#announce()
    })
    subscription.on('publication', publication => {
      this.#count(recovering)
      take(publication.data, recovering, publication)
    })
  }

  /** The connection is gone. */
  left() {
    this.#away ||= Date.now()
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

  /** Says it once for all channels, which come back within one turn of the connection. */
  #announce() {
    if (this.#announced) return
    this.#announced = true
    setTimeout(() => {
      const seconds = Math.max(1, Math.round((Date.now() - this.#away) / 1000))
      byId('recovery-text').textContent =
        this.#batch === 0
          ? 'Back again. Nothing had been published meanwhile.'
          : `Away for ${plural(seconds, 'second')}: ${plural(this.#batch, 'missed message')} recovered, in order, each once.`
      this.#announced = false
      this.#batch = 0
      this.#away = 0
    }, 300)
  }

  /** @param {string} channel */
  #lost(channel) {
    this.#away = 0
    this.#cell('lost')
    byId('recovery-text').textContent =
      `Away too long: the history of ${channel} no longer reaches back, and the gateway said so (recovered: false).`
  }
}
