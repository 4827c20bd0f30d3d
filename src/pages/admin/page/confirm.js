import { byId } from '../../web/dom.js'

const dialog = /** @type {HTMLDialogElement} */ (byId('confirm'))

/**
 * Confirms an irreversible action.
 * @param {{title: string, text: string, yes: string}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, yes }) {
  byId('confirm-title').textContent = title
  byId('confirm-text').textContent = text
  byId('confirm-yes').textContent = yes
  dialog.showModal()
  // The button decides, not `close`, which comes later: the next question may be open by then.
  return new Promise(resolve => {
    const asked = new AbortController()
    const { signal } = asked
    /** @param {boolean} sure */
    const answer = sure => {
      asked.abort()
      resolve(sure)
    }
    dialog.addEventListener(
      'submit',
      event => {
        const button = /** @type {HTMLButtonElement | null} */ (event.submitter)
        answer(button?.value === 'yes')
      },
      { signal },
    )
    // Closed by Escape. The event may belong to the previous question: then the dialog is open.
    dialog.addEventListener('close', () => dialog.open || answer(false), { signal })
  })
}
