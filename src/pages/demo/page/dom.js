// Helpers of all parts of the page. Text is inserted as text: no user input becomes markup.

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id)
  if (!element) throw new Error(`no element #${id}`)
  return element
}

/** @param {string} id */
export const canvasById = id => /** @type {HTMLCanvasElement} */ (byId(id))

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

const REDUCED = matchMedia('(prefers-reduced-motion: reduce)')
const DARK = matchMedia('(prefers-color-scheme: dark)')

export const wantsMotion = () => !REDUCED.matches

/** @param {() => void} react */
export const onThemeChange = react => DARK.addEventListener('change', react)

/** @param {string} name */
export const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/**
 * Makes a canvas as sharp as the screen.
 * @param {HTMLCanvasElement} canvas
 * @returns {{context: CanvasRenderingContext2D, width: number, height: number}} sizes in CSS pixels
 */
export function fitCanvas(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas
  const ratio = devicePixelRatio || 1
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)]
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w
    canvas.height = h
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'))
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return { context, width, height }
}

const GB = 2 ** 30
const MB = 2 ** 20

/** @param {number} bytes */
export const gigabytes = bytes => (bytes / GB).toFixed(bytes < 100 * GB ? 1 : 0)

/** @param {number} bytes */
export const megabytes = bytes => `${Math.round(bytes / MB)} MB`

/** @param {number} bytes */
export function transferred(bytes) {
  if (bytes < 1000) return `${bytes} B`
  const [share, unit] = bytes < 1000 * 1024 ? [bytes / 1024, 'KB'] : [bytes / MB, 'MB']
  return `${share.toFixed(share < 100 ? 1 : 0)} ${unit}`
}

/** @param {number} ms */
export const milliseconds = ms => (ms < 10 ? ms.toFixed(1) : Math.round(ms).toString())

/** @param {number} count @param {string} noun */
export const plural = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
