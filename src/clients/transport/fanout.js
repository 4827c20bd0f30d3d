/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Batch, Sending } from '../../channels/hub/batches.js' */
/** @import { Cohort } from '../../channels/hub/channel.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { SocketServer } from '../server/contract.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { Carrier } from './index.js' */

/** Fan-out from the hub: the socket server publishes to WebSockets, `Carrier.deliver` to other transports. */
export class Fanout {
  #server
  #webSocket
  #uniWebSocket
  /** @type {Map<string, {carrier: Carrier, members: Set<any>}[]>} by topic */
  #topics = new Map()
  #config

  /** @param {Pick<SocketServer, 'publish'>} server @param {Traffic} traffic @param {() => Config} config */
  constructor(server, traffic, config) {
    this.#server = server
    this.#config = config
    this.#webSocket = traffic.of('websocket')
    this.#uniWebSocket = traffic.of('uni_websocket')
  }

  /**
   * @param {Pick<Cohort, 'topic' | 'codec' | 'count'>} cohort @param {Uint8Array} message may be reused right after the call
   * @param {Publication | null} publication null for joins and leaves
   */
  publish({ topic, codec, count }, message, publication) {
    this.#server.publish(topic, message, codec.binary)
    const carried = this.#topics.size === 0 ? 0 : this.#deliver(topic, message, publication)
    // The remaining clients are WebSockets.
    if (carried >= count) return
    const traffic = codec.unidirectional ? this.#uniWebSocket : this.#webSocket
    traffic.fannedOut(count - carried, message.length)
  }

  /**
   * @param {Cohort} cohort @param {Batch} batch @param {number} from first index @param {number} to index after the last
   * @param {Sending} sending
   */
  publishBatch({ topic, codec, count }, batch, from, to, sending) {
    const { client, uni_websocket } = this.#config()
    const max = client.max_messages_in_frame < 0 ? to - from : client.max_messages_in_frame
    const joins = !codec.unidirectional || uni_websocket.join_push_messages
    const traffic = codec.unidirectional ? this.#uniWebSocket : this.#webSocket
    const groups = [...(this.#topics.get(topic) ?? [])]
    let carried = 0
    for (const { carrier, members } of groups) {
      const all = carrier.joins ? max : 1
      let clients = 0
      for (let start = from; start < to; start += all) {
        const end = Math.min(to, start + all)
        if (!carrier.joins) sending(batch.publications[start])
        clients = carrier.deliver(members, batch.frame(start, end), batch.publications[start], end - start)
      }
      carried += clients
    }
    const pushes = joins ? max : 1
    for (let start = from; start < to; start += pushes) {
      const end = Math.min(to, start + pushes)
      const frame = batch.frame(start, end)
      this.#server.publish(topic, frame, codec.binary)
      if (carried < count) traffic.fannedOut(count - carried, frame.length, end - start)
    }
  }

  /** @param {string} topic @param {Uint8Array} message @param {Publication | null} publication */
  #deliver(topic, message, publication) {
    const groups = this.#topics.get(topic)
    if (groups === undefined) return 0
    let clients = 0
    for (const { carrier, members } of [...groups]) clients += carrier.deliver(members, message, publication)
    return clients
  }

  /** @param {Carrier} carrier @param {any} member @param {string} topic */
  follow(carrier, member, topic) {
    let groups = this.#topics.get(topic)
    if (groups === undefined) this.#topics.set(topic, (groups = []))
    const group = groups.find(group => group.carrier === carrier)
    if (group === undefined) groups.push({ carrier, members: new Set([member]) })
    else group.members.add(member)
  }

  /** @param {Carrier} carrier @param {any} member @param {string} topic */
  unfollow(carrier, member, topic) {
    const groups = this.#topics.get(topic)
    const index = groups?.findIndex(group => group.carrier === carrier) ?? -1
    if (groups === undefined || index < 0) return
    const { members } = groups[index]
    if (!members.delete(member) || members.size > 0) return
    groups.splice(index, 1)
    if (groups.length === 0) this.#topics.delete(topic)
  }
}
