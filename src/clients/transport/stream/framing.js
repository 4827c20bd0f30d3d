import { isAscii } from 'node:buffer'

/** @import { Encoded } from '../../protocol/contract.js' */

const LINE_FEED = Buffer.from('\n')
const DATA = Buffer.from('data: ')
const EVENT_END = Buffer.from('\n\n')

/** @param {string} char */
const escapeChar = char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** @param {string} json */
const toAscii = json => json.replace(/[^\x00-\x7f]/g, escapeChar)

/**
 * Lines of ASCII JSON: a client that decodes chunk by chunk (the JavaScript SDK before 5.8) cannot split a character.
 * JSON has other characters in strings only, where an escape is equivalent.
 * @param {Encoded} message JSON objects joined by line feeds
 * @returns {Encoded} each ends with a line feed
 */
export function asciiLines(message) {
  if (typeof message === 'string') return `${toAscii(message)}\n`
  return isAscii(message) ? lines(message) : `${toAscii(Buffer.from(message).toString())}\n`
}

/** @param {Encoded} message JSON objects joined by line feeds @returns {Encoded} each ends with a line feed */
export function lines(message) {
  return typeof message === 'string' ? `${message}\n` : Buffer.concat([message, LINE_FEED])
}

/** @param {Encoded} message JSON objects joined by line feeds @returns {Encoded} one event for each */
export function events(message) {
  if (typeof message === 'string') {
    return message.includes('\n')
      ? `data: ${message.replaceAll('\n', '\n\ndata: ')}\n\n`
      : `data: ${message}\n\n`
  }
  return Buffer.concat([DATA, message, EVENT_END])
}

/** @param {Uint8Array} message JSON objects joined by line feeds @returns {Encoded} one event for each */
export function eventsOf(message) {
  return message.includes(LINE_FEED[0]) ? events(Buffer.from(message).toString()) : events(message)
}
