import { parseCommand, splitFrame } from './protobuf-commands.js'
import { rawMembers } from './raw-json.js'
import { WireWriter } from './wire.js'

/** @import { Keyed, Publication } from '../../channels/broker/contract.js' */
/** @import { ChannelRef, Codec, ConnectResult, SubscribeResult } from './contract.js' */

const Reply = Object.freeze({
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

const Push = Object.freeze({
  ID: 1,
  CHANNEL: 2,
  PUB: 4,
  JOIN: 5,
  LEAVE: 6,
  UNSUBSCRIBE: 7,
  MESSAGE: 8,
  SUBSCRIBE: 9,
  DISCONNECT: 11,
  REFRESH: 12,
})

/** @param {string | Buffer | undefined} raw */
const rawBytes = raw => (typeof raw === 'object' ? raw : Buffer.from(raw ?? ''))

/** `field`: the field number of a message in its outer message. */
class MessageWriter extends WireWriter {
  /** Clients often publish with the same info. */
  #lastInfo = ''
  /** @type {Uint8Array} */
  #lastInfoBytes = Buffer.alloc(0)
  #infoWriter = new WireWriter(1024)

  /** Of a push. @param {ChannelRef} channel '' = none */
  channel(channel) {
    return typeof channel === 'number' ? this.uint(Push.ID, channel) : this.text(Push.CHANNEL, channel)
  }

  /** @param {number} field @param {string} info ClientInfo as JSON text */
  clientInfo(field, info) {
    if (info !== this.#lastInfo) {
      const members = rawMembers(info)
      const out = this.#infoWriter.clear()
      out.text(1, JSON.parse(members.get('user') ?? '""'))
      out.text(2, JSON.parse(members.get('client') ?? '""'))
      out.bytes(3, rawBytes(members.get('conn_info'))).bytes(4, rawBytes(members.get('chan_info')))
      this.#lastInfoBytes = out.finish()
      this.#lastInfo = info
    }
    return this.message(field, this.#lastInfoBytes)
  }

  /** @param {number} field @param {Record<string, string>} tags */
  #tags(field, tags) {
    for (const key of Object.keys(tags)) this.open(field).text(1, key).text(2, tags[key]).close()
  }

  /**
   * @param {number} field @param {Publication} publication @param {boolean} live writes the epoch at offset 1
   * @param {Uint8Array | null} delta replaces the data
   * @param {boolean} bare without epoch, and without version of a stream, for delta-negotiated subscriptions
   * @param {boolean} [state] an entry of a map
   */
  publication(field, publication, live, delta, bare, state = false) {
    const data = delta ?? publication.data
    const { info, offset, tags, keyed } = publication
    this.open(field, data.length + 16).bytes(4, data)
    if (info !== '') this.clientInfo(5, info)
    this.uint(6, offset)
    if (tags) this.#tags(7, tags)
    this.bool(8, delta !== null)
    if (keyed) this.#keyed(keyed, state)
    if (live && !bare && offset === 1) this.text(14, publication.epoch)
    if (!bare || keyed) this.uint64(16, publication.version)
    this.close()
  }

  /** @param {Keyed} keyed @param {boolean} state */
  #keyed({ key, removed, append, time }, state) {
    if (state) this.uint(9, time)
    this.text(11, key).bool(12, removed).bool(100, append)
  }

  /** @param {SubscribeResult} result */
  subscribeResult(result) {
    const { publications, state, delta = false, deltas, phase } = result
    this.bool(1, result.expires).uint(2, result.ttl).bool(3, result.recoverable).text(6, result.epoch)
    publications?.forEach((publication, i) => {
      this.publication(7, publication, false, deltas?.[i] ?? null, delta)
    })
    this.bool(8, result.recovered).uint(9, result.offset).bool(10, result.positioned)
    this.bytes(11, rawBytes(result.data))
      .bool(12, result.was_recovering)
      .bool(13, delta && !phase)
    this.uint(14, result.id).uint(15, result.type).uint(16, phase).text(17, result.cursor)
    for (const entry of /** @type {Publication[]} */ (state ?? []))
      this.publication(18, entry, false, null, delta, true)
    return this
  }

  /** @param {ConnectResult} result */
  connectResult(result) {
    this.text(1, result.client).text(2, result.version).bool(3, result.expires).uint(4, result.ttl)
    this.bytes(5, rawBytes(result.data))
    for (const [channel, subscription] of result.subs ?? [])
      this.open(6).text(1, channel).open(2).subscribeResult(subscription).close().close()
    this.uint(7, result.ping).bool(8, result.pong).text(9, result.session).text(10, result.node)
    return this.uint(11, result.time)
  }

  /** @param {number} field of `expires`; then `ttl` @param {{expires: boolean, ttl: number}} expiry */
  expiry(field, { expires, ttl }) {
    return this.bool(field, expires).uint(field + 1, expires ? ttl : 0)
  }
}

/** Length-delimited messages, payloads unchanged. @implements {Codec} */
export class ProtobufCodec {
  name = 'protobuf'
  binary = true
  unidirectional = false
  /** The length of an empty message. */
  ping = Buffer.from([0])
  pong = ''
  split = splitFrame
  command = parseCommand
  #out = new MessageWriter()
  /** Separate: fan-out may end sessions, which writes other messages. */
  #publication = new MessageWriter()

  /** @param {string} raw */
  size(raw) {
    return raw.length
  }

  /** @type {Codec['join']} */
  join(messages) {
    return Buffer.concat(/** @type {Uint8Array[]} */ (messages))
  }

  /** @param {number} id @param {number} field */
  #reply(id, field) {
    return this.#out.clear().open(0).uint(Reply.ID, id).open(field)
  }

  /** @param {ChannelRef} channel '' = none @param {number} field */
  #push(channel, field) {
    return this.#out.clear().open(0).open(Reply.PUSH).channel(channel).open(field)
  }

  /** @type {Codec['error']} */
  error(id, { code, message, temporary }) {
    return this.#reply(id, Reply.ERROR).uint(1, code).text(2, message).bool(3, temporary).finish()
  }

  /** @type {Codec['connect']} */
  connect(id, result) {
    return this.#reply(id, Reply.connect).connectResult(result).finish()
  }

  /** @type {Codec['subscribe']} */
  subscribe(id, result) {
    return this.#reply(id, Reply.subscribe).subscribeResult(result).finish()
  }

  /** @type {Codec['empty']} */
  empty(id, method) {
    return this.#reply(id, Reply[/** @type {'publish'} */ (method)]).finish()
  }

  /** @type {Codec['published']} */
  published(id, { offset, epoch, suppressed, current }) {
    const out = this.#reply(id, Reply.publish).uint(100, offset).text(101, epoch).text(102, suppressed)
    if (current) out.publication(103, current, false, null, false, true)
    return out.finish()
  }

  /** @type {Codec['rpc']} */
  rpc(id, data) {
    return this.#reply(id, Reply.rpc).bytes(1, rawBytes(data)).finish()
  }

  /** @type {Codec['presence']} */
  presence(id, presence) {
    const out = this.#reply(id, Reply.presence)
    for (const [client, info] of presence) out.open(1).text(1, client).clientInfo(2, info).close()
    return out.finish()
  }

  /** @type {Codec['presenceStats']} */
  presenceStats(id, { clients, users }) {
    return this.#reply(id, Reply.presence_stats).uint(1, clients).uint(2, users).finish()
  }

  /** @type {Codec['history']} */
  history(id, { publications, offset, epoch }) {
    const out = this.#reply(id, Reply.history)
    for (const publication of publications) out.publication(1, publication, false, null, false)
    return out.text(2, epoch).uint(3, offset).finish()
  }

  /** @type {Codec['refreshed']} */
  refreshed(id, method, result) {
    // RefreshResult starts with client and version, which are never set.
    return this.#reply(id, Reply[method])
      .expiry(method === 'refresh' ? 3 : 1, result)
      .finish()
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    return this.#publish(channel, publication, null, false)
  }

  /** @type {Codec['deltaPublication']} */
  deltaPublication(channel, publication, delta) {
    return this.#publish(channel, publication, delta, true)
  }

  /** @param {ChannelRef} channel @param {Publication} publication @param {Uint8Array | null} delta @param {boolean} bare */
  #publish(channel, publication, delta, bare) {
    const length = typeof channel === 'number' ? 0 : channel.length
    const size = (delta ?? publication.data).length + length + 20
    const out = this.#publication.clear().open(0, size).open(Reply.PUSH, size)
    out.channel(channel).publication(Push.PUB, publication, true, delta, bare)
    return out.close().close().view()
  }

  /** @type {Codec['event']} */
  event(channel, info, joined) {
    const field = joined ? Push.JOIN : Push.LEAVE
    return this.#push(channel, field).clientInfo(1, info).finish()
  }

  /** @type {Codec['unsubscribed']} */
  unsubscribed(channel, code, reason) {
    return this.#push(channel, Push.UNSUBSCRIBE).uint(2, code).text(3, reason).finish()
  }

  /** Fields and numbers differ from the result's. @type {Codec['subscribed']} */
  subscribed(channel, { recoverable, epoch, offset, positioned, data }) {
    const out = this.#push(channel, Push.SUBSCRIBE).bool(1, recoverable).text(4, epoch)
    return out.uint(5, offset).bool(6, positioned).bytes(7, rawBytes(data)).finish()
  }

  /** @type {Codec['refresh']} */
  refresh(result) {
    return this.#push('', Push.REFRESH).expiry(1, result).finish()
  }

  /** @type {Codec['message']} */
  message(data) {
    return this.#push('', Push.MESSAGE).bytes(1, Buffer.from(data)).finish()
  }

  /** @type {Codec['disconnect']} */
  disconnect(code, reason) {
    return this.#push('', Push.DISCONNECT).uint(1, code).text(2, reason).finish()
  }
}
