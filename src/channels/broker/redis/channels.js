// The channels of a worker with their delivered positions: unlike the embedded bus, Redis may lose messages.

import { errors } from '../../../base/errors.js'
import { decode, Head } from './envelope.js'

/** @import { BrokerEvents } from '../contract.js' */
/** @import { Partition } from './partition.js' */
/** @import { PendingBatches } from './publishes.js' */
/** @import { PartitionQueue } from './queue.js' */
/** @import { Answer } from './reads.js' */

/**
 *             first subscriber                 reply: position N
 *   (none) ----------------------> JOINING -------------------------> LIVE <---------+
 *                                        connection lost, or a gap     |             | missed publications are
 *                                                                      |             | delivered, or lost
 *                                                                      +--> CATCHING +
 */
export const State = Object.freeze({
  /** No subscriber yet: publications precede the position that the first one will get. */
  JOINING: 0,
  LIVE: 1,
  /** Subscribers are behind: the history read will contain the live publications. */
  CATCHING: 2,
})

/** A subscribed channel of this worker, one of up to a million. */
export class Channel {
  /** @type {number} */
  state = State.JOINING
  subscribed = false
  /** Whether a subscription has succeeded; if so, a failing first subscription keeps the channel. */
  confirmed = false
  /** Position of the last delivered publication; epoch '' = not known. */
  offset = 0
  epoch = ''
  /** Batch of the last publication: distinguishes publications with the same offset. */
  batchId = ''
  metaTtl = 0
  /** @type {((error: Error | null) => void)[] | null} called when the channel is live */
  waiting = null

  /** @param {string} name @param {Partition} partition */
  constructor(name, partition) {
    this.name = name
    this.partition = partition
  }
}

const RESUME_CHUNK = 512
/** Bytes of missed publications per read. */
const CATCH_UP_BYTES = 1024 * 1024
const JOIN = 0x6a // j
const LEAVE = 0x6c // l
const CLEARED = 0x63 // c

/**
 * After a reconnect, resubscribes each channel, compares its position with the stream's, and delivers missed
 * publications before newer ones or calls `lost`.
 */
export class Channels {
  /** @type {Map<string, Channel>} */
  #channels = new Map()
  /** @type {Set<Channel>} channels with a failed read despite a working connection */
  #failed = new Set()
  #head = new Head()
  #events
  #queueOf
  #batches

  /**
   * @param {BrokerEvents} events @param {(partition: Partition) => PartitionQueue} queueOf
   * @param {PendingBatches} batches
   */
  constructor(events, queueOf, batches) {
    this.#events = events
    this.#queueOf = queueOf
    this.#batches = batches
  }

  /** @param {string} name */
  get(name) {
    return this.#channels.get(name)
  }

  /** @param {Channel} channel */
  has(channel) {
    return this.#channels.get(channel.name) === channel
  }

  /** @param {string} name @param {Partition} partition @returns {Channel} */
  open(name, partition) {
    const channel = new Channel(name, partition)
    this.#channels.set(name, channel)
    const queue = this.#queueOf(partition)
    queue.channels.add(channel)
    queue.open(channel)
    return channel
  }

  /** @param {string} name */
  close(name) {
    const channel = this.#channels.get(name)
    if (!channel) return
    const queue = this.#queueOf(channel.partition)
    this.#channels.delete(name)
    queue.channels.delete(channel)
    this.#failed.delete(channel)
    if (channel.subscribed) queue.close(name)
    this.#release(channel, errors.internal)
  }

  /**
   * Sets the stream's position, which separates messages before the reply from later ones.
   * @param {Channel} channel @param {Answer} answer
   */
  setPosition(channel, { offset, epoch, batchId }) {
    channel.state = State.LIVE
    channel.offset = offset
    channel.epoch = epoch
    channel.batchId = batchId
    this.#release(channel, null)
  }

  /** @param {Channel} channel @param {Answer} answer @returns {boolean} delivered position = stream position */
  isAt({ epoch, offset, batchId }, answer) {
    return (
      epoch === '' ||
      (epoch === answer.epoch && offset === answer.offset && (offset === 0 || batchId === answer.batchId))
    )
  }

  /** @param {Channel} channel @param {(error: Error | null) => void} then gets an error if the connection is lost */
  whenLive(channel, then) {
    if (channel.state !== State.CATCHING) return then(null)
    if (!channel.partition.up) return queueMicrotask(() => then(errors.internal))
    ;(channel.waiting ??= []).push(then)
  }

  /** @param {Channel} channel @param {Error | null} error */
  #release(channel, error) {
    const { waiting } = channel
    if (waiting === null) return
    channel.waiting = null
    for (const then of waiting) then(error)
  }

  /** Receives a message of a topic. @param {string} name @param {Buffer} message valid only during the call */
  message(name, message) {
    const channel = this.#channels.get(name)
    const head = this.#head
    if (!head.read(message)) {
      const [kind] = message
      if (channel && channel.state !== State.JOINING && (kind === JOIN || kind === LEAVE)) {
        this.#events.presence(name, message.toString('utf8', 1, message.length), kind === JOIN)
      } else if (channel && kind === CLEARED) this.#events.interrupted?.(name)
      return
    }
    const { batchId, index } = head
    if (channel && channel.state !== State.JOINING) this.#publication(channel, head, message)
    this.#batches.echo(batchId, index)
  }

  /** @param {Channel} channel @param {Head} head @param {Buffer} message */
  #publication(channel, { offset, epoch, batchId, previous, end }, message) {
    if (offset > 0) {
      if (channel.state === State.CATCHING) return
      const known = channel.epoch !== ''
      const follows = epoch === channel.epoch ? previous === channel.offset : offset === 1
      if (known && !follows) return this.catchUp(channel)
      if (epoch !== channel.epoch) channel.epoch = epoch
      channel.offset = offset
      channel.batchId = batchId
    }
    this.#events.publication(channel.name, decode(message, end, offset, epoch, previous))
  }

  /** Reads missed publications. @param {Channel} channel @param {() => void} [then] also called on error */
  catchUp(channel, then) {
    const { offset, epoch, batchId } = channel
    channel.state = State.CATCHING
    const op = ['c', String(offset), epoch, batchId]
    const queue = this.#queueOf(channel.partition)
    queue.reads.add(channel.name, channel.metaTtl, op, CATCH_UP_BYTES, (error, answer) => {
      // Another read may have advanced.
      const behind = channel.state === State.CATCHING && channel.offset === offset && channel.epoch === epoch
      const follows = this.has(channel) && behind
      if (follows && !error && !answer.complete) {
        this.#deliver(channel, answer)
        return this.catchUp(channel, then)
      }
      then?.()
      if (!follows) return
      if (!error) {
        this.#deliver(channel, answer)
        channel.state = State.LIVE
        if (!answer.found) this.#events.lost(channel.name, answer.offset, answer.epoch)
      } else if (channel.partition.up) {
        // Without a connection, `up` retries.
        this.#failed.add(channel)
      }
      this.#release(channel, error)
    })
  }

  /** @param {Channel} channel @param {Answer} answer */
  #deliver(channel, answer) {
    for (const publication of answer.publications) this.#events.publication(channel.name, publication)
    channel.offset = answer.offset
    channel.epoch = answer.epoch
    channel.batchId = answer.batchId
  }

  /** Handles the reply to a subscription. @param {Channel} channel @param {Error | null} error */
  onSubscribed(channel, error) {
    if (!this.has(channel)) return
    if (error) channel.subscribed = false
    // The first subscriber needs no position: do not wait.
    else if (channel.state === State.JOINING && channel.waiting !== null) channel.state = State.LIVE
    if (channel.state !== State.CATCHING) this.#release(channel, error)
    if (error && channel.partition.up && channel.state !== State.JOINING) this.#failed.add(channel)
  }

  /** For a subscriber without a position. @param {Channel} channel @param {(error: Error | null) => void} then */
  whenSubscribed(channel, then) {
    ;(channel.waiting ??= []).push(then)
  }

  /** @param {Partition} partition its connection lost its subscriptions */
  down(partition) {
    for (const channel of [...this.#queueOf(partition).channels]) {
      channel.subscribed = false
      if (channel.state === State.LIVE) channel.state = State.CATCHING
      this.#release(channel, errors.internal)
    }
  }

  /** @param {Partition} partition usable (again) */
  up(partition) {
    const channels = [...this.#queueOf(partition).channels].filter(({ subscribed }) => !subscribed)
    this.#resume(partition, channels, 0)
  }

  /** @param {Partition} partition @param {Channel[]} channels @param {number} from */
  #resume(partition, channels, from) {
    if (from >= channels.length || !partition.up) return
    const queue = this.#queueOf(partition)
    const connection = partition.connection
    const end = Math.min(channels.length, from + RESUME_CHUNK)
    const chunk = channels.slice(from, end)
    const interrupted = chunk.filter(({ state }) => state === State.CATCHING)
    let left = 1
    const then = () => {
      if (--left > 0 || partition.connection !== connection) return
      for (const channel of interrupted) if (this.has(channel)) this.#events.interrupted?.(channel.name)
      this.#resume(partition, channels, end)
    }
    for (const channel of chunk) {
      if (!this.has(channel) || channel.subscribed) continue
      queue.open(channel)
      if (channel.epoch !== '') {
        left++
        this.catchUp(channel, then)
      } else if (channel.state === State.CATCHING) channel.state = State.LIVE
    }
    queue.after(then)
  }

  /** Call once a second: retries refused subscriptions and failed reads. */
  tick() {
    for (const channel of this.#failed) {
      this.#failed.delete(channel)
      if (!this.has(channel) || !channel.partition.up) continue
      if (!channel.subscribed) this.#queueOf(channel.partition).open(channel)
      if (channel.epoch !== '') this.catchUp(channel)
      else if (channel.state === State.CATCHING) channel.state = State.LIVE
    }
  }
}
