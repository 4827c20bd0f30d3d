// Foreign text (a log line, a channel name) must never move the cursor, set colours or write from right to left.

/** Whole escape sequences: colours of a log leave no rest. */
const SEQUENCES = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)/g
/** Controls, invisible formatting, lone surrogates, line separators; variation selectors change a character's width. */
const UNSAFE = /[\ufe00-\ufe0f\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const UNSAFES = new RegExp(UNSAFE, 'gu')
const INVISIBLE = /[\ufe00-\ufe0f\p{Cf}]/u
const BLANK = /[\t\n\v\f\r\u0085\p{Zl}\p{Zp}]/u
/** Combines with the previous character. */
const MARK = /[\p{Mn}\p{Me}\u1160-\u11ff]/u
/** East Asian Width W and F of Unicode, and emoji. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
const FLAG = /[\u{1f1e6}-\u{1f1ff}]/u
/** Text whose characters all have width 1 and need no cleaning: the common case, cheap to test. */
export const SINGLE = /^[ -~\xa1-\xac\xae-\u02ff\u2500-\u25fc\u2800-\u28ff]*$/
/** Maximum combining marks per character; hostile text has hundreds. */
const MAX_MARKS = 3

const ASCII = new Map([
  ...pairs('─━═╌╴╶—–‐‑−', '-'),
  ...pairs('│┃║╎╵╷', '|'),
  ...pairs('┌┐└┘├┤┬┴┼╭╮╯╰╔╗╚╝╠╣╦╩╬', '+'),
  ...pairs('·•…∙', '.'),
  ...pairs('‘’′', "'"),
  ...pairs('“”″', '"'),
  ...pairs('█▉▊▋▓▇▆', '#'),
  ...pairs('▌▍▒▅▄', '='),
  ...pairs('▎▏░▃▂▁', '-'),
  ...pairs('▲↑△', '^'),
  ...pairs('▼↓▽', 'v'),
  ...pairs('▶►→▸', '>'),
  ...pairs('◀◄←◂', '<'),
  ...pairs('●◆■✓✔', '*'),
  ...pairs('○◇□', 'o'),
  ...pairs('✗✘×✕', 'x'),
  ...pairs('µμ', 'u'),
  ['\u00a0', ' '],
])

/** @param {string} text @returns {string} without anything that a terminal interprets */
export function clean(text) {
  if (!UNSAFE.test(text)) return text
  return text.replace(SEQUENCES, '').replace(UNSAFES, character => {
    if (INVISIBLE.test(character)) return ''
    return BLANK.test(character) ? ' ' : '?'
  })
}

/**
 * @param {string} text clean
 * @param {(character: string, width: number) => void} visit called for every character with its marks; width: 1 or
 *   2
 */
export function characters(text, visit) {
  let held = ''
  let width = 0
  let marks = 0
  for (const character of text) {
    if (isMark(character)) {
      // Without a previous character it would combine with the cell to the left.
      if (held !== '' && marks++ < MAX_MARKS) held += character
      continue
    }
    if (held !== '') visit(held, width)
    held = character
    width = isWide(character) ? 2 : 1
    marks = 0
  }
  if (held !== '') visit(held, width)
}

/** @param {string} character @returns {boolean} whether its width is 1 on all terminals */
export function isCertain(character) {
  const code = character.charCodeAt(0)
  return character.length === 1 && (code < 0x300 || (code >= 0x2500 && code < 0x25a0) || isBraille(code))
}

/** @param {string} character @returns {string} a similar ASCII text of the same width */
export function toAscii(character) {
  if (character <= '~') return character
  const like = ASCII.get(character)
  if (like !== undefined) return like
  // é is e with an accent.
  const base = character.normalize('NFKD')[0]
  if (base <= '~') return base
  return isWide(character) ? '??' : '?'
}

/** @param {string} character */
function isMark(character) {
  const code = character.charCodeAt(0)
  return code >= 0x300 && !(code >= 0x2010 && code < 0x2900) && MARK.test(character)
}

/** @param {string} character */
function isWide(character) {
  const code = character.charCodeAt(0)
  if (code < 0x1100 || (code >= 0x2500 && code < 0x25a0) || isBraille(code)) return false
  return WIDE.test(character) && !FLAG.test(character)
}

/** @param {number} code */
function isBraille(code) {
  return code >= 0x2800 && code < 0x2900
}

/** @param {string} many @param {string} one @returns {[string, string][]} */
function pairs(many, one) {
  return [...many].map(character => [character, one])
}

/** @param {string} text @returns {string} */
export function toAsciiText(text) {
  let ascii = ''
  characters(clean(text), character => {
    ascii += toAscii(character)
  })
  return ascii
}
