// Consumer type `kafka`, with cooperative assignment. Offsets are committed after their records are processed: every
// few seconds, before a partition is revoked, and on stop. The library cannot pause a single partition.

import { within } from '../timing.js'
import { causeOf, clientOptions, loadKafka } from './client.js'
import { KafkaFetcher, KafkaPartition, keyOf } from './fetcher.js'

/** @import { Consumer as Client } from '@platformatic/kafka' */
/** @import { Consumer as QueueConsumer, ConsumerContext } from '../contract.js' */

// Not in start(): a missing package fails the import of this file.
const { Consumer } = await loadKafka()

const SESSION_MS = 30_000
const HEARTBEAT_MS = 3000
const COMMIT_INTERVAL_MS = 5000
const TOPICS_INTERVAL_MS = 30_000
/** Timeouts of requests, ms. Joining waits for the other members. */
const FETCH_TIMEOUT_MS = 10_000
const JOIN_TIMEOUT_MS = SESSION_MS + 10_000
const STOP_TIMEOUT_MS = 3000
/** Maximum delay of a rebalance by a record in progress, ms: less than SESSION_MS. */
const REVOKE_TIMEOUT_MS = 15_000

class KafkaConsumer {
  /** @type {Client} */
  #group = /** @type {any} */ (null)
  /** For records and metadata. @type {Client} */
  #reader = /** @type {any} */ (null)
  /** @type {KafkaFetcher} */
  #fetcher = /** @type {any} */ (null)
  /** @type {Map<string, KafkaPartition>} assigned */
  #partitions = new Map()
  /** @type {Set<Promise<void>>} partitions finishing their last record */
  #leaving = new Set()
  #stopped = new AbortController()
  #loading = false
  #joining = false
  #counts = ''
  /** @type {NodeJS.Timeout[]} */
  #timers = []
  #context
  #options

  /** @param {ConsumerContext<'kafka'>} context */
  constructor(context) {
    this.#context = context
    this.#options = context.options
  }

  async start() {
    const { instance_id: instance, consumer_group: groupId, dial_timeout: timeout } = this.#options
    const common = { ...clientOptions(this.#options), groupId, timeout }
    this.#group = new Consumer({
      ...common,
      requestTimeout: JOIN_TIMEOUT_MS,
      ...(instance === '' ? {} : { groupInstanceId: instance }),
      sessionTimeout: SESSION_MS,
      rebalanceTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      protocols: [{ name: 'cooperative-sticky', version: 3 }],
      // Called before each join: releases revoked partitions.
      protocolsMetadata: async () => {
        await this.#giveBack()
        return Buffer.alloc(0)
      },
    })
    this.#reader = new Consumer({ ...common, requestTimeout: FETCH_TIMEOUT_MS })
    this.#fetcher = new KafkaFetcher(
      this.#reader,
      this.#partitions,
      this.#context,
      this.#stopped.signal,
      error => this.#failed(error),
    )
    for (const client of [this.#group, this.#reader]) {
      client.on('error', () => {})
      for (const topic of this.#options.topics) client.topics.track(topic)
    }
    try {
      await this.#reader.metadata({ topics: [] })
    } catch (error) {
      await this.#close()
      throw causeOf(error)
    }
    this.#group.on('error', () => this.#join())
    this.#group.on('consumer:heartbeat:stalled', () => this.#join())
    this.#group.on('consumer:group:join', () => this.#assign())
    this.#timers = [
      setInterval(() => this.#commit().catch(error => this.#failed(error)), COMMIT_INTERVAL_MS),
      setInterval(() => this.#watchTopics(), TOPICS_INTERVAL_MS),
    ]
    this.#join()
  }

  /** @param {any} error */
  #failed(error) {
    if (!this.#stopped.signal.aborted) this.#context.failed(causeOf(error))
  }

  async #join() {
    const { signal } = this.#stopped
    if (this.#joining || signal.aborted) return
    this.#joining = true
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        this.#counts = await this.#partitionCounts()
        await this.#group.joinGroup({})
        break
      } catch (error) {
        this.#failed(error)
        await this.#context.backoff(tries, signal)
      }
    }
    this.#joining = false
  }

  async #partitionCounts() {
    const { topics } = this.#options
    const metadata = await this.#reader.metadata({ topics: [...topics], forceUpdate: true })
    return topics.map(topic => metadata.topics.get(topic)?.partitionsCount).join()
  }

  /** Rejoins on new partitions. */
  async #watchTopics() {
    try {
      const counts = await this.#partitionCounts()
      if (counts !== this.#counts && !this.#joining) this.#join()
    } catch {
      // Fetching reports it too.
    }
  }

  /** Waits for revoked partitions to finish their record, then commits. */
  async #giveBack() {
    this.#dropLost()
    await within(Promise.all(this.#leaving), REVOKE_TIMEOUT_MS)
    await within(this.#commit(), REVOKE_TIMEOUT_MS)
    for (const [key, partition] of this.#partitions) if (partition.revoked) this.#partitions.delete(key)
  }

  #assigned() {
    const keys = new Set()
    for (const { topic, partitions } of this.#group.assignments ?? [])
      for (const index of partitions) keys.add(keyOf(topic, index))
    return keys
  }

  #dropLost() {
    const assigned = this.#assigned()
    for (const [key, partition] of this.#partitions) {
      if (assigned.has(key) || partition.revoked) continue
      const leaving = partition.revoke().then(() => {
        this.#leaving.delete(leaving)
      })
      this.#leaving.add(leaving)
    }
  }

  /** Reads new partitions from their committed offsets. */
  async #assign() {
    const { signal } = this.#stopped
    this.#dropLost()
    if (this.#loading) return
    this.#loading = true
    for (let tries = 1; !signal.aborted; tries++) {
      await Promise.all(this.#leaving)
      /** @type {{topic: string, partitions: number[]}[]} */
      const assigned = this.#group.assignments ?? []
      const missing = assigned
        .map(({ topic, partitions }) => ({
          topic,
          partitions: partitions.filter(
            index => this.#partitions.get(keyOf(topic, index))?.revoked !== false,
          ),
        }))
        .filter(({ partitions }) => partitions.length > 0)
      if (missing.length === 0) break
      try {
        await this.#load(missing)
        tries = 0
      } catch (error) {
        this.#failed(error)
        await this.#context.backoff(Math.max(tries, 1), signal)
      }
    }
    this.#loading = false
    this.#fetcher.fetch()
  }

  /** @param {{topic: string, partitions: number[]}[]} missing */
  async #load(missing) {
    const committed = await this.#group.listCommittedOffsets({ topics: missing })
    const earliest = await this.#fetcher.earliest(missing)
    const assigned = this.#assigned()
    for (const { topic, partitions } of missing) {
      for (const index of partitions) {
        const offset = committed.get(topic)?.[index]
        const first = earliest.get(topic)?.[index] ?? 0n
        const key = keyOf(topic, index)
        if (!assigned.has(key)) continue
        const start = offset !== undefined && offset >= 0n ? offset : first
        const onRoom = () => this.#fetcher.fetch()
        this.#partitions.set(key, new KafkaPartition(topic, index, start, this.#context, onRoom))
      }
    }
  }

  async #commit() {
    const changed = [...this.#partitions.values()].filter(({ done, committed }) => done > committed)
    if (changed.length === 0 || this.#group.memberId === null) return
    const offsets = changed.map(({ topic, index, done, epoch }) => ({
      topic,
      partition: index,
      offset: done,
      leaderEpoch: epoch,
    }))
    await this.#group.commit({ offsets })
    changed.forEach((partition, place) => {
      partition.committed = offsets[place].offset
    })
  }

  async stop() {
    this.#stopped.abort()
    if (this.#group === null) return
    for (const timer of this.#timers) clearInterval(timer)
    await Promise.all([...this.#partitions.values()].map(partition => partition.revoke()))
    await within(this.#commit(), STOP_TIMEOUT_MS)
    await this.#close()
  }

  async #close() {
    // A static member keeps its partitions: it will rejoin under the same name.
    if (this.#options.instance_id !== '') this.#group.memberId = null
    await within(Promise.resolve(this.#group.leaveGroup(true)), STOP_TIMEOUT_MS)
    await within(Promise.all([this.#group.close(true), this.#reader.close(true)]), STOP_TIMEOUT_MS)
  }
}

/** @param {ConsumerContext<'kafka'>} context @returns {QueueConsumer} */
export const create = context => new KafkaConsumer(context)
