import { EventEmitter } from 'node:events'

const OPENING = /\x1b(?:O|\[\[?|\[[0-?]+[ -/]*)?$/
/** Terminal reports that are not keys: attributes, cursor position, ends of pasted text. */
const REPORTS = /\x1b\[(?:[<-?][0-?]*[ -/]*[@-~]|\d+;\d+R|20[01]~)/g
/** A lone escape is the key after this time, ms. On a slow link the rest of a sequence may be late. */
const ESCAPE_WAIT = 50

/**
 * The input of blessed, which treats every chunk as whole keys. But a sequence may arrive in pieces, and a lone
 * escape is a key only if nothing follows.
 */
export class KeyInput extends EventEmitter {
  #rest = ''
  /** @type {NodeJS.Timeout | undefined} */
  #waiting

  /** @param {Buffer} bytes */
  write(bytes) {
    clearTimeout(this.#waiting)
    const text = this.#rest + bytes.toString('latin1')
    const end = text.search(OPENING)
    this.#rest = end < 0 ? '' : text.slice(end)
    this.#send(end < 0 ? text : text.slice(0, end))
    if (this.#rest !== '') this.#waiting = setTimeout(() => this.#flush(), ESCAPE_WAIT)
  }

  clear() {
    clearTimeout(this.#waiting)
    this.#rest = ''
  }

  #flush() {
    const rest = this.#rest
    this.#rest = ''
    // Half a sequence is not a key.
    if (rest === '\x1b') this.#send(rest)
  }

  /** @param {string} text */
  #send(text) {
    const keys = text.replace(REPORTS, '')
    if (keys !== '') this.emit('data', Buffer.from(keys, 'latin1'))
  }
}

/**
 * @typedef {object} BlessedKey
 * @property {string} [name] none for characters beyond letters
 * @property {string} full with `C-`, `M-` and `S-` for Ctrl, Alt and Shift
 * @property {boolean} [ctrl]
 * @property {boolean} [meta]
 * @property {boolean} [shift]
 */

/**
 * @param {string | undefined} character @param {BlessedKey} key
 * @returns {string} blessed's name, but a capital letter is itself; '' for a key that blessed reports twice
 */
export function nameOf(character, { name, full, ctrl, meta, shift }) {
  if (name === 'return') return ''
  if (name === 'linefeed') return 'enter'
  if (shift && !ctrl && !meta && name?.length === 1) return name.toUpperCase()
  return full ?? character ?? ''
}
