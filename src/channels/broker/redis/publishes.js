import { errors } from '../../../base/errors.js'
import { IDEMPOTENCY_TTL } from '../contract.js'
import { newEpoch } from '../epoch.js'
import { publish } from './scripts.js'

/**
 * @typedef {import('../contract.js').PublishOptions} PublishOptions
 * @typedef {import('./partition.js').Partition} Partition
 *
 * @typedef {object} Item one message on its way to Redis
 * @property {string} flags of the script `publish` in streams.lua
 * @property {string} channel
 * @property {Buffer | string} body a publication from `encode`, or a whole event
 * @property {PublishOptions | null} options null: an event
 * @property {((error: Error | null, offset: number, epoch: string) => void) | null} done
 * @property {boolean} awaitsEcho whether `done` still waits for this worker's own copy of the publication
 * @property {boolean} answered whether Redis has replied
 * @property {number} offset from the reply
 * @property {string} epoch from the reply
 */

/** Limits of a batch: Redis blocks while it runs one. */
const MAX_ITEMS = 64
const MAX_BYTES = 512 * 1024
/** Ticks, one a second, until an echo is no longer awaited. */
const MAX_TICKS = 5
/** The first character of a line of the reply, see streams.lua. */
const FAILED = '!'
const DUPLICATE = '='

/**
 * Batches with awaited echoes. A publication to a channel of this worker comes back as an echo, before or after the
 * reply (depending on the version of Redis); `done` waits for both. Batch ids begin with the worker's `uid`, so that
 * each worker recognizes its own.
 */
export class PendingBatches {
  #uid
  #last = 0
  /** @type {Map<string, {items: Item[], partition: Partition, ticks: number}>} by id */
  #open = new Map()

  /** @param {string} uid */
  constructor(uid) {
    this.#uid = uid
  }

  /** @returns {string} */
  nextId() {
    this.#last++
    return this.#uid + this.#last.toString(36)
  }

  /** @param {string} batchId @param {Item[]} items @param {Partition} partition */
  open(batchId, items, partition) {
    this.#open.set(batchId, { items, partition, ticks: 0 })
  }

  /** @param {string} batchId */
  close(batchId) {
    this.#open.delete(batchId)
  }

  /** A publication of any worker was delivered in this one. @param {string} batchId @param {number} index */
  echo(batchId, index) {
    if (!batchId.startsWith(this.#uid)) return
    const batch = this.#open.get(batchId)
    const item = batch?.items[index]
    if (!batch || !item?.awaitsEcho) return
    item.awaitsEcho = false
    if (!item.answered) return
    if (batch.items.every(({ answered, awaitsEcho }) => answered && !awaitsEcho)) this.#open.delete(batchId)
    item.done?.(null, item.offset, item.epoch)
  }

  /** Called once a second. Redis may have refused the subscription, and then an echo never comes. */
  tick() {
    this.#stopWaiting(batch => ++batch.ticks > MAX_TICKS && batch.items.every(({ answered }) => answered))
  }

  /** No echo comes over a lost connection. @param {Partition} partition */
  down(partition) {
    this.#stopWaiting(batch => batch.partition === partition)
  }

  /**
   * Publications with a reply count as published, with or without their echo.
   * @param {(batch: {items: Item[], partition: Partition, ticks: number}) => boolean} matches
   */
  #stopWaiting(matches) {
    for (const [batchId, batch] of this.#open) {
      if (!matches(batch)) continue
      const { items } = batch
      this.#open.delete(batchId)
      for (const item of items) {
        if (!item.answered || !item.awaitsEcho) continue
        item.awaitsEcho = false
        item.done?.(null, item.offset, item.epoch)
      }
    }
  }
}

/** Publications and events of one turn to one partition, in few script calls. Each item is atomic by itself. */
/**
 * Whether a repeat goes to its republishers again: the confirm of the first one is unknown here.
 * @param {PublishOptions} options
 */
const isUnconfirmed = ({ republish, idempotencyKey, version }) =>
  Boolean(republish?.wait && idempotencyKey && !version)

export class Publishes {
  #partition
  #batches
  #isSubscribed
  #onAccepted
  #log
  /** @type {Item[]} */
  #items = []

  /**
   * @param {Partition} partition @param {PendingBatches} batches
   * @param {(channel: string) => boolean} isSubscribed whether a publication sent now comes back
   * @param {(item: Item) => void} onAccepted called for a publication with a route of republishers, before its `done`
   * @param {import('pino').Logger} log
   */
  constructor(partition, batches, isSubscribed, onAccepted, log) {
    this.#partition = partition
    this.#batches = batches
    this.#isSubscribed = isSubscribed
    this.#onAccepted = onAccepted
    this.#log = log
  }

  /**
   * @param {string} channel @param {Buffer} body from `encode`
   * @param {PublishOptions} options @param {NonNullable<Item['done']>} done
   */
  publication(channel, body, options, done) {
    let flags = 'p'
    if (options.historySize > 0) {
      flags = 'ph'
      if (options.version) flags = 'phv'
    }
    if (options.idempotencyKey) flags += 'i'
    this.#add(flags, channel, body, options, done)
  }

  /** A join or a leave. @param {string} channel @param {string} message */
  event(channel, message) {
    this.#add('e', channel, message, null, null)
  }

  /**
   * @param {string} flags @param {string} channel @param {Item['body']} body @param {Item['options']} options
   * @param {Item['done']} done
   */
  #add(flags, channel, body, options, done) {
    const item = {
      flags,
      channel,
      body,
      options,
      done,
      awaitsEcho: false,
      answered: false,
      offset: 0,
      epoch: '',
    }
    this.#items.push(item)
  }

  flush() {
    const items = this.#items
    if (items.length === 0) return
    this.#items = []
    let from = 0
    let bytes = 0
    for (let i = 0; i < items.length; i++) {
      bytes += items[i].body.length
      if (i + 1 - from < MAX_ITEMS && bytes < MAX_BYTES && i + 1 < items.length) continue
      this.#send(from === 0 && i + 1 === items.length ? items : items.slice(from, i + 1))
      from = i + 1
      bytes = 0
    }
  }

  /** @param {Item[]} items */
  #send(items) {
    const partition = this.#partition
    const batchId = this.#batches.nextId()
    /** @type {string[]} */
    const keys = []
    /** @type {(string | Buffer)[]} */
    const args = [partition.publishCommand, batchId, newEpoch(), partition.branch ?? '']
    let echoes = false
    for (const item of items) {
      const { channel, flags, options } = item
      args.push(flags, partition.key('channel', channel), item.body)
      if (options === null) continue
      if (this.#isSubscribed(channel)) item.awaitsEcho = echoes = true
      this.#addOptions(channel, options, keys, args)
    }
    if (echoes) this.#batches.open(batchId, items, partition)
    partition.run(publish, keys, args, (error, reply) => this.#answered(batchId, items, error, reply))
  }

  /**
   * @param {string} channel @param {PublishOptions} options @param {string[]} keys @param {(string | Buffer)[]} args
   */
  #addOptions(channel, options, keys, args) {
    const { historySize, historyTtl, metaTtl, version, versionEpoch, idempotencyKey } = options
    const partition = this.#partition
    if (historySize > 0) {
      keys.push(partition.key('meta', channel), partition.key('stream', channel))
      args.push(String(historySize), String(historyTtl), String(Math.max(metaTtl, historyTtl)))
      // Redis compares versions as text: with equal lengths that is the order of numbers.
      if (version) args.push(String(version).padStart(20, '0'), versionEpoch ?? '')
    }
    if (idempotencyKey) {
      // The length distinguishes `a.b` + `c` from `a` + `b.c`.
      keys.push(partition.key('result', `${channel.length}.${channel}.${idempotencyKey}`))
      args.push(String(IDEMPOTENCY_TTL))
    }
  }

  /** @param {string} batchId @param {Item[]} items @param {Error | null} error @param {Buffer | null} reply */
  #answered(batchId, items, error, reply) {
    if (error || !reply) {
      this.#batches.close(batchId)
      for (const item of items) {
        item.awaitsEcho = false
        this.#done(item, errors.internal)
      }
      return
    }
    const lines = reply.toString().split('\n')
    let waiting = false
    for (let i = 0; i < items.length; i++) {
      const item = items[i]
      const line = lines[i]
      if (line[0] === FAILED) {
        item.awaitsEcho = false
        this.#partition.connection?.fault(line.slice(1), 'publish')
        this.#done(item, errors.internal)
        continue
      }
      const duplicate = line[0] === DUPLICATE
      const space = line.indexOf(' ')
      if (space > 0) {
        item.offset = Number(line.slice(duplicate ? 1 : 0, space))
        item.epoch = line.slice(space + 1)
      }
      // It was not published again, so there is no echo.
      if (duplicate) item.awaitsEcho = false
      item.answered = true
      if (item.options?.republish && (!duplicate || isUnconfirmed(item.options))) this.#onAccepted(item)
      if (item.awaitsEcho) waiting = true
      else this.#done(item, null)
    }
    if (!waiting) this.#batches.close(batchId)
  }

  /**
   * Calls back; an exception must not stop the other callbacks of the batch.
   * @param {Item} item
   * @param {Error | null} error
   */
  #done(item, error) {
    try {
      if (error) item.done?.(error, 0, '')
      else item.done?.(null, item.offset, item.epoch)
    } catch (err) {
      this.#log.error({ err }, 'callback of a publication failed')
    }
  }
}
