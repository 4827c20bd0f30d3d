/**
 * @typedef {import('./contract.js').Carrier} Carrier
 *
 * @typedef {object} Group those of one carrier who follow one topic
 * @property {Carrier} carrier
 * @property {Set<any>} members
 */

/**
 * Where the hub publishes: WebSockets get a topic's messages from the socket server, which does it in its own language; everybody
 * else is listed here, by topic and by what carries them.
 */
export class Fanout {
  #server
  /** @type {Map<string, Group[]>} */
  #topics = new Map()

  /** @param {Pick<import('../server/contract.js').SocketServer, 'publish'>} server */
  constructor(server) {
    this.#server = server
  }

  /**
   * @param {string} topic
   * @param {Uint8Array} message may be reused right after the call
   * @param {boolean} binary
   * @param {import('../broker/contract.js').Publication | null} publication null for joins and leaves
   */
  publish(topic, message, binary, publication) {
    this.#server.publish(topic, message, binary)
    if (this.#topics.size === 0) return
    const groups = this.#topics.get(topic)
    if (groups === undefined) return
    for (const { carrier, members } of [...groups]) carrier.deliver(members, message, publication)
  }

  /**
   * @param {Carrier} carrier
   * @param {any} member
   * @param {string} topic
   */
  follow(carrier, member, topic) {
    let groups = this.#topics.get(topic)
    if (groups === undefined) this.#topics.set(topic, (groups = []))
    const group = groups.find(group => group.carrier === carrier)
    if (group === undefined) groups.push({ carrier, members: new Set([member]) })
    else group.members.add(member)
  }

  /**
   * @param {Carrier} carrier
   * @param {any} member
   * @param {string} topic
   */
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
