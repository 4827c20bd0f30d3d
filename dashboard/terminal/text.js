// Untrusted text (a log line, a channel name) must never move the cursor, set colours or write from right to left.

import { CONTROLS } from '../../src/base/terminal-text.js'

/** Escape sequences, removed with their parameters: `ESC [31m` does not leave `[31m`. */
const ESCAPE_SEQUENCES =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)/g
/** Controls, invisible formatting, lone surrogates, line separators; width-changing variation selectors. */
const UNSAFE = new RegExp(String.raw`[${CONTROLS}\ufe00-\ufe0f\p{Cf}\p{Cs}]`, 'u')
const ALL_UNSAFE = new RegExp(UNSAFE, 'gu')
const INVISIBLE = /[\ufe00-\ufe0f\p{Cf}]/u
const BLANK = /[\t\n\v\f\r\u0085\p{Zl}\p{Zp}]/u
/** Takes no column: it is drawn over the previous character. */
const COMBINING_MARK = /[\p{Mn}\p{Me}\u1160-\u11ff]/u
/** East Asian Width W and F of Unicode, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
/** Letters of flags: one column each on most terminals. */
const REGIONAL_INDICATOR = /[\u{1f1e6}-\u{1f1ff}]/u
/** Only safe, single-width characters: the common case, cheap to test. */
export const SINGLE_WIDTH = /^[ -~\xa1-\xac\xae-\u02ff\u2500-\u25fc\u2800-\u28ff]*$/
/** Maximum combining marks per character; hostile text has hundreds. */
const MAX_MARKS = 3

const ASCII = new Map([
  ...replacements('─━═╌╴╶—–‐‑−', '-'),
  ...replacements('│┃║╎╵╷', '|'),
  ...replacements('┌┐└┘├┤┬┴┼╭╮╯╰╔╗╚╝╠╣╦╩╬', '+'),
  ...replacements('·•…∙', '.'),
  ...replacements('‘’′', "'"),
  ...replacements('“”″', '"'),
  ...replacements('█▉▊▋▓▇▆', '#'),
  ...replacements('▌▍▒▅▄', '='),
  ...replacements('▎▏░▃▂▁', '-'),
  ...replacements('▲↑△', '^'),
  ...replacements('▼↓▽', 'v'),
  ...replacements('▶►→▸', '>'),
  ...replacements('◀◄←◂', '<'),
  ...replacements('●◆■✓✔', '*'),
  ...replacements('○◇□', 'o'),
  ...replacements('✗✘×✕', 'x'),
  ...replacements('µμ', 'u'),
  ['\u00a0', ' '],
])

/** @param {string} text @returns {string} without terminal control sequences */
export function clean(text) {
  if (!UNSAFE.test(text)) return text
  return text.replace(ESCAPE_SEQUENCES, '').replace(ALL_UNSAFE, character => {
    if (INVISIBLE.test(character)) return ''
    return BLANK.test(character) ? ' ' : '?'
  })
}

/** @param {string} text cleaned @param {(character: string, width: number) => void} visit width: 1 or 2 columns */
export function characters(text, visit) {
  let cluster = ''
  let width = 0
  let marks = 0
  for (const character of text) {
    if (isMark(character)) {
      // A leading mark would be drawn over the cell to the left.
      if (cluster !== '' && marks++ < MAX_MARKS) cluster += character
      continue
    }
    if (cluster !== '') visit(cluster, width)
    cluster = character
    width = isWide(character) ? 2 : 1
    marks = 0
  }
  if (cluster !== '') visit(cluster, width)
}

/** @param {string} character @returns {boolean} whether it takes one column on every terminal */
export function hasCertainWidth(character) {
  const code = character.charCodeAt(0)
  return character.length === 1 && (code < 0x300 || (code >= 0x2500 && code < 0x25a0) || isBraille(code))
}

/** @param {string} character @returns {string} similar ASCII text of the same width */
export function toAscii(character) {
  if (character.length === 1 && character <= '~') return character
  const similar = ASCII.get(character)
  if (similar !== undefined) return similar
  // é is decomposed into e and an accent, full-width Ａ into A.
  const base = character.normalize('NFKD')[0]
  const wide = isWide(character)
  if (base <= '~') return wide ? `${base} ` : base
  return wide ? '??' : '?'
}

/** @param {string} character @returns {boolean} */
function isMark(character) {
  const code = character.charCodeAt(0)
  return code >= 0x300 && !(code >= 0x2010 && code < 0x2900) && COMBINING_MARK.test(character)
}

/** @param {string} character */
function isWide(character) {
  const code = character.charCodeAt(0)
  if (code < 0x1100 || (code >= 0x2500 && code < 0x25a0) || isBraille(code)) return false
  return WIDE.test(character) && !REGIONAL_INDICATOR.test(character)
}

/** @param {number} code */
function isBraille(code) {
  return code >= 0x2800 && code < 0x2900
}

/** @param {string} characters @param {string} ascii @returns {[string, string][]} entries of a Map */
function replacements(characters, ascii) {
  return [...characters].map(character => [character, ascii])
}

/** @param {string} text @returns {string} */
export function toAsciiText(text) {
  let ascii = ''
  characters(clean(text), character => {
    ascii += toAscii(character)
  })
  return ascii
}
