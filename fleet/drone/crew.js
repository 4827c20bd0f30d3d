import { setTimeout as sleep } from 'node:timers/promises'
import { Member } from './member.js'
import { shareOut } from './shares.js'
import { Totals } from './totals.js'

/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {import('../schema.js').EngineSample} EngineSample */

/** ms that the processes may take to tell their figures; those that take longer tell them with the next sample. */
const PATIENCE = 500

/** The drone's processes: as many as its connections need, and one that publishes. */
export class Crew {
  #options
  #totals = new Totals()
  /** Also those on their way out, which have still to say what they have counted. @type {Member[]} in the order of their slots */
  #members = []
  /** @type {Settings | null} */
  #settings = null

  /**
   * @param {object} options
   * @param {() => import('node:child_process').ChildProcess} options.fork
   * @param {object} options.launch of the engines
   * @param {number} options.perProcess connections
   * @param {number} options.hangAfter s
   * @param {(text: string) => void} options.onDeath
   */
  constructor(options) {
    this.#options = options
  }

  get #staying() {
    return this.#members.filter(({ leaving }) => !leaving)
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when all processes have them; those of a process that dies meanwhile are given to the next one
   * @throws {Error} one of them cannot read them
   */
  async apply(settings) {
    this.#settings = settings
    const { perProcess } = this.#options
    const holders = this.#staying.filter(({ role }) => role === 'connections')
    const open = holders.map(({ sample }) => sample?.gauges.open ?? 0)
    const shares = shareOut(settings, perProcess, open)
    for (const member of holders.slice(shares.length)) member.stop()
    const told = shares.map((share, i) => (holders[i] ?? this.#add('connections')).apply(share))
    // It stays when it has nothing to do: it alone knows what it has published.
    let publisher = this.#staying.find(({ role }) => role === 'publisher')
    if (settings.publish) publisher ??= this.#add('publisher')
    await Promise.all([
      ...told,
      publisher?.apply({ ...settings, connections: 0, churn: 0, ports: '', addresses: [] }),
    ])
  }

  /** @param {Member['role']} role */
  #add(role) {
    const member = new Member({ ...this.#options, role, totals: this.#totals })
    this.#members.push(member)
    return member
  }

  /**
   * @returns {Promise<EngineSample & {deaths: number, processes: import('../schema.js').DroneProcess[]}>} what has come since the last
   *   one, of all together
   */
  async sample() {
    // The bounds are the drone's: when one process has opened all of its connections, others may open more.
    if (this.#settings) this.apply(this.#settings).catch(() => {})
    this.#members = this.#members.filter(({ gone }) => !gone)
    for (const member of this.#members) member.look()
    await sleep(PATIENCE)
    const samples = this.#members.flatMap(({ sample }) => sample ?? [])
    return {
      ...this.#totals.take(samples, this.#settings?.connections ?? 0),
      processes: samples.map(sample => sample.process),
    }
  }

  /**
   * @param {string} method
   * @param {...any} values
   * @returns {Promise<any[]>} what those that are there have answered; lists are one list
   */
  async ask(method, ...values) {
    const answers = await Promise.all(this.#staying.map(member => member.ask(method, ...values)))
    return answers.flatMap(answer => answer ?? [])
  }

  /** All processes anew, with what they have to do. */
  async restart() {
    const settings = this.#settings
    await this.stop()
    const wanted = this.#settings ?? settings
    if (wanted) await this.apply(wanted)
  }

  /** @returns {Promise<void>} when all are gone */
  async stop() {
    this.#settings = null
    await Promise.all(this.#members.map(member => member.stop()))
  }
}
