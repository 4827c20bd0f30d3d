// Codecs of unidirectional clients.

import { connectResult, JsonCodec } from './json.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec } from './contract.js' */

/**
 * JSON of unidirectional streams (client protocol): pushes are not wrapped in replies, and the answer to
 * the connect request is a push. The decoder of JsonCodec is never called here.
 * @implements {Codec}
 */
export class UniJsonCodec extends JsonCodec {
  name = 'uni-json'
  unidirectional = true

  constructor() {
    super('{', '}')
  }

  /** @type {Codec['connect']} */
  connect(_id, result) {
    return `{"connect":${connectResult({ ...result, pong: false, node: '' })}}`
  }
}

const quote = JSON.stringify

/** @param {string} text @returns {string} its UTF-8 bytes as a byte string */
const bytesOf = text => (/^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text).toString('latin1'))

/**
 * Publications in the answer to a unidirectional long-poll: each names its channel, and payloads that are not JSON are
 * sent in base64. No other method of the codec is called.
 * @implements {Codec}
 */
export class PollJsonCodec extends JsonCodec {
  name = 'poll-json'
  binary = true
  unidirectional = true

  /**
   * @param {string} channel @param {Publication} publication
   * @returns {string} byte string: payloads pass unchanged, without the heap cost of a Buffer
   */
  text(channel, { data, json, offset, tags, info }) {
    let text = `{"channel":${bytesOf(quote(channel))}`
    if (data.length > 0)
      text += json ? `,"data":${data.toString('latin1')}` : `,"b64data":"${data.toString('base64')}"`
    if (offset > 0) text += `,"offset":${offset}`
    if (tags) text += `,"tags":${bytesOf(quote(tags))}`
    if (info !== '') text += `,"info":${bytesOf(info)}`
    return `${text}}`
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    return Buffer.from(this.text(channel, publication), 'latin1')
  }
}
