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
