import { byId, inputById } from '../../web/dom.js'
import { reason } from './session.js'

/** @import { Session } from './session.js' */

export class Publish {
  #session
  #channel = inputById('publish-channel')
  #data = /** @type {HTMLTextAreaElement} */ (byId('publish-data'))
  #result = byId('publish-result')

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#data.addEventListener('input', () => this.#check())
    byId('publish-form').addEventListener('submit', event => {
      event.preventDefault()
      if (this.#check()) this.#send()
    })
  }

  /** @param {string} channel */
  choose(channel) {
    this.#channel.value = channel
    this.#data.focus()
    byId('publish-form').scrollIntoView({ block: 'center' })
  }

  /** @param {string} text @param {boolean} good */
  #say(text, good) {
    this.#result.textContent = text
    this.#result.className = good ? 'result' : 'result bad'
  }

  /** @returns {boolean} whether the data is JSON; shows the fault */
  #check() {
    let fault = ''
    try {
      JSON.parse(this.#data.value)
    } catch (error) {
      fault = /** @type {Error} */ (error).message
    }
    this.#data.setAttribute('aria-invalid', String(fault !== ''))
    this.#say(fault && `Not valid JSON: ${fault}`, false)
    return fault === ''
  }

  async #send() {
    const channel = this.#channel.value
    const send = /** @type {HTMLButtonElement} */ (byId('publish-send'))
    send.disabled = true
    try {
      // The original text: numbers beyond the precision of a double stay intact.
      const params = `{"channel":${JSON.stringify(channel)},"data":${this.#data.value}}`
      const { offset, epoch } = await this.#session.call('publish', params)
      this.#say(
        offset === undefined
          ? `Published to ${channel}.`
          : `Published to ${channel}, offset ${offset}, epoch ${epoch}.`,
        true,
      )
    } catch (error) {
      this.#say(`Not published: ${reason(error)}`, false)
    }
    send.disabled = false
  }
}
