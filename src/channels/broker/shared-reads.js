// Shared reads (singleflight.enabled).

/** @import { Presence, PubSub } from './contract.js' */

/**
 * Concurrent reads with one key share a call. A read never joins a call that has begun before it: its client may have
 * published meanwhile, and must see that publication.
 *
 *   read 1 --> call ------> done
 *   read 2 ------- waits -> call ------> done
 *   read 3 ------- joins read 2
 * @template T
 */
class SharedCalls {
  /** By key: settles with the running call, and the reads that wait for the next one. @type {Map<string, {running: Promise<unknown>, next: Promise<T> | null}>} */
  #calls = new Map()

  /** @param {string} key @param {() => Promise<T>} call @returns {Promise<T>} */
  read(key, call) {
    const entry = this.#calls.get(key)
    if (entry === undefined) return this.#begin(key, call)
    return (entry.next ??= entry.running.then(() => this.#begin(key, call)))
  }

  /** @param {string} key @param {() => Promise<T>} call @returns {Promise<T>} */
  #begin(key, call) {
    const result = call()
    const entry = { running: result.then(ignore, ignore), next: null }
    this.#calls.set(key, entry)
    entry.running.then(() => entry.next === null && this.#calls.delete(key))
    return result
  }
}

const ignore = () => {}

/** Reads of history and presence share calls from here on. @param {PubSub} pubsub @param {Presence} presence */
export function shareReads(pubsub, presence) {
  const { history } = pubsub
  const { list, stats } = presence
  /** @type {SharedCalls<Awaited<ReturnType<PubSub['history']>>>} */
  const histories = new SharedCalls()
  /** @type {SharedCalls<Map<string, string>>} */
  const lists = new SharedCalls()
  /** @type {SharedCalls<{clients: number, users: number}>} */
  const allStats = new SharedCalls()
  pubsub.history = (channel, filter, metaTtl) => {
    const { limit, sinceOffset, sinceEpoch = '', reverse = false, maxBytes = 0 } = filter
    const key = JSON.stringify([channel, limit, sinceOffset ?? -1, sinceEpoch, reverse, maxBytes, metaTtl])
    return histories.read(key, () => history.call(pubsub, channel, filter, metaTtl))
  }
  presence.list = channel => lists.read(channel, () => list.call(presence, channel))
  presence.stats = channel => allStats.read(channel, () => stats.call(presence, channel))
}
