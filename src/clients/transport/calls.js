/** @import { BrokerEvents } from '../../channels/broker/contract.js' */

/** @typedef {(bytes: string | Buffer) => void} Answer */

/** Calls between workers. The first byte of a request is its kind; the handler of that kind gets the rest. */
export class Calls {
  /** @type {Map<number, (request: Buffer, answer: Answer) => void>} */
  #handlers = new Map()
  #log

  /** @param {{error: (fields: object, message: string) => void}} log */
  constructor(log) {
    this.#log = log
  }

  /**
   * @param {number} kind 0 to 255
   * @param {(request: Buffer, answer: Answer) => void} handler gets the request without its kind, valid during the call
   */
  on(kind, handler) {
    this.#handlers.set(kind, handler)
  }

  /** @type {BrokerEvents['called']} */
  called(request, answer) {
    const handler = this.#handlers.get(request[0])
    // A worker of a newer version may use new kinds.
    if (handler === undefined) this.#log.error({ kind: request[0] }, 'unknown call')
    else handler(request.subarray(1), answer)
  }
}

export const Call = Object.freeze({ EMULATION: 1, POLL: 2, ADMIN_LOGIN: 3, API: 4, ECHO: 5 })
