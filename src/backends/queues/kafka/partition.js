// One partition of Kafka that this node is assigned: its queue of fetched records, and the one that is in work. A
// record that fails is tried again in place, and delays no other partition.

/** @import { KafkaRecord, RecordsBatch } from '@platformatic/kafka' */
/** @import { ConsumerContext, Message } from '../contract.js' */

const IS_TRANSACTIONAL = 0x10
const IS_CONTROL = 0x20
/** Type of a control record that ends an aborted transaction. */
const ABORT = 0
/** What a record needs beside its bytes, roughly: small ones are bounded, too. */
const RECORD_BYTES = 200

/**
 * @typedef {object} FetchedPartition part of a response
 * @property {bigint} highWatermark
 * @property {RecordsBatch[] | null} [records]
 * @property {{producerId: bigint, firstOffset: bigint}[] | null} abortedTransactions
 */

/** @typedef {{record: KafkaRecord, offset: bigint, epoch: number, time: number, bytes: number}} Fetched */

/** @param {RecordsBatch} batch @returns {boolean} whether it marks the end of an aborted transaction */
const isAbortMarker = batch =>
  (batch.attributes & IS_CONTROL) !== 0 && batch.records[0]?.key?.readInt16BE(2) === ABORT

/**
 * Batches without those of aborted transactions, and without markers. The library leaves some: it looks at one
 * transaction of each producer, and only if its end is in the same response.
 * @param {Pick<FetchedPartition, 'records' | 'abortedTransactions'>} partition of a response
 * @returns {RecordsBatch[]}
 */
export function committedBatches({ records, abortedTransactions }) {
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
  /** Ends back-offs, and what waits. */
  #revoked = new AbortController()
  /** Bytes of waiting records. */
  bytes = 0
  /** Offset of the first record that is not fetched. */
  next
  /** Offset of the first record without an effect, and its epoch. */
  done
  epoch = -1
  committed
  /** End of the partition, as of the last response. */
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
   * @param {ConsumerContext} context @param {() => void} onRoom called when a full queue has room again
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

  /** Whether nothing more is fetched for it until it has worked off what it has. */
  get full() {
    const limit = this.#context.options.partition_queue_max_size
    return this.waiting > 0 && (limit === -1 || this.waiting >= limit)
  }

  /** Records behind the last one with an effect. */
  get lag() {
    return this.end > this.done ? Number(this.end - this.done) : 0
  }

  /** @param {FetchedPartition} response @param {bigint} requested offset @param {boolean} committedOnly */
  push(response, requested, committedOnly) {
    this.end = response.highWatermark
    const batches = response.records ?? []
    // An answer to an earlier request, from before a reset.
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

  /** @param {RecordsBatch} batch @param {bigint} first the batch may begin before it */
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
        // Markers and aborted records at the end of what was fetched.
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

  /** @param {Message} message @param {number | undefined} since @returns {Promise<boolean>} false: given back */
  async #handle(message, since) {
    const { signal } = this.#revoked
    for (let tries = 1; ; tries++) {
      if ((await this.#context.handle(message, since)) !== 'retry') return true
      if (!signal.aborted) await this.#context.backoff(tries, signal)
      if (signal.aborted) return false
    }
  }

  /** The place where reading goes on, after the server has lost the records before it. @param {bigint} offset */
  reset(offset) {
    this.next = offset
    if (this.waiting === 0 && this.#running === null) this.done = offset
  }

  /** Begins nothing more. Resolves when the record in work is finished; one in back-off is given back. */
  async revoke() {
    this.#revoked.abort()
    await this.#running
    this.#queue = []
    this.#head = 0
    this.bytes = 0
  }
}
