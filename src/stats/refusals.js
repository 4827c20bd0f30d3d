/** @import { Traffic } from './traffic.js' */

/** @typedef {{remoteAddress: () => string}} Client its request, or its session */

/** Counts and logs clients that are turned away. A proxy's clients have the address of the proxy. */
export class Refusals {
  #traffic
  #log

  /**
   * @param {Pick<Traffic, 'refusals'>} traffic
   * @param {{info: (fields: () => object, message: string, key: string) => void}} log LimitedLog
   */
  constructor(traffic, log) {
    this.#traffic = traffic
    this.#log = log
  }

  /**
   * @param {string} reason one of docs/errors.md: few, because each is a label of the metric
   * @param {Client} client @param {object} [fields] of the log line
   */
  add(reason, client, fields) {
    this.#traffic.refusals.add(reason)
    const line = () => ({ reason, address: client.remoteAddress(), ...fields })
    this.#log.info(line, 'client refused', `client refused: ${reason}`)
  }
}
