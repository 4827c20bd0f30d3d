import { byId, inputById } from '../../web/dom.js'
import { reason } from './session.js'

/** @import { Session } from './session.js' */

/** @param {Session} session */
export function listenForLogin(session) {
  const key = inputById('login-key')
  const fault = byId('login-fault')
  const send = /** @type {HTMLButtonElement} */ (byId('login-send'))
  byId('login-form').addEventListener('submit', async event => {
    event.preventDefault()
    fault.textContent = ''
    send.disabled = true
    try {
      await session.logIn(key.value)
      key.value = ''
    } catch (error) {
      fault.textContent = `Not logged in: ${reason(error)}.`
      key.select()
    }
    send.disabled = false
  })
  byId('logout').addEventListener('click', () => session.logOut())
}
