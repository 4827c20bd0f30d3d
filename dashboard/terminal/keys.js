import { StringDecoder } from 'node:string_decoder'

/** The last character of a sequence -> key. */
const FINALS = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  E: 'begin',
  F: 'end',
  H: 'home',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
  Z: 'backtab',
  M: 'enter',
}

/** The number before `~` -> key; what is missing between are keys that nobody has. */
const NUMBERS = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'page-up',
  6: 'page-down',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
  17: 'f6',
  18: 'f7',
  19: 'f8',
  20: 'f9',
  21: 'f10',
  23: 'f11',
  24: 'f12',
}

const NAMED = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\x7f': 'backspace',
  '\b': 'backspace',
  ' ': 'space',
}

/** A whole sequence: ECMA-48 5.4; `[[A` are the function keys of the console of Linux. */
const SEQUENCE = /^\x1b\[(?:\[[A-E]|([0-?]*)[ -/]*([@-Z\\-~]))/
/** The beginning of one. */
const OPENING = /^\x1b\[\[?[0-?]*[ -/]*$/

/**
 * Bytes of a terminal -> names of keys. A sequence may come in pieces; a lone escape is a key only when nothing follows, and
 * that only time can tell (flush).
 */
export class KeyDecoder {
  #utf8 = new StringDecoder('utf8')
  #rest = ''

  /** Whether something began that may go on. */
  get pending() {
    return this.#rest !== ''
  }

  /**
   * @param {Buffer} bytes
   * @returns {string[]} names of keys
   */
  decode(bytes) {
    let text = this.#rest + this.#utf8.write(bytes)
    this.#rest = ''
    /** @type {string[]} */
    const keys = []
    while (text !== '') {
      const length = this.#take(text, keys)
      if (length === 0) {
        this.#rest = text
        break
      }
      text = text.slice(length)
    }
    return keys
  }

  /**
   * Nothing has followed for a while.
   *
   * @returns {string[]}
   */
  flush() {
    const rest = this.#rest
    this.#rest = ''
    if (rest === '\x1b') return ['escape']
    // Half a sequence is no key.
    return rest.length === 2 ? [`alt-${rest[1]}`] : []
  }

  /**
   * @param {string} text
   * @param {string[]} keys takes what was found
   * @returns {number} characters that are done with; 0: more has to come
   */
  #take(text, keys) {
    if (text[0] !== '\x1b') {
      const character = String.fromCodePoint(/** @type {number} */ (text.codePointAt(0)))
      keys.push(nameOf(character))
      return character.length
    }
    if (text.length === 1) return 0
    if (text[1] === '[') return takeSequence(text, keys)
    if (text[1] === 'O') {
      if (text.length === 2) return 0
      const name = FINALS[/** @type {keyof FINALS} */ (text[2])]
      if (name !== undefined) keys.push(name)
      return 3
    }
    if (text[1] === '\x1b') {
      keys.push('escape')
      return 1
    }
    const character = String.fromCodePoint(/** @type {number} */ (text.codePointAt(1)))
    keys.push(`alt-${nameOf(character)}`)
    return 1 + character.length
  }
}

/**
 * @param {string} text begins with CSI
 * @param {string[]} keys
 * @returns {number}
 */
function takeSequence(text, keys) {
  const found = SEQUENCE.exec(text)
  if (found === null) return OPENING.test(text) ? 0 : 2
  const [whole, parameters, final] = found
  if (final === undefined) {
    keys.push(`f${whole.charCodeAt(3) - 64}`)
    return whole.length
  }
  const [number, modifier = 1] = parameters.split(';').map(Number)
  const name =
    final === '~'
      ? NUMBERS[/** @type {keyof NUMBERS} */ (number)]
      : FINALS[/** @type {keyof FINALS} */ (final)]
  // Answers and reports of a terminal are no keys: what it says of the cursor ends like F3.
  const isKey = final === '~' || /^(?:1;\d+|1?)$/.test(parameters)
  if (name !== undefined && isKey) keys.push(modifiers(modifier) + name)
  return whole.length
}

/**
 * @param {number} modifier as xterm tells it: 1 and a bit for each key that is held
 * @returns {string}
 */
function modifiers(modifier) {
  const held = Math.max(0, modifier - 1)
  return `${held & 4 ? 'ctrl-' : ''}${held & 10 ? 'alt-' : ''}${held & 1 ? 'shift-' : ''}`
}

/**
 * @param {string} character
 * @returns {string}
 */
function nameOf(character) {
  const name = NAMED[/** @type {keyof NAMED} */ (character)]
  if (name !== undefined) return name
  const code = character.charCodeAt(0)
  if (code === 0) return 'ctrl-space'
  if (code < 27) return `ctrl-${String.fromCharCode(code + 96)}`
  if (code < 32) return `ctrl-${String.fromCharCode(code + 64)}`
  return character
}
