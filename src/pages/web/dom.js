// Helpers of the pages. Text is inserted as text: no user input becomes markup.

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`no element #${id}`)
  return element
}

/** @param {string} id */
export const inputById = id => /** @type {HTMLInputElement} */ (byId(id))

/** @param {string} name @param {string} [className] @param {...(Node | string)} children */
export function make(name, className = '', ...children) {
  const element = document.createElement(name)
  if (className) element.className = className
  element.append(...children)
  return element
}

/**
 * A quiet, small button.
 * @param {string} text @param {string} label for screen readers @param {() => void} onClick @param {string} [className]
 */
export function smallButton(text, label, onClick, className = 'quiet small') {
  const button = make('button', className, text)
  button.setAttribute('type', 'button')
  button.setAttribute('aria-label', label)
  button.addEventListener('click', onClick)
  return button
}
