import { parseCommand, splitFrame } from './protobuf-commands.js'
import { MessageWriter, Push, Reply } from './protobuf-messages.js'

/**
 * The Centrifuge protocol in Protobuf (client protocol, sections 1.2 and 3): length-delimited messages, payloads
 * unchanged.
 * @typedef {import('./contract.js').Codec} Codec
 * @implements {Codec}
 */
export class ProtobufCodec {
  name = 'protobuf'
  binary = true
  unidirectional = false
  /** A message without fields. */
  ping = Buffer.from([0])
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

  /** @param {number} id */
  #reply(id) {
    const out = this.#out
    out.clear()
    out.open(0)
    out.uint(Reply.ID, id)
    return out
  }

  /** @param {string} channel '' = none @param {MessageWriter} [out] @param {number} [size] approximate bytes */
  #push(channel, out = this.#out, size = 0) {
    out.clear()
    out.open(0, size)
    out.open(Reply.PUSH, size)
    out.text(Push.CHANNEL, channel)
    return out
  }

  /** @returns {Buffer} the reply */
  #endReply() {
    this.#out.close()
    return this.#out.copy()
  }

  /** @returns {Buffer} the push */
  #endPush() {
    this.#out.close()
    return this.#endReply()
  }

  /** @type {Codec['error']} */
  error(id, { code, message, temporary }) {
    const out = this.#reply(id)
    out.open(Reply.ERROR)
    out.uint(1, code)
    out.text(2, message)
    out.bool(3, temporary)
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['connect']} */
  connect(id, result) {
    this.#reply(id).connectResult(result)
    return this.#endReply()
  }

  /** @type {Codec['subscribe']} */
  subscribe(id, result) {
    this.#reply(id).subscribeResult(Reply.subscribe, result)
    return this.#endReply()
  }

  /** @type {Codec['empty']} */
  empty(id, method) {
    const out = this.#reply(id)
    out.open(Reply[/** @type {'publish'} */ (method)])
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['presence']} */
  presence(id, presence) {
    const out = this.#reply(id)
    out.open(Reply.presence)
    for (const [client, info] of presence) {
      out.open(1)
      out.text(1, client)
      out.clientInfo(2, info)
      out.close()
    }
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['presenceStats']} */
  presenceStats(id, { clients, users }) {
    const out = this.#reply(id)
    out.open(Reply.presence_stats)
    out.uint(1, clients)
    out.uint(2, users)
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['history']} */
  history(id, { publications, offset, epoch }) {
    const out = this.#reply(id)
    out.open(Reply.history)
    for (const publication of publications) out.publication(1, publication, false, null, false)
    out.text(2, epoch)
    out.uint(3, offset)
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['refreshed']} */
  refreshed(id, method, result) {
    const out = this.#reply(id)
    out.open(Reply[method])
    // RefreshResult begins with client and version, which are never set.
    out.expiry(method === 'refresh' ? 3 : 1, result)
    out.close()
    return this.#endReply()
  }

  /** @type {Codec['publication']} */
  publication(channel, publication) {
    return this.#publish(channel, publication, null, false)
  }

  /** @type {Codec['deltaPublication']} */
  deltaPublication(channel, publication, delta) {
    return this.#publish(channel, publication, delta, true)
  }

  /**
   * @param {string} channel @param {import('../broker/contract.js').Publication} publication
   * @param {Uint8Array | null} delta @param {boolean} bare
   */
  #publish(channel, publication, delta, bare) {
    const size = (delta ?? publication.data).length + channel.length + 20
    const out = this.#push(channel, this.#publication, size)
    out.publication(Push.PUB, publication, true, delta, bare)
    out.close()
    out.close()
    return out.view()
  }

  /** @type {Codec['event']} */
  event(channel, info, joined) {
    const out = this.#push(channel)
    out.open(joined ? Push.JOIN : Push.LEAVE)
    out.clientInfo(1, info)
    out.close()
    return this.#endPush()
  }

  /** @type {Codec['unsubscribed']} */
  unsubscribed(channel, code, reason) {
    const out = this.#push(channel)
    out.open(Push.UNSUBSCRIBE)
    out.uint(2, code)
    out.text(3, reason)
    out.close()
    return this.#endPush()
  }

  /** @type {Codec['subscribed']} */
  subscribed(channel, result) {
    this.#push(channel).subscribePush(result)
    return this.#endPush()
  }

  /** @type {Codec['refresh']} */
  refresh(result) {
    const out = this.#push('')
    out.open(Push.REFRESH)
    out.expiry(1, result)
    out.close()
    return this.#endPush()
  }

  /** @type {Codec['disconnect']} */
  disconnect(code, reason) {
    const out = this.#push('')
    out.open(Push.DISCONNECT)
    out.uint(1, code)
    out.text(2, reason)
    out.close()
    return this.#endPush()
  }
}
