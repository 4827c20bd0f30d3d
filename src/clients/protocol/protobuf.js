import { parseCommand, splitFrame } from './protobuf-commands.js'
import { MessageWriter, Push, Reply } from './protobuf-messages.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec } from './contract.js' */

/**
 * The client protocol in Protobuf: length-delimited messages, payloads
 * unchanged.
 * @implements {Codec}
 */
export class ProtobufCodec {
  name = 'protobuf'
  binary = true
  unidirectional = false
  /** A message without fields. */
  ping = Buffer.from([0])
  /** Without its length: none is left. */
  pong = ''
  split = splitFrame
  command = parseCommand
  #out = new MessageWriter()
  /** A publication must survive the writing of other messages: its fan-out may end sessions. */
  #publication = new MessageWriter()

  /** @param {string} raw */
  size(raw) {
    return raw.length
  }

  /** @type {Codec['join']} */
  join(messages) {
    return Buffer.concat(/** @type {Uint8Array[]} */ (messages))
  }

  /** Begins a reply. @param {number} id @param {number} field its result or error */
  #reply(id, field) {
    const out = this.#out
    out.clear()
    out.open(0)
    out.uint(Reply.ID, id)
    out.open(field)
    return out
  }

  /** Begins a push. @param {string} channel '' = none @param {number} field its kind */
  #push(channel, field) {
    const out = this.#out
    out.clear()
    out.open(0)
    out.open(Reply.PUSH)
    out.text(Push.CHANNEL, channel)
    out.open(field)
    return out
  }

  /** @type {Codec['error']} */
  error(id, { code, message, temporary }) {
    const out = this.#reply(id, Reply.ERROR)
    out.uint(1, code)
    out.text(2, message)
    out.bool(3, temporary)
    return out.finish()
  }

  /** @type {Codec['connect']} */
  connect(id, result) {
    const out = this.#reply(id, Reply.connect)
    out.connectResult(result)
    return out.finish()
  }

  /** @type {Codec['subscribe']} */
  subscribe(id, result) {
    const out = this.#reply(id, Reply.subscribe)
    out.subscribeResult(result)
    return out.finish()
  }

  /** @type {Codec['empty']} */
  empty(id, method) {
    return this.#reply(id, Reply[/** @type {'publish'} */ (method)]).finish()
  }

  /** @type {Codec['rpc']} */
  rpc(id, data) {
    const out = this.#reply(id, Reply.rpc)
    out.bytes(1, typeof data === 'string' ? Buffer.from(data) : data)
    return out.finish()
  }

  /** @type {Codec['presence']} */
  presence(id, presence) {
    const out = this.#reply(id, Reply.presence)
    for (const [client, info] of presence) {
      out.open(1)
      out.text(1, client)
      out.clientInfo(2, info)
      out.close()
    }
    return out.finish()
  }

  /** @type {Codec['presenceStats']} */
  presenceStats(id, { clients, users }) {
    const out = this.#reply(id, Reply.presence_stats)
    out.uint(1, clients)
    out.uint(2, users)
    return out.finish()
  }

  /** @type {Codec['history']} */
  history(id, { publications, offset, epoch }) {
    const out = this.#reply(id, Reply.history)
    for (const publication of publications) out.publication(1, publication, false, null, false)
    out.text(2, epoch)
    out.uint(3, offset)
    return out.finish()
  }

  /** @type {Codec['refreshed']} */
  refreshed(id, method, result) {
    const out = this.#reply(id, Reply[method])
    // RefreshResult begins with client and version, which are never set.
    out.expiry(method === 'refresh' ? 3 : 1, result)
    return out.finish()
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    return this.#publish(channel, publication, null, false)
  }

  /** @type {Codec['deltaPublication']} */
  deltaPublication(channel, publication, delta) {
    return this.#publish(channel, publication, delta, true)
  }

  /** @param {string} channel @param {Publication} publication @param {Uint8Array | null} delta @param {boolean} bare */
  #publish(channel, publication, delta, bare) {
    const size = (delta ?? publication.data).length + channel.length + 20
    const out = this.#publication
    out.clear()
    out.open(0, size)
    out.open(Reply.PUSH, size)
    out.text(Push.CHANNEL, channel)
    out.publication(Push.PUB, publication, true, delta, bare)
    out.close()
    out.close()
    return out.view()
  }

  /** @type {Codec['event']} */
  event(channel, info, joined) {
    const out = this.#push(channel, joined ? Push.JOIN : Push.LEAVE)
    out.clientInfo(1, info)
    return out.finish()
  }

  /** @type {Codec['unsubscribed']} */
  unsubscribed(channel, code, reason) {
    const out = this.#push(channel, Push.UNSUBSCRIBE)
    out.uint(2, code)
    out.text(3, reason)
    return out.finish()
  }

  /** @type {Codec['subscribed']} */
  subscribed(channel, result) {
    const out = this.#push(channel, Push.SUBSCRIBE)
    out.subscribePush(result)
    return out.finish()
  }

  /** @type {Codec['refresh']} */
  refresh(result) {
    const out = this.#push('', Push.REFRESH)
    out.expiry(1, result)
    return out.finish()
  }

  /** @type {Codec['disconnect']} */
  disconnect(code, reason) {
    const out = this.#push('', Push.DISCONNECT)
    out.uint(1, code)
    out.text(2, reason)
    return out.finish()
  }
}
