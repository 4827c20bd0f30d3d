/** @import { Config } from '../../config/options.js' */
/** @import { FromChild, Message, ToChild } from '../messages.js' */

/** @typedef {Message<Pick<ToChild, 'prepare' | 'commit'>>} Step */
/** @typedef {Omit<ToChild['prepare'], 'id'>} Prepared */

/**
 * @typedef {object} Member a worker process that has its configuration
 * @property {(message: Step) => boolean} send false if it cannot be reached any more
 * @property {(reason: string) => void} kill
 * @property {string} title names it in errors
 * @property {Config} config last sent to it
 */

/** Time for a worker to answer, ms. One that stands still is usually killed and replaced earlier. */
const TIMEOUT_MS = 10_000

/**
 * Switches all workers to another configuration at the same moment, or none of them.
 *
 * ```
 * primary                 each worker
 *   | -- prepare ----------> |  makes its parts of the configuration; uses the old ones
 *   | <---------- switched - |  with the reason if it cannot: nothing changes
 *   |                        |
 *   |   (all have answered or ended; from now on new workers start with it)
 *   |                        |
 *   | -- commit -----------> |  uses the new parts
 *   | <---------- switched - |
 * ```
 */
export class ConfigSwitch {
  /** Settled unless a switch is under way: a worker that has been forked starts after it, with its outcome. */
  idle = Promise.resolve()
  #members
  #timeout
  #lastId = 0
  /** @type {Map<Member, {id: number, done: (error: string | null) => void}>} workers that have not answered yet */
  #waiting = new Map()

  /** @param {() => Iterable<Member>} members @param {number} [timeout] ms */
  constructor(members, timeout = TIMEOUT_MS) {
    this.#members = members
    this.#timeout = timeout
  }

  /**
   * One at a time.
   * @param {(member: Member) => Prepared} prepared for each worker
   * @param {() => void} adopt called between the two steps; if it throws, nothing changes
   * @returns {Promise<void>} when all workers use the new configuration
   * @throws {Error} nothing has changed
   */
  run(prepared, adopt) {
    const done = this.#run(prepared, adopt)
    this.idle = done.catch(() => {})
    return done
  }

  /** @param {(member: Member) => Prepared} prepared @param {() => void} adopt */
  async #run(prepared, adopt) {
    const members = [...this.#members()]
    const configs = new Map(members.map(member => [member, prepared(member)]))
    await this.#askAll(
      members,
      (member, id) => ({ type: 'prepare', id, .../** @type {Prepared} */ (configs.get(member)) }),
      (_member, refuse) => refuse('it does not answer'),
    )
    adopt()
    for (const [member, { config }] of configs) member.config = config
    await this.#askAll(
      members,
      (_member, id) => ({ type: 'commit', id }),
      // It would go on with the old keys. A killed process does nothing more, even if its end is reported late.
      (member, done) => {
        member.kill('stuck: it did not switch to the new configuration')
        done(null)
      },
    )
  }

  /**
   * Asks those that have not ended: the end of one between the two steps is not reported again.
   * @param {Member[]} members
   * @param {(member: Member, id: number) => Step} message
   * @param {(member: Member, done: (error: string | null) => void) => void} onLate called for a worker that does not
   *   answer in time; must call `done`
   * @returns {Promise<void>} when each has answered or ended @throws {Error} the first refusal
   */
  async #askAll(members, message, onLate) {
    const living = new Set(this.#members())
    const answers = await Promise.all(
      members
        .filter(member => living.has(member))
        .map(async member => {
          const error = await this.#ask(member, message, onLate)
          return error === null ? null : `${member.title}: ${error}`
        }),
    )
    const refusal = answers.find(error => error !== null)
    if (refusal !== undefined) throw new Error(refusal)
  }

  /**
   * @param {Member} member
   * @param {(member: Member, id: number) => Step} message
   * @param {(member: Member, done: (error: string | null) => void) => void} onLate
   * @returns {Promise<string | null>} reason of a refusal; null: it has done it, or has ended
   */
  #ask(member, message, onLate) {
    const id = ++this.#lastId
    return new Promise(resolve => {
      const late = setTimeout(() => onLate(member, error => this.#answer(member, id, error)), this.#timeout)
      const done = (/** @type {string | null} */ error) => {
        clearTimeout(late)
        resolve(error)
      }
      this.#waiting.set(member, { id, done })
      if (!member.send(message(member, id))) this.ended(member)
    })
  }

  /** @param {Member} member @param {number} id @param {string | null} error */
  #answer(member, id, error) {
    const waiting = this.#waiting.get(member)
    if (waiting?.id !== id) return
    this.#waiting.delete(member)
    waiting.done(error)
  }

  /** A worker has answered. @param {Member} member @param {FromChild['switched']} message */
  onMessage(member, { id, error }) {
    this.#answer(member, id, error)
  }

  /** A worker has ended: nothing is left to switch. @param {Member} member */
  ended(member) {
    const waiting = this.#waiting.get(member)
    if (waiting) this.#answer(member, waiting.id, null)
  }
}
