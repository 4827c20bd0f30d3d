// The login of this tab, until the tab closes, the token expires or the user logs out.

import { byId } from '../../web/dom.js'

const KEY = 'halley-admin-token'
const prefix = document.documentElement.dataset.prefix ?? ''

/** Error response of an endpoint. */
export class Refusal extends Error {
  /** @param {number} status HTTP @param {string} message */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** @param {any} error of a call */
export const reason = error => (error instanceof Refusal ? error.message : 'the gateway is unreachable')

/** Calls the admin endpoints. */
export class Session {
  #token = sessionStorage.getItem(KEY) ?? ''
  /** @type {(loggedIn: boolean) => void} */
  onChange = () => {}

  get loggedIn() {
    return this.#token !== ''
  }

  /** @param {string} path @param {RequestInit} init @returns {Promise<Response>} ok @throws {Refusal | TypeError} */
  async #fetch(path, init) {
    const token = this.#token
    const headers = token === '' ? undefined : { Authorization: `Bearer ${token}` }
    const answer = await fetch(`${prefix}/api/${path}`, { ...init, headers, cache: 'no-store' })
    if (answer.ok) return answer
    // Unless a new login has succeeded meanwhile.
    if (answer.status === 401 && token !== '' && token === this.#token) this.logOut()
    const body = await answer.json().catch(() => null)
    throw new Refusal(answer.status, body?.error ?? `the gateway responded with HTTP ${answer.status}`)
  }

  /** @param {string} password */
  async logIn(password) {
    this.#token = ''
    const answer = await this.#fetch('login', { method: 'POST', body: JSON.stringify({ password }) })
    const { token } = await answer.json()
    this.#token = token
    sessionStorage.setItem(KEY, token)
    this.onChange(true)
  }

  logOut() {
    this.#token = ''
    sessionStorage.removeItem(KEY)
    this.onChange(false)
  }

  /**
   * @param {string} method
   * @param {object | string} [params] an object, or JSON text
   * @param {(text: string) => any} [parse] of the body
   * @returns {Promise<any>} the result
   * @throws {Refusal | TypeError}
   */
  async call(method, params = {}, parse = JSON.parse) {
    const body = typeof params === 'string' ? params : JSON.stringify(params)
    const answer = await this.#fetch(method, { method: 'POST', body })
    return parse(await answer.text()).result
  }

  /**
   * @param {object} command of the stats stream
   * @returns {Promise<string>} its outcome or ''
   * @throws {Refusal | TypeError}
   */
  async command(command) {
    const answer = await this.#fetch('command', { method: 'POST', body: JSON.stringify(command) })
    const { error, text = '' } = await answer.json()
    if (error !== null) throw new Refusal(answer.status, error)
    return text
  }

  /** @param {AbortSignal} signal @returns {Promise<ReadableStream<Uint8Array>>} @throws {Refusal | TypeError} */
  async stream(signal) {
    const { body } = await this.#fetch('stream', { signal })
    return /** @type {ReadableStream<Uint8Array>} */ (body)
  }

  /**
   * Runs calls and shows a failure.
   * @param {string} id of the element for the error @param {string} what failed @param {() => Promise<void>} run
   * @returns {Promise<boolean>} whether they succeeded
   */
  async show(id, what, run) {
    byId(id).textContent = ''
    try {
      await run()
      return true
    } catch (error) {
      byId(id).textContent = `${what}: ${reason(error)}.`
      return false
    }
  }
}

/**
 * Confirms an irreversible action.
 * @param {{title: string, text: string, yes: string}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, yes }) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('confirm'))
  byId('confirm-title').textContent = title
  byId('confirm-text').textContent = text
  byId('confirm-yes').textContent = yes
  dialog.showModal()
  // Listens to the button, as `close` fires later: the next question may be open by then.
  return new Promise(resolve => {
    const answered = new AbortController()
    const { signal } = answered
    const answer = (/** @type {boolean} */ sure) => {
      answered.abort()
      resolve(sure)
    }
    const submit = (/** @type {SubmitEvent} */ { submitter }) =>
      answer(/** @type {HTMLButtonElement | null} */ (submitter)?.value === 'yes')
    dialog.addEventListener('submit', submit, { signal })
    // Closed by Escape. The event may belong to the previous question: then the dialog is open.
    dialog.addEventListener('close', () => dialog.open || answer(false), { signal })
  })
}
