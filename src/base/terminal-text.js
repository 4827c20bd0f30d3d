// Untrusted text (a channel name, an error of another program) must not act on the terminal that shows it. The only
// place that knows which characters do.

/**
 * Members of a character class (flag `u`): what a terminal interprets (C0, DEL, C1, of which U+009B begins a control
 * sequence like ESC [), line and paragraph separators, and what changes the direction of the text.
 */
export const CONTROLS = String.raw`\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`
const ALL = new RegExp(`[${CONTROLS}]`, 'gu')

/**
 * @param {string} text @param {string} [kept] characters that stay
 * @returns {string} with escapes as in JSON: U+009B is `\u009b`
 */
export const escapeControls = (text, kept = '\n\t') =>
  text.replace(ALL, char =>
    kept.includes(char) ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/**
 * Breaks a text into lines, between words.
 * @param {string} text
 * @param {number} width in columns
 * @returns {string[]} lines; a longer word gets its own line
 */
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
