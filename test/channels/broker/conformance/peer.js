import { until } from '../../../kit/wait.js'
// Shared by the tests of the broker contract.

export const HOUR = 3600_000
export const WANTS = {
  first: true,
  position: true,
  recover: null,
  latest: false,
  metaTtl: HOUR,
  client: '',
  info: '',
  leave: false,
}
export const KEPT = { historySize: 10, historyTtl: 60_000, metaTtl: HOUR }
export const LIVE = { historySize: 0, historyTtl: 0, metaTtl: HOUR }

/** The rejection of a promise. */
export const failure = promise =>
  promise.then(
    () => 'no failure',
    error => error,
  )
export const texts = publications => publications.map(({ data }) => String(data))
export const offsets = publications => publications.map(({ offset }) => offset)
export const upTo = (count, from = 1) => Array.from({ length: count }, (_, i) => from + i)

/** One worker, which records all events of its broker in order. */
export class Peer {
  /** @type {any[]} */
  events = []
  /** Channels with an event `interrupted`, in order. @type {string[]} */
  interrupted = []
  /** @type {(op: string, params: any) => any} */
  survey = () => null
  /** @type {(request: Buffer, answer: (bytes: string | Buffer) => void) => void} */
  called = () => {}
  /** @type {{node: string, worker: number}} */
  place = { node: '', worker: -1 }
  /** @type {import('../../../../src/channels/broker/contract.js').Broker} */
  broker = /** @type {any} */ (null)

  /** @param {import('../conformance.js').Rig} rig @param {number} [worker] takes the place of one before */
  static async join(rig, worker = undefined) {
    const peer = new Peer()
    const events = {
      publication: (channel, { data, ...rest }) =>
        peer.#record({ type: 'publication', channel, ...rest, data: Buffer.from(data) }),
      presence: (channel, info, joined) =>
        peer.#record({ type: joined ? 'join' : 'leave', channel, info: JSON.parse(info) }),
      interrupted: channel => peer.interrupted.push(channel),
      survey: (op, params) => peer.survey(op, params),
      called: (request, answer) => peer.called(request, answer),
    }
    peer.broker = await rig.join(/** @type {any} */ (events), worker)
    peer.place = rig.place(peer.broker)
    return peer
  }

  #record(event) {
    this.events.push(event)
  }

  /** Waits until it has received this number of events. */
  async waitForEvents(count) {
    await until(
      () => this.events.length >= count,
      () => `${count} events, got ${this.events.length}`,
    )
    return this.events
  }

  /** @returns {Promise<any>} the answer */
  subscribe(channel, wants = {}) {
    return new Promise((resolve, reject) =>
      this.broker.pubsub.subscribe(channel, { ...WANTS, ...wants }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      ),
    )
  }

  /** @returns {Promise<{offset: number, epoch: string}>} */
  publish(channel, data, options = {}) {
    return new Promise((resolve, reject) =>
      this.broker.pubsub.publish(channel, data, { ...KEPT, ...options }, (error, offset, epoch) =>
        error ? reject(error) : resolve({ offset, epoch }),
      ),
    )
  }

  /** @returns {Promise<{offset: number, epoch: string}>} */
  position(channel, metaTtl = HOUR) {
    return new Promise((resolve, reject) =>
      this.broker.pubsub.position(channel, metaTtl, (error, offset, epoch) =>
        error ? reject(error) : resolve({ offset, epoch }),
      ),
    )
  }

  history(channel, filter) {
    return this.broker.pubsub.history(channel, { limit: -1, ...filter }, HOUR)
  }

  /**
   * @param {{place: {node: string, worker: number}}} peer @param {string | Buffer} request
   * @returns {Promise<Buffer>} the answer
   */
  call({ place: { node, worker } }, request) {
    return new Promise((resolve, reject) =>
      this.broker.control.call(node, worker, request, (error, answer) =>
        error ? reject(error) : resolve(Buffer.from(answer)),
      ),
    )
  }

  claim(user, limit) {
    return new Promise((resolve, reject) =>
      this.broker.control.claimUser(user, limit, (error, admitted) =>
        error ? reject(error) : resolve(admitted),
      ),
    )
  }
}
