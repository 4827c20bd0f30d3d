import { EventEmitter } from 'node:events'

const INCOMPLETE = /\x1b(?:O|\[\[?|\[[0-?]+[ -/]*)?$/
/** Terminal reports that are not keys: attributes, cursor position, ends of pasted text. */
const REPORTS = /\x1b\[(?:[<-?][0-?]*[ -/]*[@-~]|\d+;\d+R|20[01]~)/g
/** Timeout for the rest of an escape sequence, ms; then a lone escape is the key. */
const ESCAPE_TIMEOUT = 50

/**
 * The input of blessed, which expects complete keys in a chunk. Joins fragmented escape sequences and drops terminal
 * reports.
 */
export class KeyInput extends EventEmitter {
  #rest = ''
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {Buffer} bytes */
  write(bytes) {
    clearTimeout(this.#timer)
    const text = this.#rest + bytes.toString('latin1')
    const end = text.search(INCOMPLETE)
    this.#rest = end < 0 ? '' : text.slice(end)
    this.#send(end < 0 ? text : text.slice(0, end))
    if (this.#rest !== '') this.#timer = setTimeout(() => this.#flush(), ESCAPE_TIMEOUT)
  }

  clear() {
    clearTimeout(this.#timer)
    this.#rest = ''
  }

  #flush() {
    const rest = this.#rest
    this.#rest = ''
    // The start of a longer sequence is not a key.
    if (rest === '\x1b') this.#send(rest)
  }

  /** @param {string} text */
  #send(text) {
    const keys = text.replace(REPORTS, '')
    if (keys !== '') this.emit('data', Buffer.from(keys, 'latin1'))
  }
}

/** @typedef {{name?: string, full: string, ctrl?: boolean, meta?: boolean, shift?: boolean}} BlessedKey */

/** Blessed's name, or a capital letter; '': ignored. @param {string | undefined} character @param {BlessedKey} key */
export function keyName(character, { name, full, ctrl, meta, shift }) {
  // Blessed reports the enter key twice: as `return` and as `enter`.
  if (name === 'return') return ''
  if (name === 'linefeed') return 'enter'
  if (shift && !ctrl && !meta && name?.length === 1) return name.toUpperCase()
  return full ?? character ?? ''
}
