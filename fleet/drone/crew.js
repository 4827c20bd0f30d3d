import { setTimeout as sleep } from 'node:timers/promises'
import { Member } from './member.js'
import { shareOut } from './shares.js'
import { Totals } from './totals.js'

/** @typedef {import('../schema.js').Settings} Settings */

/** ms that the processes may take to tell their figures; those that take longer tell them with the next sample. */
const PATIENCE = 700
/** Change of what a process may open at once that is worth telling it. */
const WORTH = 0.2

/** The drone's processes: as many as its connections need, and one that publishes. */
export class Crew {
  #options
  #totals = new Totals()
  /** @type {Member[]} in the order of their slots */
  #members = []
  /** @type {Member | null} there as soon as it was needed once: it alone knows what it has published */
  #publisher = null
  /** @type {Set<Member>} on their way out, but not without a word of what they have counted */
  #leaving = new Set()
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

  /** @param {'connections' | 'publisher'} role */
  #member(role) {
    return new Member({ ...this.#options, role, totals: this.#totals })
  }

  get #all() {
    return [...this.#members, ...(this.#publisher ? [this.#publisher] : [])]
  }

  #shares() {
    if (!this.#settings) return []
    const missing = this.#members.map(({ settings, sample }) =>
      Math.max(0, (settings?.connections ?? 0) - (sample?.gauges.open ?? 0)),
    )
    return shareOut(this.#settings, this.#options.perProcess, missing)
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when all processes have them; those of a process that dies meanwhile are given to the next one
   * @throws {Error} one of them cannot read them
   */
  async apply(settings) {
    this.#settings = settings
    const shares = this.#shares()
    for (const member of this.#members.splice(shares.length)) this.#dismiss(member)
    const told = shares.map((share, i) => {
      this.#members[i] ??= this.#member('connections')
      return this.#members[i].apply(share)
    })
    if (settings.publish) this.#publisher ??= this.#member('publisher')
    if (this.#publisher)
      told.push(this.#publisher.apply({ ...settings, connections: 0, churn: 0, ports: '', addresses: [] }))
    await Promise.all(told)
  }

  /** @param {Member} member */
  async #dismiss(member) {
    this.#leaving.add(member)
    await member.stop()
    this.#leaving.delete(member)
  }

  /**
   * @returns {Promise<import('../schema.js').EngineSample & {deaths: number, processes: import('../schema.js').DroneProcess[]}>} what has
   *   come since the last one, of all together
   */
  async sample() {
    const told = Promise.all(this.#all.map(member => member.look()))
    await Promise.race([told, sleep(PATIENCE, null, { ref: false })])
    this.#balance()
    const all = [...this.#all, ...this.#leaving]
    const samples = all.flatMap(({ sample }) => sample ?? [])
    return {
      ...this.#totals.take(samples, this.#settings?.connections ?? 0),
      deaths: this.#totals.deaths,
      processes: all.flatMap(member => member.facts()),
    }
  }

  /** The bounds are the drone's: when one process has opened all of its connections, others may open more. */
  #balance() {
    this.#shares().forEach((share, i) => {
      const member = this.#members[i]
      const before = member?.settings?.concurrency ?? 0
      if (before && Math.abs(share.concurrency / before - 1) > WORTH) member.apply(share).catch(() => {})
    })
  }

  /**
   * @param {string} method
   * @param {...any} values
   * @returns {Promise<any[]>} what those that are there have answered; lists are one list
   */
  async ask(method, ...values) {
    const answers = await Promise.all(this.#all.map(member => member.ask(method, ...values)))
    return answers.flatMap(answer => answer ?? [])
  }

  /** All processes anew, with what they have to do. */
  async restart() {
    await this.stop()
    if (this.#settings) await this.apply(this.#settings)
  }

  /** @returns {Promise<void>} when all are gone */
  async stop() {
    const all = [...this.#all, ...this.#leaving]
    this.#members = []
    this.#publisher = null
    await Promise.all(all.map(member => this.#dismiss(member)))
  }
}
