import { connectResult, JsonCodec, keyedTail } from './json.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec } from './contract.js' */

/** Bare pushes, including the connect reply. @implements {Codec} */
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

/** UTF-8 as a byte string. @param {string} text */
const bytesOf = text => (/^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text).toString('latin1'))

/** Publications of one-way long-poll; non-JSON payloads are base64. @implements {Codec} */
export class PollJsonCodec extends JsonCodec {
  name = 'poll-json'
  binary = true
  unidirectional = true

  /** A byte string: cheaper than a Buffer. @param {string} channel @param {Publication} publication */
  text(channel, { data, json, offset, tags, info, keyed }) {
    let text = `{"channel":${bytesOf(quote(channel))}`
    if (data.length > 0)
      text += json ? `,"data":${data.toString('latin1')}` : `,"b64data":"${data.toString('base64')}"`
    if (offset > 0) text += `,"offset":${offset}`
    if (tags) text += `,"tags":${bytesOf(quote(tags))}`
    if (info !== '') text += `,"info":${bytesOf(info)}`
    if (keyed) text += bytesOf(keyedTail(keyed))
    return `${text}}`
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    // One-way clients cannot request ids.
    return Buffer.from(this.text(/** @type {string} */ (channel), publication), 'latin1')
  }
}
