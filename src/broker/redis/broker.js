import { errors } from '../../errors.js'
import { newEpoch } from '../shared.js'
import { parseTargets } from './address.js'
import { Channels, State } from './channels.js'
import { Control } from './control.js'
import { encode } from './envelope.js'
import { Placement } from './placement.js'
import { Presence } from './presence.js'
import { Batches } from './publishes.js'
import { PartitionQueue } from './queue.js'
import { NO_ANSWER } from './reads.js'
import { Users } from './users.js'

/**
 * @typedef {import('../contract.js').Broker} Broker
 * @typedef {import('../contract.js').SubscribeWants} SubscribeWants
 * @typedef {import('../contract.js').SubscribeAnswer} SubscribeAnswer
 * @typedef {import('./channels.js').Channel} Channel
 * @typedef {import('./partition.js').Partition} Partition
 * @typedef {import('./reads.js').Answer} Answer
 */

const TICK_MS = 1000
/** A position that keeps disagreeing with what has been delivered is taken as it is. */
const MAX_ATTEMPTS = 3
/** @type {SubscribeAnswer} */
const NOTHING = Object.freeze({ offset: 0, epoch: '', recovered: false, publications: [] })

/**
 * The Redis engine: the broker contract over one or more Redis servers, sentinel sets or clusters. One in each worker; workers of
 * one node call each other over the node's own bus, which works without Redis.
 *
 *   subscribe, publish, history -> PartitionQueue -> Line -> Redis
 *   Redis -> Line -> Channels -> BrokerEvents
 *
 * @implements {Broker}
 */
export class RedisBroker {
  #placement
  /** @type {Channels} */
  #channels
  #presence
  #users
  #control
  #local
  #node
  #log
  #batches
  /** @type {Map<Partition, PartitionQueue>} */
  #queues = new Map()
  #timer
  #reached = () => {}

  /**
   * @param {object} parts
   * @param {any} parts.config `engine.redis`
   * @param {Broker} parts.local reaches the other workers of this node
   * @param {import('../contract.js').BrokerEvents} parts.events
   * @param {string} parts.node id of this node
   * @param {number} parts.worker index of this worker
   * @param {import('pino').Logger} parts.log
   */
  constructor({ config, local, events, node, worker, log }) {
    const uid = newEpoch()
    this.#local = local
    this.#node = node
    this.#log = log
    this.#batches = new Batches(uid)
    const placement = new Placement(
      parseTargets(config),
      { prefix: config.prefix, partitions: config.sharded_pub_sub_partitions },
      {
        up: partition => this.#up(partition),
        down: partition => this.#down(partition),
        channelMessage: (channel, message) => this.#channels.message(channel, message),
        controlMessage: (topic, message) => this.#control.message(topic, message),
      },
      log,
    )
    this.#placement = placement
    this.#channels = new Channels(events, partition => this.#queue(partition), this.#batches)
    this.#presence = new Presence({ placement, uid, ttl: config.presence_ttl, log })
    this.#users = new Users({ placement, uid, log })
    this.#control = new Control({
      placement,
      uid,
      node,
      worker,
      events,
      log,
      joined: () => this.#ready() && this.#reached(),
    })
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    placement.connect()
  }

  /**
   * @param {Partition} partition
   * @returns {PartitionQueue}
   */
  #queue(partition) {
    let queue = this.#queues.get(partition)
    if (!queue) {
      queue = new PartitionQueue(partition, this.#channels, this.#batches, this.#log)
      this.#queues.set(partition, queue)
    }
    return queue
  }

  /** @param {Partition} partition */
  #up(partition) {
    this.#control.up(partition)
    this.#users.up(partition)
    this.#channels.up(partition)
    this.#presence.up(partition)
    if (this.#ready()) this.#reached()
  }

  /** @param {Partition} partition */
  #down(partition) {
    this.#batches.release(partition)
    this.#channels.down(partition)
    this.#control.down(partition)
  }

  #tick() {
    this.#channels.tick()
    this.#batches.tick()
    this.#presence.tick()
    this.#users.tick()
    this.#control.tick()
    this.#placement.probe()
  }

  /** A worker of this node has ended. @param {number} worker index */
  gone(worker) {
    this.#control.gone(worker)
  }

  /** This worker is about to end: the others need not find out by themselves. */
  leave() {
    this.#control.leave()
  }

  /** Ends all connections. */
  close() {
    clearInterval(this.#timer)
    this.#placement.close()
  }

  /**
   * @param {number} patience ms
   * @returns {Promise<void>} when everything is within reach, or the patience is over
   */
  reached(patience) {
    if (this.#ready()) return Promise.resolve()
    return new Promise(resolve => {
      this.#reached = resolve
      setTimeout(resolve, patience)
    })
  }

  #ready() {
    return this.#placement.up && this.#control.ready
  }

  ready() {
    return this.#ready() && this.#local.ready()
  }

  /** @type {Broker['subscribe']} */
  subscribe(name, wants, done) {
    const partition = this.#placement.of(name)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, NOTHING))
    const channel = (!wants.first && this.#channels.get(name)) || this.#channels.open(name, partition)
    const listed = wants.client !== ''
    // A client that subscribes anew stays present when that fails.
    const present = listed && this.#presence.has(name, wants.client)
    /** @type {Error | null} */
    let failed = null
    let answer = NOTHING
    let left = 1
    const finish = (/** @type {Error | null} */ error) => {
      failed ??= error
      if (--left > 0) return
      if (!failed) channel.followed = true
      else if (wants.first && !channel.followed && this.#channels.has(channel)) this.#channels.close(name)
      if (failed && listed && !present) this.#presence.remove(name, wants.client)
      done(failed, failed ? NOTHING : answer)
    }
    let listing = listed
    /** Whether the position was there before the presence, and is of the past when that is. */
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
      this.#presence.add(name, wants.client, wants.info, wants.leave, error => {
        listing = false
        finish(error)
        if (early && error) finish(null)
        else if (early) read()
      })
    }
    if (wants.position) {
      read()
    } else if (channel.state === State.JOINING) this.#channels.whenSubscribed(channel, finish)
    else queueMicrotask(() => finish(null))
  }

  /**
   * Reads where the stream of a channel that is subscribed to is, in stream order.
   * @param {Channel} channel
   * @param {SubscribeWants | null} wants
   * @param {number} metaTtl
   * @param {number} attempt
   * @param {(error: Error | null, answer: Answer) => void} done
   */
  #read(channel, wants, metaTtl, attempt, done) {
    channel.metaTtl = metaTtl
    this.#channels.whenLive(channel, error => {
      if (error) return done(error, NO_ANSWER)
      this.#queue(channel.partition).read(channel.name, metaTtl, opOf(wants), (error, answer) => {
        if (error) return done(error, answer)
        // The first subscription has failed, or was refused: nothing that is published comes.
        const follows = this.#channels.has(channel) && (channel.subscribed || channel.state !== State.JOINING)
        if (!follows) return done(wants && errors.internal, answer)
        const known = channel.state !== State.JOINING
        if (known && attempt < MAX_ATTEMPTS && !this.#channels.agrees(channel, answer)) {
          if (channel.state === State.LIVE) this.#channels.catchUp(channel)
          return this.#read(channel, wants, metaTtl, attempt + 1, done)
        }
        this.#channels.place(channel, answer)
        if (wants?.latest) answer.publications.reverse()
        done(null, answer)
      })
    })
  }

  /** @type {Broker['unsubscribe']} */
  unsubscribe(name) {
    this.#channels.close(name)
  }

  /** @type {Broker['publish']} */
  publish(name, data, options, done) {
    const partition = this.#placement.of(name)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, 0, ''))
    this.#queue(partition).publication(name, encode(data, options), options, done)
  }

  /** @type {Broker['announce']} */
  announce(name, info, joined) {
    this.#queue(this.#placement.of(name)).event(name, `${joined ? 'j' : 'l'}${info}`)
  }

  /** @type {Broker['removePresence']} */
  removePresence(name, client) {
    this.#presence.remove(name, client)
  }

  /** @type {Broker['presence']} */
  presence(name) {
    return this.#presence.list(name)
  }

  /** @type {Broker['presenceStats']} */
  presenceStats(name) {
    return this.#presence.stats(name)
  }

  /** @type {Broker['history']} */
  history(name, { limit, sinceOffset, sinceEpoch = '', reverse = false }, metaTtl) {
    const since = sinceOffset === undefined ? '' : String(sinceOffset)
    const op = ['h', String(limit), since, sinceEpoch, reverse ? '-' : '+']
    return new Promise((resolve, reject) =>
      this.#queue(this.#placement.of(name)).read(
        name,
        metaTtl,
        op,
        (error, { found, publications, offset, epoch }) => {
          if (error) reject(error)
          else if (found) resolve({ publications, offset, epoch })
          else reject(errors.unrecoverablePosition)
        },
      ),
    )
  }

  /** @type {Broker['position']} */
  position(name, metaTtl, done) {
    const partition = this.#placement.of(name)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, 0, ''))
    const channel = this.#channels.get(name)
    const then = (/** @type {Error | null} */ error, /** @type {Answer} */ { offset, epoch }) =>
      done(error, offset, epoch)
    if (channel) this.#read(channel, null, metaTtl, 1, then)
    else this.#queue(partition).read(name, metaTtl, ['p'], then)
  }

  /** @type {Broker['removeHistory']} */
  removeHistory(name) {
    const partition = this.#placement.of(name)
    return new Promise((resolve, reject) =>
      partition.send('del', [partition.key('stream', name)], error =>
        error ? reject(error) : resolve(undefined),
      ),
    )
  }

  /** @type {Broker['survey']} */
  survey(op, params) {
    return this.#control.survey(op, params)
  }

  /** How many nodes are one gateway, this one included; 0 when that is not known yet. */
  get nodes() {
    return this.#control.nodes
  }

  /** @type {Broker['call']} */
  call(node, worker, request, done) {
    if (node === '' || node === this.#node) this.#local.call('', worker, request, done)
    else this.#control.call(node, worker, request, done)
  }

  /** @type {Broker['claimUser']} */
  claimUser(user, limit, done) {
    if (this.#placement.control.up) this.#users.claim(user, limit, done)
    else queueMicrotask(() => done(errors.internal, false))
  }

  /** @type {Broker['releaseUser']} */
  releaseUser(user) {
    this.#users.release(user)
  }
}

/**
 * @param {SubscribeWants | null} wants
 * @returns {string[]} what read.lua is asked for
 */
function opOf(wants) {
  if (!wants?.recover) return ['p']
  const { offset, epoch, limit } = wants.recover
  return wants.latest ? ['l', String(limit)] : ['s', String(offset), epoch, String(limit)]
}
