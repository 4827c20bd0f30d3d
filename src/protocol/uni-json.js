import { connectResult, JsonCodec } from './json.js'

/**
 * What clients read that only listen (client protocol, section 17): pushes are not wrapped in replies, and the answer to the connect
 * request is one of them. They send no commands, so what JsonCodec has for commands is never called here.
 * @typedef {import('./contract.js').Codec} Codec
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
