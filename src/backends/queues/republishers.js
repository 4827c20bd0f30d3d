// All republishers of a node, in its queue process. Rules for channels are in auth/republish-rules.js: each worker
// decides by them, and publications come with the bits of their republishers.

import { enabledRepublishers } from '../../config/republish.js'
import { Republisher } from './republisher.js'

/** @import { Republication, Republishing } from '../../channels/broker/contract.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Destination, DestinationContext } from './republisher-contract.js' */

/** @typedef {(context: DestinationContext) => Destination} Create */

/** @type {{type: string, load: () => Promise<{create: Create}>, packages: string[]}[]} */
export const TYPES = [
  { type: 'rabbitmq', load: () => import('./rabbitmq/republisher.js'), packages: ['amqplib@2'] },
  { type: 'redis_stream', load: () => import('./redis/republisher.js'), packages: [] },
  {
    type: 'nats_jetstream',
    load: () => import('./nats/republisher.js'),
    packages: ['@nats-io/transport-node@3', '@nats-io/jetstream@3'],
  },
  { type: 'kafka', load: () => import('./kafka/republisher.js'), packages: ['@platformatic/kafka@2'] },
]

/** @param {string} name @param {string} type @returns {Promise<Create>} */
async function load(name, type) {
  const row = TYPES.find(candidate => candidate.type === type)
  if (row === undefined) throw new Error(`republisher "${name}": unknown type ${type}`)
  try {
    return (await row.load()).create
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    const names = row.packages.map(text => text.slice(0, text.lastIndexOf('@')))
    throw new Error(
      `republisher "${name}": type ${type} needs the package ${names.join(' and ')}: npm install ${row.packages.join(' ')}`,
    )
  }
}

/**
 * @param {any} config
 * @returns {Promise<Create[]>} of each enabled republisher
 * @throws {Error} one line, if a package is missing
 */
export const loadRepublishers = config =>
  Promise.all(enabledRepublishers(config).map(({ name, type }) => load(name, type)))

/** A required publication that several republishers confirm. @typedef {{open: number, confirmed: boolean}} Waiting */

export class Republishers {
  #republishers
  #republishing
  #ids
  #last = 0
  #full = 0
  /** @type {Map<number, Waiting>} number on the bus -> confirms that are open */
  #waiting = new Map()

  /**
   * @param {any} config @param {Create[]} creates from `loadRepublishers`
   * @param {object} parts @param {string} parts.origin @param {string} parts.ids prefix of message ids
   * @param {Republishing} parts.republishing @param {Log} parts.log
   */
  constructor(config, creates, { origin, ids, republishing, log }) {
    this.#republishing = republishing
    this.#ids = ids
    const boundary = config.channel.namespace_boundary
    const confirm = (/** @type {number} */ number, /** @type {boolean} */ ok) => this.#confirmed(number, ok)
    this.#republishers = enabledRepublishers(config).map(
      (options, i) => new Republisher(options, { create: creates[i], origin, boundary, log, confirm }),
    )
  }

  start() {
    for (const republisher of this.#republishers) republisher.start()
  }

  /** @param {Republication} republication valid during the call */
  take(republication) {
    const id = this.#ids + (++this.#last).toString(36)
    const chosen = this.#republishers.filter((_, i) => (republication.to & (1 << i)) !== 0)
    if (republication.number !== 0) {
      const open = chosen.filter(({ required }) => required).length
      if (open === 0) this.#republishing.confirm(republication.number, true)
      else this.#waiting.set(republication.number, { open, confirmed: true })
    }
    for (const republisher of chosen) republisher.add(republication, id)
    this.checkFull()
  }

  /** @param {number} number @param {boolean} ok */
  #confirmed(number, ok) {
    const waiting = this.#waiting.get(number)
    if (waiting === undefined) return
    waiting.confirmed &&= ok
    if (--waiting.open > 0) return
    this.#waiting.delete(number)
    this.#republishing.confirm(number, waiting.confirmed)
  }

  /** Tells the workers which queues are full. Called after each publication, and regularly. */
  checkFull() {
    let full = 0
    for (const [i, republisher] of this.#republishers.entries()) if (republisher.full) full |= 1 << i
    if (full === this.#full) return
    this.#full = full
    this.#republishing.report(full)
  }

  /** @param {number} now unix ms */
  figures(now) {
    return this.#republishers.map(one => ({
      name: one.name,
      ...one.figures,
      queued: one.size,
      queued_bytes: one.bytes,
      age: one.age(now),
      up: one.up,
    }))
  }

  /** Sends what is left, for a time. @param {number} within ms */
  async stop(within) {
    await Promise.all(this.#republishers.map(republisher => republisher.stop(within)))
  }
}
