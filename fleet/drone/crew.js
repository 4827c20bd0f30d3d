import { setTimeout as sleep } from 'node:timers/promises'
import { Member } from './member.js'
import { shareOut } from './shares.js'
import { Totals } from './totals.js'

/** @typedef {import('../schema.js').Settings} Settings */

/** ms that the processes may take to tell their figures; those that take longer tell them with the next sample. */
const PATIENCE = 700
/** Samples from one look at the processes' memory to the next. */
const WEIGHED = 5
/** Change of a process's share of what is opened in a second that is worth telling it. */
const WORTH = 0.1

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
  #stopped = false
  #samples = 0
  deaths = 0

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

  /**
   * @param {'connections' | 'publisher'} role
   * @param {Settings} settings
   */
  #member(role, settings) {
    const onDeath = (/** @type {string} */ text) => {
      this.deaths++
      this.#options.onDeath(text)
    }
    return new Member({ ...this.#options, role, totals: this.#totals, onDeath }, settings)
  }

  get #all() {
    return this.#publisher ? [...this.#members, this.#publisher] : this.#members
  }

  #shares() {
    if (!this.#settings) return []
    const missing = this.#members.map(({ settings, sample }) =>
      Math.max(0, settings.connections - (sample?.gauges.open ?? 0)),
    )
    return shareOut(this.#settings, this.#options.perProcess, missing)
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when all processes have them; those of a process that dies meanwhile are given to the next one
   * @throws {Error} one of them cannot read them; the others go on with what they had
   */
  async apply(settings) {
    const before = this.#settings
    try {
      await this.#spread(settings)
    } catch (error) {
      if (before && this.#settings === settings) await this.#spread(before).catch(() => {})
      throw error
    }
  }

  /** @param {Settings} settings */
  async #spread(settings) {
    if (this.#stopped) throw new Error('the drone is being stopped')
    this.#settings = settings
    const shares = this.#shares()
    for (const member of this.#members.splice(shares.length)) this.#dismiss(member)
    const told = shares.map(({ share, settings }, i) => {
      const member = this.#members[i]
      if (member) member.share = share
      if (member) return member.apply(settings)
      this.#members[i] = this.#member('connections', settings)
      this.#members[i].share = share
      return this.#members[i].start()
    })
    const publishing = { ...settings, connections: 0, churn: 0, ports: '', addresses: [] }
    if (this.#publisher) told.push(this.#publisher.apply(publishing))
    else if (settings.publish) {
      this.#publisher = this.#member('publisher', publishing)
      told.push(this.#publisher.start())
    }
    await Promise.all(told)
  }

  /** @param {Member} member */
  async #dismiss(member) {
    this.#leaving.add(member)
    await member.stop()
    this.#leaving.delete(member)
  }

  /** @returns {Promise<import('../schema.js').EngineSample>} what has come since the last one, of all together */
  async sample() {
    await Promise.race([
      Promise.all(this.#all.map(member => member.look())),
      sleep(PATIENCE, null, { ref: false }),
    ])
    if (this.#samples++ % WEIGHED === 0) for (const member of this.#all) member.weigh()
    this.#balance()
    const samples = [...this.#all, ...this.#leaving].flatMap(({ sample }) => sample ?? [])
    return this.#totals.take(samples, this.#settings?.connections ?? 0)
  }

  /** Who has more to open may open more at once: the bounds are the drone's. */
  #balance() {
    if (this.#stopped || this.#members.length < 2) return
    const shares = this.#shares()
    if (!shares.some(({ share }, i) => Math.abs(share - this.#members[i].share) > WORTH)) return
    shares.forEach(({ share, settings }, i) => {
      this.#members[i].share = share
      this.#members[i].apply(settings).catch(() => {})
    })
  }

  /** @returns {import('../schema.js').DroneProcess[]} */
  processes() {
    return this.#all.flatMap(member => member.facts())
  }

  /**
   * @param {string} method
   * @param {...any} values
   * @returns {Promise<any[]>} what those that are there have answered
   */
  async ask(method, ...values) {
    const answers = await Promise.all(this.#all.map(member => member.ask(method, ...values)))
    return answers.filter(answer => answer !== undefined && answer !== null)
  }

  /** All processes anew, with what they have to do. */
  async restart() {
    const settings = this.#settings
    const all = this.#all
    this.#members = []
    this.#publisher = null
    await Promise.all(all.map(member => this.#dismiss(member)))
    if (settings && !this.#stopped) await this.apply(this.#settings ?? settings)
  }

  /** @returns {Promise<void>} when all are gone */
  async stop() {
    this.#stopped = true
    await Promise.all([...this.#all, ...this.#leaving].map(member => member.stop()))
  }
}
