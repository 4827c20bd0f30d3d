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
  dialog.showModal()
  // The button tells, not `close`, which comes later: the next question may be there by then.
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
    // Without a button: Escape. It may be the end of the question before, while this one is asked.
    dialog.addEventListener('close', () => dialog.open || answer(false), { signal })
  })
}
