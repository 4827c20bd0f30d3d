// Fetches records of assigned partitions from their leaders: one request per node at a time, without full partitions.

/** @import { ConsumerContext, Message } from '../contract.js' */
/** @import { Consumer as Client, KafkaRecord, RecordsBatch } from '@platformatic/kafka' */

const IS_TRANSACTIONAL = 0x10
const IS_CONTROL = 0x20
/** Type of a control record that ends an aborted transaction. */
const ABORT = 0
/** Approximate overhead per record, bytes: bounds small records too. */
const RECORD_BYTES = 200

/**
 * @typedef {{highWatermark: bigint, records?: RecordsBatch[] | null,
 *   abortedTransactions: {producerId: bigint, firstOffset: bigint}[] | null}} FetchedPartition part of a response
 */

/** @typedef {{record: KafkaRecord, offset: bigint, epoch: number, time: number, bytes: number}} Fetched */

/** @param {RecordsBatch} batch @returns {boolean} whether it ends an aborted transaction */
const isAbortMarker = batch =>
  (batch.attributes & IS_CONTROL) !== 0 && batch.records[0]?.key?.readInt16BE(2) === ABORT

/**
 * Removes markers and aborted transactions. The library misses some: it checks one transaction per producer, and only
 * if its end is in the same response.
 * @param {Pick<FetchedPartition, 'records' | 'abortedTransactions'>} partition of a response
 */
function committedBatches({ records, abortedTransactions }) {
  const aborted = [...(abortedTransactions ?? [])].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1))
  /** @type {Set<bigint>} producers within an aborted transaction */
  const producers = new Set()
  return (records ?? []).filter(batch => {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta)
    while (aborted.length > 0 && aborted[0].firstOffset <= last)
      producers.add(/** @type {any} */ (aborted.shift()).producerId)
    if ((batch.attributes & IS_CONTROL) !== 0) {
      if (isAbortMarker(batch)) producers.delete(batch.producerId)
      return false
    }
    return (batch.attributes & IS_TRANSACTIONAL) === 0 || !producers.has(batch.producerId)
  })
}

/** @param {KafkaRecord} record @param {string} methodHeader @returns {Message} */
function messageOf({ value, headers }, methodHeader) {
  const texts = Object.create(null)
  for (const [name, text] of headers) texts[String(name)] = text === null ? '' : text.toString()
  return { payload: value, method: texts[methodHeader] ?? '', headers: texts }
}

export class KafkaPartition {
  #revoked = new AbortController()
  bytes = 0
  /** Offset of the next record to fetch. */
  next
  /** Offset of the first unprocessed record, and leader epoch. */
  done
  epoch = -1
  committed
  /** Partition end in the last response. */
  end
  /** @type {Fetched[]} read from #head on */
  #queue = []
  #head = 0
  /** @type {Promise<void> | null} */
  #running = null
  #context
  #onRoom

  /**
   * @param {string} topic @param {number} index @param {bigint} offset of its first record
   * @param {ConsumerContext<'kafka'>} context @param {() => void} onRoom called when a full queue has room
   */
  constructor(topic, index, offset, context, onRoom) {
    this.topic = topic
    this.index = index
    this.next = offset
    this.done = offset
    this.committed = offset
    this.end = offset
    this.#context = context
    this.#onRoom = onRoom
  }

  get waiting() {
    return this.#queue.length - this.#head
  }

  get revoked() {
    return this.#revoked.signal.aborted
  }

  /** Whether fetching pauses until queued records are processed. */
  get full() {
    const limit = this.#context.options.partition_queue_max_size
    return this.waiting > 0 && (limit === -1 || this.waiting >= limit)
  }

  get lag() {
    return this.end > this.done ? Number(this.end - this.done) : 0
  }

  /** @param {FetchedPartition} response @param {bigint} requested offset @param {boolean} committedOnly */
  push(response, requested, committedOnly) {
    this.end = response.highWatermark
    const batches = response.records ?? []
    // Response to a request before a reset.
    if (this.revoked || requested !== this.next || batches.length === 0) return
    const last = batches[batches.length - 1]
    const chosen = committedOnly
      ? committedBatches(response)
      : batches.filter(({ attributes }) => (attributes & IS_CONTROL) === 0)
    for (const batch of chosen) this.#add(batch, requested)
    this.next = last.firstOffset + BigInt(last.lastOffsetDelta) + 1n
    if (this.waiting === 0 && this.#running === null) this.done = this.next
    else this.#running ??= this.#run()
  }

  /** @param {RecordsBatch} batch @param {bigint} first skips earlier records */
  #add(batch, first) {
    for (const record of batch.records) {
      const offset = batch.firstOffset + BigInt(record.offsetDelta)
      if (offset < first) continue
      const bytes = record.length + RECORD_BYTES
      const time = Number(batch.firstTimestamp + record.timestampDelta)
      this.#queue.push({ record, offset, epoch: batch.partitionLeaderEpoch, time, bytes })
      this.bytes += bytes
    }
  }

  async #run() {
    const { method_header: methodHeader } = this.#context.options
    const { signal } = this.#revoked
    while (this.waiting > 0 && !signal.aborted) {
      const wasFull = this.full
      const { record, offset, epoch, time, bytes } = this.#queue[this.#head]
      if (!(await this.#handle(messageOf(record, methodHeader), time > 0 ? time : undefined))) break
      this.done = offset + 1n
      this.epoch = epoch
      if (signal.aborted) break
      this.bytes -= bytes
      if (++this.#head === this.#queue.length) {
        this.#queue = []
        this.#head = 0
        // Skips trailing markers and aborted records.
        this.done = this.next
      } else if (this.#head >= 1024) {
        this.#queue = this.#queue.slice(this.#head)
        this.#head = 0
      }
      if (wasFull && !this.full) this.#onRoom()
    }
    this.#running = null
    if (!signal.aborted) this.#onRoom()
  }

  /** @param {Message} message @param {number | undefined} since @returns {Promise<boolean>} false: returned */
  async #handle(message, since) {
    const { signal } = this.#revoked
    for (let tries = 1; ; tries++) {
      if ((await this.#context.handle(message, since)) !== 'retry') return true
      if (!signal.aborted) await this.#context.backoff(tries, signal)
      if (signal.aborted) return false
    }
  }

  /** Continues at an offset when the server has deleted the records before it. @param {bigint} offset */
  reset(offset) {
    this.next = offset
    if (this.waiting === 0 && this.#running === null) this.done = offset
  }

  /** Stops processing. Resolves when the record in progress is finished; one in backoff is returned. */
  async revoke() {
    this.#revoked.abort()
    await this.#running
    this.#queue = []
    this.#head = 0
    this.bytes = 0
  }
}

const PARTITION_BYTES = 1024 * 1024
/** Maximum wait of requests while other partitions are full, ms. */
const BUSY_WAIT_MS = 50
const EARLIEST = -2n
const OFFSET_OUT_OF_RANGE = 1
const READ_COMMITTED = 1

/** @param {string} topic @param {number} index */
export const keyOf = (topic, index) => `${index} ${topic}`

export class KafkaFetcher {
  /** Nodes with a pending request or in backoff; -1: the metadata. @type {Set<number>} */
  #fetching = new Set()
  /** Consecutive failures by node. @type {Map<number, number>} */
  #failures = new Map()
  #scheduled = false
  #client
  #partitions
  #context
  #options
  #signal
  #failed

  /**
   * @param {Client} client with separate connections: a waiting fetch blocks later requests
   * @param {Map<string, KafkaPartition>} partitions assigned ones, by `keyOf`
   * @param {ConsumerContext<'kafka'>} context @param {AbortSignal} signal ends it @param {(error: Error) => void} failed
   */
  constructor(client, partitions, context, signal, failed) {
    this.#client = client
    this.#partitions = partitions
    this.#context = context
    this.#options = context.options
    this.#signal = signal
    this.#failed = failed
  }

  /** Offsets of the earliest records. @param {{topic: string, partitions: number[]}[]} of */
  earliest(of) {
    const partitions = Object.fromEntries(of.map(({ topic, partitions: indexes }) => [topic, indexes]))
    return this.#client.listOffsets({ topics: Object.keys(partitions), partitions, timestamp: EARLIEST })
  }

  /** Fetches more for partitions with room, on the next turn: coalesces calls. */
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
    const metadata = await this.#client.metadata({ topics: [...this.#options.topics] })
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
   * Skips deleted records; retries everything else.
   * @param {number} node @param {any} error @param {Map<string, string>} ids @param {KafkaPartition[]} partitions
   */
  async #recover(node, error, ids, partitions) {
    if (this.#signal.aborted) return
    try {
      const response = error.findBy?.('apiId', 'OFFSET_OUT_OF_RANGE')?.response ?? error.response
      const lost = partitions.filter(({ topic, index }) =>
        response?.responses?.some(
          (/** @type {any} */ found) =>
            ids.get(found.topicId) === topic &&
            found.partitions.some(
              (/** @type {any} */ part) =>
                part.partitionIndex === index && part.errorCode === OFFSET_OUT_OF_RANGE,
            ),
        ),
      )
      const earliest = await this.earliest(lost.map(({ topic, index }) => ({ topic, partitions: [index] })))
      for (const partition of lost) partition.reset(earliest.get(partition.topic)?.[partition.index] ?? 0n)
    } catch {
      // The next request reports it.
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
