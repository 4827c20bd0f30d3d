// Untrusted text (channel names, errors of other programs) must not control the terminal.

/**
 * Character class (flag `u`): control characters (C0, DEL, C1; U+009B begins a control sequence like ESC [), line and
 * paragraph separators, and characters that change the text direction.
 */
export const CONTROLS = String.raw`\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`
const ALL = new RegExp(`[${CONTROLS}]`, 'gu')

/** @param {string} text @param {string} [kept] unchanged characters @returns {string} escaped as in JSON */
export const escapeControls = (text, kept = '\n\t') =>
  text.replace(ALL, char =>
    kept.includes(char) ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Breaks a text between words; a longer word gets its own line. @param {string} text @param {number} width columns */
export function wrap(text, width) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1]
    if (last === '') lines[lines.length - 1] = word
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
