/** @import { Config } from '../../config/options.js' */
/** @import { FromChild, Message, ToChild } from '../messages.js' */

/** @typedef {Message<Pick<ToChild, 'prepare' | 'commit'>>} Step */
/** @typedef {Omit<ToChild['prepare'], 'id'>} Prepared */

/**
 * @typedef {object} Member a configured child process
 * @property {(message: Step) => boolean} send false if it is unreachable
 * @property {(reason: string) => void} kill
 * @property {string} title for errors
 * @property {Config} config last sent to it
 */

/** Response timeout of a process, ms. Blocked ones are usually killed and replaced earlier. */
const TIMEOUT_MS = 10_000

/**
 * Switches all processes to a new configuration at the same time, or none.
 *
 * ```
 * primary                 each process
 *   | -- prepare ----------> |  builds the parts of the new configuration; uses the old ones
 *   | <---------- switched - |  with the reason on failure: nothing changes
 *   |                        |
 *   |   (all have responded or exited; processes started now get the new configuration)
 *   |                        |
 *   | -- commit -----------> |  uses the new parts
 *   | <---------- switched - |
 * ```
 */
export class ConfigSwitch {
  /** Pending during a switch: processes forked meanwhile start after it, with its outcome. */
  idle = Promise.resolve()
  #members
  #timeout
  #lastId = 0
  /** @type {Map<Member, {id: number, done: (error: string | null) => void}>} pending */
  #waiting = new Map()

  /** @param {() => Iterable<Member>} members @param {number} [timeout] ms */
  constructor(members, timeout = TIMEOUT_MS) {
    this.#members = members
    this.#timeout = timeout
  }

  /**
   * Runs one switch. Must not be called during a switch.
   * @param {(member: Member) => Prepared} prepared for each process
   * @param {() => void} adopt called between the two steps; if it throws, nothing changes
   * @returns {Promise<void>} when all processes use the new configuration
   * @throws {Error} nothing is changed
   */
  run(prepared, adopt) {
    const done = this.#run(prepared, adopt)
    this.idle = done.catch(() => {})
    return done
  }

  /** @param {(member: Member) => Prepared} prepared @param {() => void} adopt */
  async #run(prepared, adopt) {
    const configs = new Map([...this.#members()].map(member => [member, prepared(member)]))
    await this.#step(
      configs,
      (next, id) => ({ type: 'prepare', id, ...next }),
      () => `no response within ${this.#timeout / 1000} s`,
    )
    adopt()
    for (const [member, { config }] of configs) member.config = config
    await this.#step(
      configs,
      (_, id) => ({ type: 'commit', id }),
      // It would keep the old keys. A killed process is inactive, even if its exit is reported late.
      member => {
        member.kill('stuck: did not switch to the new configuration')
        return null
      },
    )
  }

  /**
   * Sends a step to running members: an exit between the steps is not reported again.
   * @param {Map<Member, Prepared>} configs
   * @param {(next: Prepared, id: number) => Step} message
   * @param {(member: Member) => string | null} onLate outcome of a member that timed out
   * @returns {Promise<void>} when each has responded or exited
   * @throws {Error} the first rejection
   */
  async #step(configs, message, onLate) {
    const living = new Set(this.#members())
    const answers = [...configs]
      .filter(([member]) => living.has(member))
      .map(async ([member, next]) => {
        /** @type {string | null} */
        const error = await new Promise(resolve => {
          const id = ++this.#lastId
          const late = setTimeout(() => this.onMessage(member, { id, error: onLate(member) }), this.#timeout)
          const done = (/** @type {string | null} */ error) => {
            clearTimeout(late)
            resolve(error)
          }
          this.#waiting.set(member, { id, done })
          if (!member.send(message(next, id))) this.ended(member)
        })
        return error === null ? null : `${member.title}: ${error}`
      })
    const refusal = (await Promise.all(answers)).find(error => error !== null)
    if (refusal !== undefined) throw new Error(refusal)
  }

  /** @param {Member} member @param {FromChild['switched']} answer */
  onMessage(member, { id, error }) {
    const waiting = this.#waiting.get(member)
    if (waiting?.id !== id) return
    this.#waiting.delete(member)
    waiting.done(error)
  }

  /** @param {Member} member */
  ended(member) {
    const waiting = this.#waiting.get(member)
    if (waiting) this.onMessage(member, { id: waiting.id, error: null })
  }
}
