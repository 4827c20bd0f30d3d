import { errors } from '../../../base/errors.js'
import { NOT_SUBSCRIBED } from '../contract.js'
import { Channels, State } from './channels.js'
import { decode, encode } from './envelope.js'
import { replyTo } from './partition.js'
import { PendingBatches } from './publishes.js'
import { PartitionQueue } from './queue.js'
import { NO_ANSWER } from './reads.js'

/** @import { PublishOptions, PubSub, SubscribeAnswer, SubscribeWants } from '../contract.js' */
/** @import { Channel } from './channels.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { Partition } from './partition.js' */
/** @import { RedisPresence } from './presence.js' */
/** @import { Item } from './publishes.js' */
/** @import { Answer } from './reads.js' */

const TICK_MS = 1000
/** Reads until a position that differs from the delivered one is accepted. */
const MAX_ATTEMPTS = 3

/**
 *   subscribe, publish, history -> PartitionQueue -> Connection -> Redis
 *   Redis -> Connection -> Channels -> BrokerEvents
 * @implements {PubSub}
 */
export class RedisPubSub {
  #parts
  #placement
  #presence
  batches
  /** @type {Channels} */
  #channels
  /** @type {Map<Partition, PartitionQueue>} */
  #queues = new Map()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {Pick<RedisParts, 'placement' | 'uid' | 'events' | 'republishing' | 'log'> & {presence: RedisPresence,
   *   emptyTtl: number}} parts `emptyTtl`: lifetime of the position of an unpublished channel after its last use, ms
   */
  constructor(parts) {
    this.#parts = parts
    this.#placement = parts.placement
    this.#presence = parts.presence
    this.batches = new PendingBatches(parts.uid)
    this.#channels = new Channels(parts.events, partition => this.#queue(partition), this.batches)
  }

  /** Whether a publication sent now is echoed. @param {string} name */
  isSubscribed = name => this.#channels.get(name)?.subscribed === true

  start() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#placement.connect()
  }

  close() {
    clearInterval(this.#timer)
    this.#placement.close()
  }

  #tick() {
    this.#channels.tick()
    this.batches.tick()
    this.#placement.probe()
  }

  /** @param {Partition} partition usable (again) */
  up(partition) {
    this.#channels.up(partition)
  }

  /** @param {Partition} partition its connection is lost */
  down(partition) {
    this.batches.down(partition)
    this.#channels.down(partition)
  }

  /** @param {string} channel @param {Buffer} message valid only during the call */
  message(channel, message) {
    this.#channels.message(channel, message)
  }

  /** @param {Partition} partition */
  #queue(partition) {
    let queue = this.#queues.get(partition)
    if (!queue) {
      const { emptyTtl, log } = this.#parts
      const onAccepted = (/** @type {Item} */ item) => this.#republish(item)
      queue = new PartitionQueue(partition, this.#channels, this.batches, emptyTtl, onAccepted, log)
      this.#queues.set(partition, queue)
    }
    return queue
  }

  /** @type {PubSub['subscribe']} */
  subscribe(name, wants, done) {
    const partition = this.#placement.of(name)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, NOT_SUBSCRIBED))
    const channel = (!wants.first && this.#channels.get(name)) || this.#channels.open(name, partition)
    const listed = wants.client !== ''
    // A client that resubscribes stays present if that fails.
    const present = listed && this.#presence.has(name, wants.client)
    /** @type {Error | null} */
    let failed = null
    let answer = NOT_SUBSCRIBED
    let left = 1
    const finish = (/** @type {Error | null} */ error) => {
      failed ??= error
      if (--left > 0) return
      if (!failed) channel.confirmed = true
      else if (wants.first && !channel.confirmed && this.#channels.has(channel)) this.#channels.close(name)
      if (failed && listed && !present) this.#presence.remove(name, wants.client)
      done(failed, failed ? NOT_SUBSCRIBED : answer)
    }
    let listing = listed
    /** Whether the position arrived before the presence and is outdated. */
    let early = false
    const read = () =>
      this.#read(channel, wants, wants.metaTtl, 1, (error, { offset, epoch, found, publications }) => {
        early = listing && !error
        if (early) return
        const recovered = found && wants.recover !== null
        answer = { offset, epoch, recovered, publications: recovered ? publications : [] }
        finish(error)
      })
    if (listed) {
      left++
      this.#presence.add(name, wants.client, wants.info, wants, error => {
        listing = false
        finish(error)
        if (early && error) finish(null)
        else if (early) read()
      })
    }
    if (wants.position) read()
    else if (channel.state === State.JOINING) this.#channels.whenSubscribed(channel, finish)
    else queueMicrotask(() => finish(null))
  }

  /**
   * @param {Channel} channel @param {SubscribeWants | null} wants @param {number} metaTtl @param {number} attempt
   * @param {(error: Error | null, answer: Answer) => void} done
   */
  #read(channel, wants, metaTtl, attempt, done) {
    channel.metaTtl = metaTtl
    this.#channels.whenLive(channel, error => {
      if (error) return done(error, NO_ANSWER)
      const maxBytes = wants?.recover?.maxBytes ?? 0
      this.#queue(channel.partition).reads.add(
        channel.name,
        metaTtl,
        opOf(wants),
        maxBytes,
        (error, answer) => {
          if (error) return done(error, answer)
          // The first subscription failed: no publications will arrive.
          const follows =
            this.#channels.has(channel) && (channel.subscribed || channel.state !== State.JOINING)
          if (!follows) return done(wants && errors.internal, answer)
          const known = channel.state !== State.JOINING
          if (known && attempt < MAX_ATTEMPTS && !this.#channels.isAt(channel, answer)) {
            if (channel.state === State.LIVE) this.#channels.catchUp(channel)
            return this.#read(channel, wants, metaTtl, attempt + 1, done)
          }
          this.#channels.setPosition(channel, answer)
          if (wants?.latest) answer.publications.reverse()
          done(null, answer)
        },
      )
    })
  }

  /** @type {PubSub['unsubscribe']} */
  unsubscribe(name) {
    this.#channels.close(name)
  }

  /** @type {PubSub['publish']} */
  publish(name, data, options, done) {
    const partition = this.#placement.of(name)
    const { republish } = options
    const full = republish ? republish.block & this.#parts.republishing.full : 0
    if (!partition.up || full !== 0) return queueMicrotask(() => done(errors.internal, 0, ''))
    this.#queue(partition).publishes.publication(
      name,
      encode(data, options, options.keyed ?? null),
      options,
      done,
    )
  }

  /** Called in reply order: that of this worker's publications in a channel. @param {Item} item */
  #republish(item) {
    const options = /** @type {PublishOptions} */ (item.options)
    const { done, channel, offset, epoch } = item
    const { republishing } = this.#parts
    const { data } = decode(/** @type {Buffer} */ (item.body), 0, offset, epoch, offset - 1)
    if (!options.republish?.wait || done === null)
      return republishing.hand(channel, data, options, offset, epoch, null)
    // `done` waits for the echo and the confirm.
    let open = 2
    /** @type {Error | null} */
    let failed = null
    const finish = (/** @type {Error | null} */ error) => {
      failed ??= error
      if (--open > 0) return
      if (failed) done(failed, 0, '')
      else done(null, offset, epoch)
    }
    item.done = finish
    republishing.hand(channel, data, options, offset, epoch, finish)
  }

  /** @type {PubSub['announce']} */
  announce(name, info, joined) {
    this.#queue(this.#placement.of(name)).publishes.event(name, `${joined ? 'j' : 'l'}${info}`)
  }

  /** @type {PubSub['history']} */
  history(name, { limit, sinceOffset, sinceEpoch = '', reverse = false, maxBytes = 0 }, metaTtl) {
    const since = sinceOffset === undefined ? '' : String(sinceOffset)
    const op = ['h', String(limit), since, sinceEpoch, reverse ? '-' : '+']
    const partition = this.#placement.of(name)
    if (partition.held) return Promise.reject(errors.internal)
    const queue = this.#queue(partition)
    return new Promise((resolve, reject) =>
      queue.reads.add(
        name,
        metaTtl,
        op,
        maxBytes,
        (error, { found, publications, offset, epoch, complete }) => {
          if (error) reject(error)
          else if (found) resolve({ publications, offset, epoch, complete })
          else reject(errors.unrecoverablePosition)
        },
      ),
    )
  }

  /** @type {PubSub['position']} */
  position(name, metaTtl, done) {
    const partition = this.#placement.of(name)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, 0, ''))
    const channel = this.#channels.get(name)
    const then = (/** @type {Error | null} */ error, /** @type {Answer} */ { offset, epoch }) =>
      done(error, offset, epoch)
    if (channel) this.#read(channel, null, metaTtl, 1, then)
    else this.#queue(partition).reads.add(name, metaTtl, ['p'], 0, then)
  }

  /** @type {PubSub['removeHistory']} */
  async removeHistory(name) {
    const partition = this.#placement.of(name)
    await replyTo(done => partition.send('del', [partition.key('stream', name)], done))
  }
}

/** @param {SubscribeWants | null} wants @returns {string[]} operation of `read` in streams.lua */
function opOf(wants) {
  if (!wants?.recover) return ['p']
  const { offset, epoch, limit } = wants.recover
  return wants.latest ? ['l', String(limit)] : ['s', String(offset), epoch, String(limit)]
}
