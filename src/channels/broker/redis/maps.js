import { errors } from '../../../base/errors.js'
import { MapCounter } from '../../../metrics/map-counter.js'
import { IDEMPOTENCY_TTL } from '../contract.js'
import { newEpoch } from '../epoch.js'
import { decodeEntry, encode } from './envelope.js'
import { replyTo } from './partition.js'
import * as scripts from './scripts.js'

/** @import { MapDone, MapPublish, MapResult, MapRules, Maps, MapWrite, StatePage, Suppressed } from '../contract.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { Partition } from './partition.js' */
/** @import { Item, PendingBatches } from './publishes.js' */
/** @import { Script } from './scripts.js' */

const TICK_MS = 1000
const SWEEPER_LEASE = 5000
/** Maximum channels and keys swept per call, which blocks Redis. */
const SWEPT_CHANNELS = 100
const SWEPT_KEYS = 200
/** Keys of a dead worker taken per call, and workers found per look. */
const OWNED_KEYS = 100
const ORPHANS = 10
/** Lease of a worker with keys to remove, ms: for deaths that no other worker has seen. It is extended meanwhile. */
const OWNER_LEASE = 600_000
const EXTEND_TICKS = 60
/** Look for such deaths, in each period of EXTEND_TICKS: others have extended their leases after an outage. */
const ORPHAN_TICK = 30
/** Maximum bytes of a page, and pages in transit: they delay publications. */
const PAGE_BYTES = 256 * 1024
const MAX_PAGES = 4

/** @type {MapResult} */
const NO_RESULT = Object.freeze({ offset: 0, epoch: '', suppressed: '', current: null })

/** @type {Item} */
const NO_ITEM = Object.freeze({
  flags: '',
  channel: '',
  body: '',
  options: null,
  done: null,
  awaitsEcho: false,
  answered: false,
  offset: 0,
  epoch: '',
})

/** @param {MapRules} rules */
const textOf = ({ streamSize, streamTtl, metaTtl, keyTtl }) =>
  `${streamSize} ${streamTtl} ${Math.max(metaTtl, streamTtl, keyTtl)} ${keyTtl}`

/**
 * Maps in Redis, see scripts/maps.lua. One worker per partition removes expired keys.
 * @implements {Maps}
 */
export class RedisMaps {
  counter = new MapCounter()
  #parts
  #placement
  #batches
  /** Ticks until this worker may be the sweeper of a partition. @type {Map<Partition, number>} */
  #rests = new Map()
  /** @type {Set<Partition>} partitions being swept */
  #sweeping = new Set()
  /** Ticks since a partition is up. @type {Map<Partition, number>} */
  #ticks = new Map()
  #pages = 0
  /** @type {(() => void)[]} reads waiting for others; each belongs to a client's command or a request */
  #waiting = []
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {Pick<RedisParts, 'placement' | 'uid' | 'log'> & {batches: PendingBatches, emptyTtl: number,
   *   isSubscribed: (channel: string) => boolean}} parts `emptyTtl`: as of RedisPubSub; `isSubscribed`: changes of the
   *   channel are echoed
   */
  constructor(parts) {
    this.#parts = parts
    this.#placement = parts.placement
    this.#batches = parts.batches
  }

  start() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  close() {
    clearInterval(this.#timer)
  }

  /** @param {Partition} partition @param {string} channel */
  #keys(partition, channel) {
    const kinds = ['meta', 'stream', 'map', 'map-keys', 'map-expiry', 'map-versions']
    return [...kinds.map(kind => partition.key(kind, channel)), partition.key('maps', 'due')]
  }

  /** @param {Partition} partition @param {string} uid */
  #owned(partition, uid) {
    return partition.key('owned', uid)
  }

  /** @param {Partition} partition */
  #owners(partition) {
    return partition.key('maps', 'owners')
  }

  /** @type {Maps['publish']} */
  publish(channel, key, data, rules, options, done) {
    const { version = 0n, versionEpoch = '', keyMode = '', refresh, expected, append = false } = options
    const { json = true, streamData = null, streamJson = true, maxBytes = 0, owned } = options
    const keyed = { key, removed: false, append, time: Date.now() }
    // With other data for the stream, subscribers do not have the value.
    const body = encode(data, streamData === null ? options : { ...options, delta: false }, keyed)
    const streamBody =
      streamData === null ? '' : encode(streamData, { ...options, json: streamJson, delta: false }, keyed)
    if (append && json && !/^\s*".*"\s*$/s.test(String(data)))
      return queueMicrotask(() => done(errors.badRequest, NO_RESULT))
    const partition = this.#placement.of(channel)
    const more = [
      version ? String(version).padStart(20, '0') : '',
      versionEpoch,
      keyMode === 'if_new' ? 'n' : keyMode === 'if_exists' ? 'e' : '',
      refresh ? '1' : '',
      expected ? String(expected.offset) : '',
      expected?.epoch ?? '',
      append ? (options.bytes ? 'b' : '1') : '',
      String(maxBytes),
      owned ? this.#parts.uid : '',
      String(OWNER_LEASE),
    ]
    const keys = owned ? [this.#owned(partition, this.#parts.uid), this.#owners(partition)] : []
    this.#write(scripts.mapPublish, channel, key, rules, options, [body, streamBody], more, keys, done)
  }

  /** @type {Maps['remove']} */
  remove(channel, key, rules, options, done) {
    const keyed = { key, removed: true, append: false, time: Date.now() }
    const body = options.tags ? encode('', options, keyed) : ''
    const owned = this.#owned(this.#placement.of(channel), this.#parts.uid)
    this.#write(scripts.mapRemove, channel, key, rules, options, [body], [''], [owned], done)
  }

  /**
   * @param {Script} script @param {string} channel @param {string} key @param {MapRules | null} rules
   *   null: those of the last write
   * @param {MapPublish | MapWrite} options @param {(string | Buffer)[]} bodies @param {string[]} more arguments
   * @param {string[]} moreKeys @param {MapDone} done
   */
  #write(script, channel, key, rules, { idempotencyKey }, bodies, more, moreKeys, done) {
    const partition = this.#placement.of(channel)
    if (!partition.up) return queueMicrotask(() => done(errors.internal, NO_RESULT))
    const batchId = this.#batches.nextId()
    const keys = this.#keys(partition, channel)
    if (idempotencyKey) keys.push(partition.key('result', `${channel.length}.${channel}.${idempotencyKey}`))
    keys.push(...moreKeys)
    const topic = partition.key('channel', channel)
    const head = [partition.publishCommand, topic, batchId, newEpoch(), partition.branch ?? '', channel]
    const args = [
      ...head,
      rules ? textOf(rules) : '',
      key,
      ...bodies,
      idempotencyKey ? String(IDEMPOTENCY_TTL) : '',
      ...more,
    ]
    /** @type {Item} */
    const item = { ...NO_ITEM, channel, awaitsEcho: this.#parts.isSubscribed(channel) }
    if (item.awaitsEcho) this.#batches.open(batchId, [item], partition)
    partition.run(script, keys, args, (error, reply) => {
      const [, late, line] = /** @type {string[]} */ (/^(\+?)(.*)$/.exec(error ? '' : String(reply[0])))
      const written = /^\d/.test(line)
      if (late) this.counter.expiries++
      if (written) this.counter[script === scripts.mapRemove ? 'removals' : 'publishes']++
      if (!written) {
        this.#batches.close(batchId)
        if (line === '?') return done(errors.badRequest, NO_RESULT)
        if (error) return done(errors.internal, NO_RESULT)
      }
      const [, suppressed = '', offset, epoch] = /** @type {string[]} */ (
        /^(?:=(\w+) )?(\d+) (\w*)$/.exec(line)
      )
      const result = {
        offset: Number(offset),
        epoch,
        suppressed: /** @type {Suppressed} */ (suppressed),
        current: reply.length > 1 ? decodeEntry(reply[1], epoch) : null,
      }
      const finish = () => done(null, result)
      if (!written || !item.awaitsEcho) {
        this.#batches.close(batchId)
        return finish()
      }
      item.answered = true
      item.done = finish
    })
  }

  /** @type {Maps['state']} */
  async state(channel, query, rules) {
    const { cursor, limit, key, epoch, upTo, maxBytes } = query
    const partition = this.#placement.of(channel)
    if (!partition.up) throw errors.internal
    const metaTtl = rules.streamSize > 0 ? Math.max(rules.metaTtl, rules.streamTtl, rules.keyTtl) : 0
    const bytes = Math.min(maxBytes || PAGE_BYTES, PAGE_BYTES)
    const args = [newEpoch(), partition.branch ?? '', metaTtl, this.#parts.emptyTtl, cursor, limit]
    const reply = await this.#inTurn(() =>
      replyTo(done =>
        partition.run(
          scripts.mapState,
          this.#keys(partition, channel),
          [...args, key, epoch, upTo, bytes],
          done,
        ),
      ),
    )
    const [position, next, ...values] = /** @type {Buffer[]} */ (reply)
    if (String(position) === '!') throw errors.unrecoverablePosition
    const [offset, current] = String(position).split(' ')
    /** @type {StatePage} */
    const page = { entries: [], text: null, cursor: String(next), offset: Number(offset), epoch: current }
    for (const value of values) page.entries.push(decodeEntry(value, current))
    return page
  }

  /** Limits pages in transit. @template T @param {() => Promise<T>} read @returns {Promise<T>} */
  async #inTurn(read) {
    if (this.#pages === MAX_PAGES) await new Promise(resolve => this.#waiting.push(() => resolve(null)))
    else this.#pages++
    try {
      return await read()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#pages--
    }
  }

  /** @type {Maps['stats']} */
  async stats(channel) {
    const partition = this.#placement.of(channel)
    const keys = this.#keys(partition, channel)
    return { keys: await replyTo(done => partition.run(scripts.mapStats, keys, [], done)) }
  }

  /** @type {Maps['clear']} */
  async clear(channel) {
    const partition = this.#placement.of(channel)
    const keys = this.#keys(partition, channel)
    const args = [newEpoch(), channel, partition.publishCommand, partition.key('channel', channel)]
    await replyTo(done => partition.run(scripts.mapClear, keys, args, done))
  }

  /** Removes expired keys in the partitions of which this worker is the sweeper. */
  #tick() {
    for (const partition of this.#placement.partitions) {
      const ticks = partition.up ? (this.#ticks.get(partition) ?? -1) + 1 : -1
      this.#ticks.set(partition, ticks)
      if (ticks >= 0 && ticks % EXTEND_TICKS === 0)
        partition.run(scripts.mapOwner, [this.#owners(partition)], [this.#parts.uid, OWNER_LEASE], () => {})
      const rest = this.#rests.get(partition) ?? 0
      if (rest > 0) this.#rests.set(partition, rest - 1)
      else if (partition.up && !this.#sweeping.has(partition)) {
        this.#sweeping.add(partition)
        this.#sweep(partition)
          .catch(() => {})
          .finally(() => this.#sweeping.delete(partition))
      }
    }
  }

  /** @param {Partition} partition */
  async #sweep(partition) {
    const keys = [partition.key('maps', 'due'), partition.key('maps', 'sweeper')]
    const args = [this.#parts.uid, SWEEPER_LEASE, SWEPT_CHANNELS]
    const due = await replyTo(done => partition.run(scripts.mapDue, keys, args, done))
    // Another worker is the sweeper.
    if (!Array.isArray(due)) return this.#rests.set(partition, Math.ceil(Math.max(0, due) / 1000))
    if (/** @type {number} */ (this.#ticks.get(partition)) % EXTEND_TICKS === ORPHAN_TICK)
      await this.#removeOrphaned(partition)
    for (const name of due) {
      const channel = String(name)
      const head = [partition.publishCommand, partition.key('channel', channel)]
      for (let swept = SWEPT_KEYS; swept === SWEPT_KEYS; ) {
        const more = [this.#batches.nextId(), newEpoch(), partition.branch ?? '', channel, SWEPT_KEYS]
        swept = await replyTo(done =>
          partition.run(scripts.mapExpire, this.#keys(partition, channel), [...head, ...more], done),
        )
        this.counter.expiries += swept
      }
    }
  }

  /** Removes keys of workers that died unseen, for example with all others. @param {Partition} partition */
  async #removeOrphaned(partition) {
    const owners = [this.#owners(partition)]
    const orphans = await replyTo(done => partition.run(scripts.mapOrphans, owners, [ORPHANS], done))
    for (const uid of orphans) {
      if (String(uid) === this.#parts.uid) continue
      await this.#removeOwned(partition, String(uid))
      await replyTo(done => partition.send('zrem', [owners[0], uid], done))
    }
  }

  /** Removes the keys of a dead worker. @param {string} uid */
  workerGone(uid) {
    if (uid === this.#parts.uid) return
    for (const partition of this.#placement.partitions)
      if (partition.up) this.#removeOwned(partition, uid).catch(() => {})
  }

  /** @param {Partition} partition @param {string} uid */
  async #removeOwned(partition, uid) {
    for (let taken = OWNED_KEYS; taken === OWNED_KEYS; ) {
      const members = await replyTo(done =>
        partition.run(scripts.mapOwned, [this.#owned(partition, uid)], [OWNED_KEYS], done),
      )
      taken = members.length
      await Promise.all(members.map((/** @type {Buffer} */ member) => this.#removeMember(member, uid)))
    }
  }

  /** @param {Buffer} member `<bytes of channel> <channel><key>` @param {string} uid its owner @returns {Promise<void>} */
  #removeMember(member, uid) {
    const space = member.indexOf(' ')
    const end = space + 1 + Number(member.toString('latin1', 0, space))
    const [channel, key] = [member.toString('utf8', space + 1, end), member.toString('utf8', end)]
    return new Promise(resolve => {
      this.#write(scripts.mapRemove, channel, key, null, {}, [''], [uid], [], () => resolve())
    })
  }
}
