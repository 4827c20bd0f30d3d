// DOM helpers of the pages. User input is inserted as text, never as markup.

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`no element #${id}`)
  return element
}

/** @param {string} id */
export const inputById = id => /** @type {HTMLInputElement} */ (byId(id))

/** @param {string} id */
export const buttonById = id => /** @type {HTMLButtonElement} */ (byId(id))

/** @param {string} name @param {string} [className] @param {...(Node | string)} children */
export function make(name, className = '', ...children) {
  const element = document.createElement(name)
  if (className) element.className = className
  element.append(...children)
  return element
}

/**
 * A button, quiet and small by default.
 * @param {string} text @param {string} label for screen readers @param {() => void} onClick @param {string} [className]
 */
export function smallButton(text, label, onClick, className = 'quiet small') {
  const button = make('button', className, text)
  button.setAttribute('type', 'button')
  if (label !== '') button.setAttribute('aria-label', label)
  button.addEventListener('click', onClick)
  return button
}

/** @param {string} id of a form @param {() => void} submit */
export const onSubmit = (id, submit) =>
  byId(id).addEventListener('submit', event => {
    event.preventDefault()
    submit()
  })

/** Shows the outcome of an action. @param {string} id @param {string} text @param {boolean} [good] */
export function showResult(id, text, good = true) {
  byId(id).textContent = text
  byId(id).className = good ? 'result' : 'result bad'
}
