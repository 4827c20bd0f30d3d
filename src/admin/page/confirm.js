import { byId } from '../../demo/page/dom.js'

const dialog = /** @type {HTMLDialogElement} */ (byId('confirm'))

/**
 * Asks before something that cannot be taken back.
 * @param {{title: string, text: string, yes: string}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, yes }) {
  byId('confirm-title').textContent = title
  byId('confirm-text').textContent = text
  byId('confirm-yes').textContent = yes
  dialog.returnValue = 'no'
  dialog.showModal()
  return new Promise(resolve => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true })
  })
}
