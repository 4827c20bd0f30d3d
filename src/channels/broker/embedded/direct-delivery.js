// Delivery without the primary: the only worker of a node orders publications without history itself, which makes
// publishing a quarter faster. A second worker waits until the first stops direct delivery:
//
//   primary                      first worker                         second worker
//   ONLY 1 ----------------------> delivers directly
//   does not read from it <------------------------------------------ is attached
//   ONLY 0 ----------------------> sends everything to the primary
//   reads from it <------- SHARED

import { Frame } from './frames.js'

/** @import { Log } from '../../../base/log.js' */
/** @import { BrokerEvents, Publication, PublishOptions } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { Link } from './host.js' */

/** The primary's part. */
export class OnlyWorker {
  /** Workers that may subscribe. @type {Set<Link>} */
  #links = new Set()
  /** The worker that delivers directly. @type {Link | null} */
  #only = null
  /** Workers whose frames wait until it stops. @type {Link[]} */
  #waiting = []
  #sent

  /** @param {(link: Link) => void} sent ends a frame to a worker */
  constructor(sent) {
    this.#sent = sent
  }

  /** @param {Link} link of a new worker */
  addLink(link) {
    this.#links.add(link)
    if (this.#only === null) return this.#choose()
    link.pause()
    if (this.#waiting.push(link) === 1) this.#send(this.#only, false)
  }

  /** @param {Link} link */
  removeLink(link) {
    if (!this.#links.delete(link)) return
    this.#waiting = this.#waiting.filter(other => other !== link)
    if (link === this.#only) this.#share()
    else if (this.#only === null) this.#choose()
  }

  /** The worker has stopped direct delivery. @param {Link} link */
  shared(link) {
    if (link === this.#only) this.#share()
  }

  #share() {
    this.#only = null
    for (const link of this.#waiting.splice(0)) link.resume()
    this.#choose()
  }

  #choose() {
    if (this.#links.size !== 1) return
    for (const link of this.#links) this.#send((this.#only = link), true)
  }

  /** @param {Link} link @param {boolean} only */
  #send(link, only) {
    link.writer.begin(Frame.ONLY).u8(only ? 1 : 0)
    this.#sent(link)
  }
}

/** The worker's part. */
export class DirectDelivery {
  #bus
  #events
  #log
  #only = false
  /**
   * Publications of this turn, delivered after it like those from the primary: the caller may not have finished.
   * @type {{channel: string, publication: Publication, done: (error: null, offset: number, epoch: string) => void}[]}
   */
  #queue = []

  /** @param {Bus} bus @param {BrokerEvents} events @param {Log} log */
  constructor(bus, events, log) {
    this.#bus = bus
    this.#events = events
    this.#log = log
  }

  /** @param {boolean} only whether this is now the only worker */
  set(only) {
    this.#only = only
    if (!only) this.#bus.writer.begin(Frame.SHARED).end()
  }

  /**
   * Not with pending requests: they could be earlier publications of the channel, or a subscription to it.
   * @param {PublishOptions} options
   */
  takes({ historySize, idempotencyKey, republish }) {
    return this.#only && historySize === 0 && !idempotencyKey && !republish && this.#bus.idle
  }

  /** @param {string} channel @param {string | Buffer} data @param {PublishOptions} options @param {any} done */
  publish(channel, data, options, done) {
    const { info = '', tags = null, version = 0n, json = true, delta = false } = options
    const { keyed = null, target = null } = options
    // In the order of readPublication: one hidden class.
    const publication = {
      data: Buffer.from(data),
      offset: 0,
      epoch: '',
      info,
      tags,
      version,
      json,
      delta,
      keyed,
      target,
    }
    if (this.#queue.push({ channel, publication, done }) === 1) setImmediate(this.#deliver)
  }

  #deliver = () => {
    const queue = this.#queue
    this.#queue = []
    for (const { channel, publication, done } of queue) {
      try {
        this.#events.publication(channel, publication)
      } catch (error) {
        this.#log.error({ err: error }, 'delivering a publication failed')
      }
      done(null, 0, '')
    }
  }
}
