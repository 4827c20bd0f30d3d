import { byId, plural } from './dom.js'

const CHANNELS = ['demo:room', 'demo:vitals']

const { uniSse = '' } = document.documentElement.dataset

/** A plain EventSource without the SDK, opened on demand: over HTTP/1.1 a browser has six connections per host. */
export class Listener {
  #button = byId('listen-toggle')
  #text = byId('listen-text')
  /** @type {EventSource | undefined} */
  #source
  #events = 0

  constructor() {
    if (uniSse === '') byId('listener').remove()
    this.#button.addEventListener('click', () => {
      if (this.#source) this.#close()
      else this.#open()
    })
  }

  #open() {
    const subs = Object.fromEntries(CHANNELS.map(channel => [channel, {}]))
    const source = new EventSource(`${uniSse}?cf_connect=${encodeURIComponent(JSON.stringify({ subs }))}`)
    this.#source = source
    this.#events = 0
    this.#show('connecting', 'Asking for it.')
    source.onmessage = ({ data }) => this.#receive(data)
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.#close('The gateway refused it.')
      else this.#show('connecting', 'Gone; the browser asks again, from the last event on.')
    }
  }

  /** @param {string} text */
  #receive(text) {
    // A ping is an empty object.
    const { channel, pub } = JSON.parse(text)
    this.#events++
    const last = channel && pub ? ` · ${channel}${pub.offset ? ` at ${pub.offset}` : ''}` : ''
    this.#show('connected', `${plural(this.#events, 'event')}${last}`)
  }

  /** @param {string} text */
  #close(text = 'Closed.') {
    this.#source?.close()
    this.#source = undefined
    this.#show('', text)
  }

  /** @param {'connecting' | 'connected' | ''} state @param {string} text */
  #show(state, text) {
    byId('listener').dataset.state = state
    this.#button.textContent = this.#source ? 'Close it' : 'Open an EventSource'
    this.#text.textContent = text
  }
}
