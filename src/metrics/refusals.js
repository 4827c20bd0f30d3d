/** @import { Traffic } from './traffic.js' */

/** @typedef {{remoteAddress: () => string}} Client its request, or its session */

/** Characters of a channel in a log line: a refused name may be as long as a message. */
const MAX_CHANNEL = 255

/** Protocol codes end here; applications may use any number above, and each would be a label of a metric. */
const CODES_END = 5000

/** Counts and logs clients that are turned away. A proxy's clients have the address of the proxy. */
export class Refusals {
  #traffic
  #log

  /**
   * @param {Pick<Traffic, 'add'>} traffic
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
    this.#traffic.add('refusals', reason)
    const line = () => ({ reason, address: client.remoteAddress(), ...fields })
    this.#log.info(line, 'client refused', `client refused: ${reason}`)
  }

  /**
   * A command of a client that is answered with an error. Those of applications, and of a connect, have lines of their
   * own or none.
   * @param {{code: number}} error @param {string} reason as for `add`
   * @param {Client & {connected: boolean, user: string}} client
   * @param {string} [channel] of the command, where it is known
   */
  command({ code }, reason, client, channel) {
    this.#traffic.add('errors', code < CODES_END ? code : 'other')
    if (!client.connected || reason === 'application') return
    const line = () => ({
      code,
      reason,
      channel: channel?.slice(0, MAX_CHANNEL),
      user: client.user,
      address: client.remoteAddress(),
    })
    this.#log.info(line, 'command refused', `command refused: ${code}`)
  }
}
