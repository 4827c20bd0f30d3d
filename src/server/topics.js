/** @typedef {{topics: Set<string> | null}} Member */

/**
 * Who wants which topic, for a server whose library has no topics.
 *
 * @template {Member} M
 */
export class Topics {
  /** @type {Map<string, Set<M>>} */
  #members = new Map()

  /**
   * @param {M} member
   * @param {string} topic
   */
  join(member, topic) {
    member.topics ??= new Set()
    member.topics.add(topic)
    const members = this.#members.get(topic)
    if (members === undefined) this.#members.set(topic, new Set([member]))
    else members.add(member)
  }

  /**
   * @param {M} member
   * @param {string} topic
   */
  leave(member, topic) {
    if (member.topics?.delete(topic) === true) this.#remove(member, topic)
  }

  /** @param {M} member */
  leaveAll(member) {
    if (member.topics === null) return
    for (const topic of member.topics) this.#remove(member, topic)
    member.topics = null
  }

  /**
   * @param {string} topic
   * @returns {Set<M> | undefined}
   */
  members(topic) {
    return this.#members.get(topic)
  }

  /**
   * @param {M} member
   * @param {string} topic
   */
  #remove(member, topic) {
    const members = this.#members.get(topic)
    members?.delete(member)
    if (members?.size === 0) this.#members.delete(topic)
  }
}
