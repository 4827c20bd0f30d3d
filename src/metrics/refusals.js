/** @import { Traffic } from './traffic.js' */

/** @typedef {{remoteAddress: () => string}} Client */

/** Maximum characters of a channel in a log line: a refused name may be as long as a message. */
const MAX_CHANNEL = 255

/** End of the protocol codes: above it, each application code would be a label. */
const CODES_END = 5000

/** Clients behind a proxy have its address. */
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
   * @param {string} reason of docs/errors.md, a label @param {Client} client @param {object} [fields] of the log line
   */
  add(reason, client, fields) {
    this.#traffic.add('refusals', reason)
    const line = () => ({ reason, address: client.remoteAddress(), ...fields })
    this.#log.info(line, 'client refused', `client refused: ${reason}`)
  }

  /**
   * A command with an error reply. Errors of applications and of a connect are not logged.
   * @param {{code: number}} error @param {string} reason as for `add`
   * @param {Client & {connected: boolean, user: string}} client
   * @param {string} [channel]
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
