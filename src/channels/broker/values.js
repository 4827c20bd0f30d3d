/** @param {Buffer} text @returns {string} its bytes without white space around them */
const trimmed = text => text.toString('latin1').trim()

/**
 * As in the engines: bytes follow bytes, JSON strings are joined inside their quotes.
 * @param {Buffer} value of a map's entry @param {Buffer} part of the same type @param {boolean} json
 * @returns {Buffer}
 */
export const appended = (value, part, json) =>
  json
    ? Buffer.from(trimmed(value).slice(0, -1) + trimmed(part).slice(1), 'latin1')
    : Buffer.concat([value, part])
