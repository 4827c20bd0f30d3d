// Requests records of assigned partitions from the nodes that lead them: one request per node at a time, without the
// partitions that have enough. What fails is tried again, with back-off.

/** @import { Consumer as Client } from '@platformatic/kafka' */
/** @import { ConsumerContext } from '../contract.js' */
/** @import { KafkaPartition } from './partition.js' */

const PARTITION_BYTES = 1024 * 1024
/** While a partition is full, a request for others must not make it wait long, ms. */
const BUSY_WAIT_MS = 50
const EARLIEST = -2n
const OFFSET_OUT_OF_RANGE = 1
const READ_COMMITTED = 1

/** @param {string} topic @param {number} index */
export const keyOf = (topic, index) => `${index} ${topic}`

export class KafkaFetcher {
  /** Nodes with a request under way, or in back-off; -1: the metadata. @type {Set<number>} */
  #fetching = new Set()
  /** Failed requests in a row, by node. @type {Map<number, number>} */
  #failures = new Map()
  #scheduled = false
  #client
  #partitions
  #context
  #options
  #signal
  #failed

  /**
   * @param {Client} client with connections of its own: a request waits in the server, and nothing behind it is answered
   * @param {Map<string, KafkaPartition>} partitions assigned ones, by `keyOf`
   * @param {ConsumerContext} context @param {AbortSignal} signal ends it @param {(error: Error) => void} failed
   */
  constructor(client, partitions, context, signal, failed) {
    this.#client = client
    this.#partitions = partitions
    this.#context = context
    this.#options = context.options
    this.#signal = signal
    this.#failed = failed
  }

  /** Offsets of the first records that are still there. @param {{topic: string, partitions: number[]}[]} of */
  earliest(of) {
    const partitions = Object.fromEntries(of.map(({ topic, partitions: indexes }) => [topic, indexes]))
    return this.#client.listOffsets({ topics: Object.keys(partitions), partitions, timestamp: EARLIEST })
  }

  /** Requests more for partitions with room, on the next turn: several of them may ask at once. */
  fetch() {
    if (this.#scheduled || this.#signal.aborted) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#fetchNow().catch(error => this.#retryFetch(-1, error))
    })
  }

  async #fetchNow() {
    if (this.#fetching.has(-1)) return
    const { fetch_max_bytes: maxBytes } = this.#options
    const all = [...this.#partitions.values()].filter(({ revoked }) => !revoked)
    const waiting = all.reduce((sum, { bytes }) => sum + bytes, 0)
    if (waiting >= maxBytes) return
    const open = all.filter(partition => !partition.full)
    if (open.length === 0) return
    const metadata = await this.#client.metadata({ topics: this.#options.topics })
    if (this.#signal.aborted) return
    this.#failures.delete(-1)
    /** @type {Map<number, KafkaPartition[]>} */
    const byNode = new Map()
    for (const partition of open) {
      const leader = metadata.topics.get(partition.topic)?.partitions[partition.index]?.leader
      if (leader === undefined || this.#fetching.has(leader)) continue
      byNode.set(leader, [...(byNode.get(leader) ?? []), partition])
    }
    for (const [node, partitions] of byNode)
      this.#fetchFrom(node, partitions, metadata, open.length < all.length)
  }

  /**
   * @param {number} node @param {KafkaPartition[]} partitions @param {any} metadata
   * @param {boolean} busy whether other partitions are full
   */
  async #fetchFrom(node, partitions, metadata, busy) {
    this.#fetching.add(node)
    const {
      fetch_max_bytes: maxBytes,
      fetch_max_wait: maxWait,
      fetch_read_uncommitted: uncommitted,
    } = this.#options
    const ids = new Map(partitions.map(({ topic }) => [metadata.topics.get(topic).id, topic]))
    const requested = new Map(partitions.map(partition => [partition, partition.next]))
    const topics = [...ids].map(([topicId, topic]) => ({
      topicId,
      partitions: partitions
        .filter(partition => partition.topic === topic)
        .map(({ index, next }) => ({
          partition: index,
          fetchOffset: next,
          currentLeaderEpoch: -1,
          lastFetchedEpoch: -1,
          partitionMaxBytes: Math.min(PARTITION_BYTES, maxBytes),
        })),
    }))
    const isolationLevel = uncommitted ? 0 : READ_COMMITTED
    const maxWaitTime = busy ? Math.min(maxWait, BUSY_WAIT_MS) : maxWait
    try {
      const response = await this.#client.fetch({
        node,
        topics,
        maxBytes,
        minBytes: 1,
        maxWaitTime,
        isolationLevel,
      })
      this.#failures.delete(node)
      this.#received(response, ids, requested)
      this.#fetching.delete(node)
      this.fetch()
    } catch (error) {
      this.#fetching.delete(node)
      await this.#recover(node, error, ids, partitions)
    }
  }

  /** @param {any} response @param {Map<string, string>} ids @param {Map<KafkaPartition, bigint>} requested */
  #received(response, ids, requested) {
    for (const { topicId, partitions } of response.responses) {
      for (const part of partitions) {
        const partition = this.#partitions.get(keyOf(ids.get(topicId) ?? '', part.partitionIndex))
        const offset = partition && requested.get(partition)
        if (partition && offset !== undefined)
          partition.push(part, offset, !this.#options.fetch_read_uncommitted)
      }
    }
    let lag = 0
    for (const partition of this.#partitions.values()) lag += partition.lag
    this.#context.lag(lag)
  }

  /**
   * Records that were deleted before they were read are passed over; everything else is tried again.
   * @param {number} node @param {any} error @param {Map<string, string>} ids @param {KafkaPartition[]} partitions
   */
  async #recover(node, error, ids, partitions) {
    if (this.#signal.aborted) return
    try {
      const response = error.findBy?.('apiId', 'OFFSET_OUT_OF_RANGE')?.response ?? error.response
      const gone = partitions.filter(({ topic, index }) =>
        response?.responses?.some(
          (/** @type {any} */ found) =>
            ids.get(found.topicId) === topic &&
            found.partitions.some(
              (/** @type {any} */ part) =>
                part.partitionIndex === index && part.errorCode === OFFSET_OUT_OF_RANGE,
            ),
        ),
      )
      const earliest = await this.earliest(gone.map(({ topic, index }) => ({ topic, partitions: [index] })))
      for (const partition of gone) partition.reset(earliest.get(partition.topic)?.[partition.index] ?? 0n)
    } catch {
      // The next request says why.
    }
    await this.#retryFetch(node, error)
  }

  /** @param {number} node -1: the metadata @param {any} error */
  async #retryFetch(node, error) {
    this.#failed(error)
    this.#client.clearMetadata()
    const tries = (this.#failures.get(node) ?? 0) + 1
    this.#failures.set(node, tries)
    this.#fetching.add(node)
    await this.#context.backoff(tries, this.#signal)
    this.#fetching.delete(node)
    this.fetch()
  }
}
