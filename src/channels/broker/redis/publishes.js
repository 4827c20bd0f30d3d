import { errors } from '../../../base/errors.js'
import { IDEMPOTENCY_TTL } from '../contract.js'
import { newEpoch } from '../epoch.js'
import { publish } from './scripts.js'

/** @import { Logger } from 'pino' */
/** @import { PublishOptions } from '../contract.js' */
/** @import { Partition } from './partition.js' */

/**
 * A message to Redis. `flags`: of the script `publish` (streams.lua); `body`: from `encode`, or a whole event;
 * `options`: null for events; `awaitsEcho`: `done` waits for the echo; `offset` and `epoch`: from the reply.
 * @typedef {{flags: string, channel: string, body: Buffer | string, options: PublishOptions | null,
 *   done: ((error: Error | null, offset: number, epoch: string) => void) | null, awaitsEcho: boolean,
 *   answered: boolean, offset: number, epoch: string}} Item
 */

/** Limits of a batch, which blocks Redis. */
const MAX_ITEMS = 64
const MAX_BYTES = 512 * 1024
/** Timeout of an echo, s. */
const MAX_TICKS = 5
/** First character of a reply line, see streams.lua. */
const FAILED = '!'
const DUPLICATE = '='

/**
 * A publication to a subscribed channel is also received as an echo, before or after the reply, depending on the Redis
 * version; `done` waits for both. Batch ids begin with the `uid` of their worker.
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

  /** Call when this worker has delivered a publication. @param {string} batchId @param {number} index */
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

  /** Call once a second: times out echoes, which are missing if Redis refused the subscription. */
  tick() {
    this.#stopWaiting(batch => ++batch.ticks > MAX_TICKS && batch.items.every(({ answered }) => answered))
  }

  /** A lost connection delivers no echo. @param {Partition} partition */
  down(partition) {
    this.#stopWaiting(batch => batch.partition === partition)
  }

  /** @param {(batch: {items: Item[], partition: Partition, ticks: number}) => boolean} matches */
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

/** Whether a repeat is republished: its confirm is unknown here. @param {PublishOptions} options */
const isUnconfirmed = ({ republish, idempotencyKey, version }) =>
  Boolean(republish?.wait && idempotencyKey && !version)

/** Sends one turn's publications and events to a partition in few script calls. Each item is atomic. */
export class Publishes {
  #partition
  #batches
  #isSubscribed
  #onAccepted
  #log
  #schedule
  /** @type {Item[]} */
  #items = []

  /**
   * @param {Partition} partition @param {PendingBatches} batches
   * @param {(channel: string) => boolean} isSubscribed whether a publication sent now is echoed
   * @param {(item: Item) => void} onAccepted called for a publication with a republisher route, before its `done`
   * @param {Logger} log @param {() => void} schedule schedules `flush`
   */
  constructor(partition, batches, isSubscribed, onAccepted, log, schedule) {
    this.#schedule = schedule
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
    this.#schedule()
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
   * @param {string} channel @param {PublishOptions} options
   * @param {string[]} keys @param {(string | Buffer)[]} args
   */
  #addOptions(channel, options, keys, args) {
    const { historySize, historyTtl, metaTtl, version, versionEpoch, idempotencyKey } = options
    const partition = this.#partition
    if (historySize > 0) {
      keys.push(partition.key('meta', channel), partition.key('stream', channel))
      args.push(String(historySize), String(historyTtl), String(Math.max(metaTtl, historyTtl)))
      // Redis compares versions as strings: equal lengths give numeric order.
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
      if (duplicate) item.awaitsEcho = false
      item.answered = true
      if (item.options?.republish && (!duplicate || isUnconfirmed(item.options))) this.#onAccepted(item)
      if (item.awaitsEcho) waiting = true
      else this.#done(item, null)
    }
    if (!waiting) this.#batches.close(batchId)
  }

  /** Isolates exceptions of the callback. @param {Item} item @param {Error | null} error */
  #done(item, error) {
    try {
      if (error) item.done?.(error, 0, '')
      else item.done?.(null, item.offset, item.epoch)
    } catch (err) {
      this.#log.error({ err }, 'publication callback failed')
    }
  }
}
