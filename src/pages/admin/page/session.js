// The login of this tab, until it is closed, the token expires or the user logs out.

const KEY = 'halley-admin-token'
const prefix = document.documentElement.dataset.prefix ?? ''

/** A refusal by an endpoint. */
export class Refusal extends Error {
  /** @param {number} status HTTP @param {string} message */
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** @param {Response} answer */
async function refusalOf(answer) {
  const said = await answer.json().catch(() => null)
  return new Refusal(answer.status, said?.error ?? `the gateway answered with HTTP ${answer.status}`)
}

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
    throw await refusalOf(answer)
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
   * @param {string} method @param {object | string} [params] an object, or JSON text
   * @param {(text: string) => any} [parse] of the answer
   * @returns {Promise<any>} the result
   * @throws {Refusal | TypeError}
   */
  async call(method, params = {}, parse = JSON.parse) {
    const body = typeof params === 'string' ? params : JSON.stringify(params)
    const answer = await this.#fetch(method, { method: 'POST', body })
    return parse(await answer.text()).result
  }

  /**
   * @param {object} command of the stats stream @returns {Promise<string>} what it has done, '' if it does not say
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
}

/** @param {any} error of a call */
export const reason = error => (error instanceof Refusal ? error.message : 'the gateway cannot be reached')
