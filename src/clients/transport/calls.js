/** @import { BrokerEvents } from '../../channels/broker/contract.js' */

/** @typedef {(bytes: string | Buffer) => void} Answer */

/** Calls between workers. The first byte of a request is its kind; that kind's handler gets the rest. */
export class Calls {
  /** @type {Map<number, (request: Buffer, answer: Answer) => void>} */
  #handlers = new Map()
  #log

  /** @param {{error: (fields: object, message: string) => void}} log */
  constructor(log) {
    this.#log = log
  }

  /** @param {number} kind a byte @param {(request: Buffer, answer: Answer) => void} handler bytes valid during call */
  on(kind, handler) {
    this.#handlers.set(kind, handler)
  }

  /** @type {BrokerEvents['called']} */
  called(request, answer) {
    const handler = this.#handlers.get(request[0])
    // Workers of newer versions may use new kinds.
    if (handler === undefined) this.#log.error({ kind: request[0] }, 'unknown call between workers')
    else handler(request.subarray(1), answer)
  }
}

export const Call = Object.freeze({ EMULATION: 1, POLL: 2, ADMIN_LOGIN: 3, API: 4, ECHO: 5, ACKS: 6 })
