// The messages of a gateway in Protobuf, with the field numbers of the client protocol. `field` is always the number of
// a message in its outer message.

import { rawMembers } from './raw-json.js'
import { WireWriter } from './wire.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { ConnectResult, SubscribeResult } from './contract.js' */

/** Numbers of Reply. */
export const Reply = Object.freeze({
  ID: 1,
  ERROR: 2,
  PUSH: 4,
  connect: 5,
  subscribe: 6,
  unsubscribe: 7,
  publish: 8,
  presence: 9,
  presence_stats: 10,
  history: 11,
  rpc: 13,
  refresh: 14,
  sub_refresh: 15,
})

/** Numbers of Push. */
export const Push = Object.freeze({
  CHANNEL: 2,
  PUB: 4,
  JOIN: 5,
  LEAVE: 6,
  UNSUBSCRIBE: 7,
  SUBSCRIBE: 9,
  DISCONNECT: 11,
  REFRESH: 12,
})

/** @param {string | Buffer | undefined} raw JSON text, or any bytes @returns {Buffer} */
const rawBytes = raw => (typeof raw === 'object' ? raw : Buffer.from(raw ?? ''))

export class MessageWriter extends WireWriter {
  /** A client that publishes often sends the same info each time: it is encoded once. */
  #lastInfo = ''
  /** @type {Uint8Array} */
  #lastInfoBytes = Buffer.alloc(0)
  #infoWriter = new WireWriter(1024)

  /** @param {number} field @param {string} info ClientInfo as JSON text */
  clientInfo(field, info) {
    if (info !== this.#lastInfo) {
      const members = rawMembers(info)
      const out = this.#infoWriter
      out.clear()
      out.text(1, JSON.parse(members.get('user') ?? '""'))
      out.text(2, JSON.parse(members.get('client') ?? '""'))
      out.bytes(3, rawBytes(members.get('conn_info')))
      out.bytes(4, rawBytes(members.get('chan_info')))
      this.#lastInfoBytes = out.finish()
      this.#lastInfo = info
    }
    this.message(field, this.#lastInfoBytes)
  }

  /** @param {number} field @param {Record<string, string>} tags */
  #tags(field, tags) {
    for (const key of Object.keys(tags)) {
      this.open(field)
      this.text(1, key)
      this.text(2, tags[key])
      this.close()
    }
  }

  /**
   * @param {number} field @param {Publication} publication
   * @param {boolean} live adds the epoch to the first publication of a stream
   * @param {Uint8Array | null} delta replaces the data
   * @param {boolean} bare without epoch and version, for delta-negotiated subscriptions
   */
  publication(field, publication, live, delta, bare) {
    const data = delta ?? publication.data
    const { info, offset, tags } = publication
    this.open(field, data.length + 16)
    this.bytes(4, data)
    if (info !== '') this.clientInfo(5, info)
    this.uint(6, offset)
    if (tags) this.#tags(7, tags)
    this.bool(8, delta !== null)
    if (live && !bare && offset === 1) this.text(14, publication.epoch)
    if (!bare) this.uint64(16, publication.version)
    this.close()
  }

  /** @param {SubscribeResult} result */
  subscribeResult(result) {
    const { publications, delta = false, deltas } = result
    this.bool(1, result.expires)
    this.uint(2, result.ttl)
    this.bool(3, result.recoverable)
    this.text(6, result.epoch)
    publications?.forEach((publication, i) => {
      this.publication(7, publication, false, deltas?.[i] ?? null, delta)
    })
    this.bool(8, result.recovered)
    this.uint(9, result.offset)
    this.bool(10, result.positioned)
    this.bytes(11, rawBytes(result.data))
    this.bool(12, result.was_recovering)
    this.bool(13, delta)
  }

  /**
   * The push `subscribe`: fewer fields than the result, and some under other numbers.
   * @param {SubscribeResult} result
   */
  subscribePush(result) {
    this.bool(1, result.recoverable)
    this.text(4, result.epoch)
    this.uint(5, result.offset)
    this.bool(6, result.positioned)
    this.bytes(7, rawBytes(result.data))
  }

  /**
   * The result of a connect command. (The push `connect` has other numbers, but only unidirectional clients get it, in
   * JSON.)
   * @param {ConnectResult} result
   */
  connectResult(result) {
    this.text(1, result.client)
    this.text(2, result.version)
    this.bool(3, result.expires)
    this.uint(4, result.ttl)
    this.bytes(5, rawBytes(result.data))
    for (const [channel, subscription] of result.subs ?? []) {
      this.open(6)
      this.text(1, channel)
      this.open(2)
      this.subscribeResult(subscription)
      this.close()
      this.close()
    }
    this.uint(7, result.ping)
    this.bool(8, result.pong)
    this.text(9, result.session)
    this.text(10, result.node)
    this.uint(11, result.time)
  }

  /** @param {number} field of `expires`; `ttl` is the next one @param {{expires: boolean, ttl: number}} expiry */
  expiry(field, { expires, ttl }) {
    this.bool(field, expires)
    this.uint(field + 1, expires ? ttl : 0)
  }
}
