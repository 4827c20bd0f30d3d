// Delivery within the only worker. A publication without history needs nothing of what the primary keeps, and where a
// node has one worker, all subscribers are its own. So that worker orders such publications itself: without the way to
// the primary and back a publish takes a quarter less time. A second worker waits until the first has given that up:
//
//   primary                      first worker                         second worker
//   SOLE 1 ----------------------> delivers by itself
//   does not read from it <------------------------------------------ is attached
//   SOLE 0 ----------------------> sends everything to the primary
//   reads from it <------- SHARED

import { Frame } from './frames.js'

/** @import { BrokerEvents, Publication, PublishOptions } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { Link } from './link.js' */

/** The primary's part. */
export class SoleWorker {
  /** Workers that may subscribe. @type {Set<Link>} */
  #links = new Set()
  /** The one that delivers by itself. @type {Link | null} */
  #sole = null
  /** Those whose frames wait until it has given that up. @type {Link[]} */
  #waiting = []
  #sent

  /** @param {(link: Link) => void} sent ends a frame to a worker */
  constructor(sent) {
    this.#sent = sent
  }

  /** @param {Link} link of a new worker */
  addLink(link) {
    this.#links.add(link)
    if (this.#sole === null) return this.#choose()
    link.pause()
    if (this.#waiting.push(link) === 1) this.#tell(this.#sole, false)
  }

  /** @param {Link} link */
  removeLink(link) {
    if (!this.#links.delete(link)) return
    this.#waiting = this.#waiting.filter(other => other !== link)
    if (link === this.#sole) this.#share()
    else if (this.#sole === null) this.#choose()
  }

  /** The worker has given it up. @param {Link} link */
  shared(link) {
    if (link === this.#sole) this.#share()
  }

  #share() {
    this.#sole = null
    for (const link of this.#waiting.splice(0)) link.resume()
    this.#choose()
  }

  #choose() {
    if (this.#links.size !== 1) return
    for (const link of this.#links) this.#tell((this.#sole = link), true)
  }

  /** @param {Link} link @param {boolean} sole */
  #tell(link, sole) {
    link.writer.begin(Frame.SOLE).u8(sole ? 1 : 0)
    this.#sent(link)
  }
}

/** The worker's part. */
export class SoleDelivery {
  #bus
  #events
  #log
  #sole = false
  /**
   * Publications of this turn of the event loop. They are delivered after it, as if they came from the primary: a
   * caller may be in the middle of its work, and publications that an embedding program or the queue process sent
   * before are read first.
   * @type {{channel: string, publication: Publication, done: (error: null, offset: number, epoch: string) => void}[]}
   */
  #queue = []

  /** @param {Bus} bus @param {BrokerEvents} events @param {import('../../../base/log.js').Log} log */
  constructor(bus, events, log) {
    this.#bus = bus
    this.#events = events
    this.#log = log
  }

  /** @param {boolean} sole from now on */
  set(sole) {
    this.#sole = sole
    if (sole) return
    this.#bus.writer.begin(Frame.SHARED)
    this.#bus.writer.end()
  }

  /**
   * Whether it may deliver a publication. While requests are under way it may not: they could be earlier publications
   * of the channel, or a subscription to it.
   * @param {PublishOptions} options
   */
  takes({ historySize, idempotencyKey, republish }) {
    return this.#sole && historySize === 0 && !idempotencyKey && !republish && this.#bus.idle
  }

  /** @param {string} channel @param {string | Buffer} data @param {PublishOptions} options @param {any} done */
  publish(channel, data, { info = '', tags = null, version = 0n, json = true, delta = false }, done) {
    const publication = { data: Buffer.from(data), offset: 0, epoch: '', info, tags, version, json, delta }
    if (this.#queue.push({ channel, publication, done }) === 1) setImmediate(this.#deliver)
  }

  #deliver = () => {
    const queue = this.#queue
    this.#queue = []
    for (const { channel, publication, done } of queue) {
      try {
        this.#events.publication(channel, publication)
      } catch (error) {
        this.#log.error({ err: error }, 'delivery of a publication failed')
      }
      done(null, 0, '')
    }
  }
}
