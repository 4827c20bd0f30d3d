// Denials in Redis, read and written by the primary of each node.

import { errors } from '../../../base/errors.js'
import { KINDS, keyOf, parseKey } from '../denylist.js'
import { parseTargets } from './address.js'
import { replyTo } from './partition.js'
import { Placement } from './placement.js'
import { denialRead, denialWrite } from './scripts.js'

/** @import { RedisConnection } from '../../../config/redis-shards.js' */
/** @import { Denial, DenialStore, StoreParts } from '../denials/contract.js' */
/** @import { Script } from './scripts.js' */

/** Of a cluster, without an option: the default of the engine. */
const PARTITIONS = 128
const TICK_MS = 1000
const PAGE = 500
/** Time for the first reading. Redis was reachable before. */
const OPEN_TIMEOUT_MS = 15_000

/** @implements {DenialStore} */
export class RedisDenials {
  #placement
  #partition
  #limits
  #apply
  #log
  #block
  /** Number of the last change read. */
  #seq = 0
  /** @type {Promise<void> | null} */
  #reading = null
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #reachable = true
  /** @type {(() => void) | null} */
  #onUp = null

  /**
   * @param {RedisConnection & {prefix: string, sharded_pub_sub_partitions?: number}} redis
   * @param {string} block its path in the configuration @param {StoreParts} parts
   */
  constructor(redis, block, { limits, apply, log }) {
    this.#block = block
    this.#limits = limits
    this.#apply = apply
    this.#log = log
    this.#placement = new Placement(
      // Other data is on the first server.
      parseTargets(redis, block).slice(0, 1),
      { prefix: redis.prefix, partitions: redis.sharded_pub_sub_partitions ?? PARTITIONS },
      {
        up: partition => partition === this.#partition && this.#up(),
        down() {},
        channelMessage() {},
        controlMessage() {},
      },
      log,
    )
    this.#partition = this.#placement.control
  }

  async open() {
    const up = new Promise(resolve => (this.#onUp = () => resolve(true)))
    this.#placement.connect()
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const late = new Promise(resolve => (timer = setTimeout(resolve, OPEN_TIMEOUT_MS, false)))
    try {
      const reached = await Promise.race([up, late])
      if (!reached) throw new Error('not reachable')
      await this.#readNew()
    } catch (error) {
      this.#placement.close()
      throw new Error(`${this.#block}: cannot read blocked users and revoked tokens: ${error.message}`)
    } finally {
      clearTimeout(timer)
      this.#onUp = null
    }
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  #up() {
    if (this.#onUp === null) this.#tick()
    else this.#onUp()
  }

  #tick() {
    this.#placement.probe()
    this.#readNew().then(
      () => this.#reached(true),
      error => this.#reached(false, error.message),
    )
  }

  /** @param {boolean} reachable @param {string} [reason] */
  #reached(reachable, reason) {
    if (reachable === this.#reachable) return
    this.#reachable = reachable
    if (reachable) this.#log.info({}, 'blocked users and revoked tokens are read from redis again')
    else
      this.#log.warn(
        { option: this.#block, reason },
        'blocked users and revoked tokens: redis does not answer, the last list stays in force',
      )
  }

  /** @param {Script} script @param {(string | number)[]} args @returns {Promise<any>} */
  #run(script, args) {
    const names = ['seq', 'log', 'expiry', '0', '1', '2']
    const keys = names.map(name => this.#partition.key('denied', name))
    return replyTo(done => this.#partition.run(script, keys, args, done))
  }

  /** Reads the changes since the last one. @returns {Promise<void>} */
  #readNew() {
    return (this.#reading ??= this.#readPages().finally(() => {
      this.#reading = null
    }))
  }

  async #readPages() {
    for (;;) {
      const denials = (await this.#run(denialRead, [this.#seq, PAGE])).map(denialOf)
      if (denials.length === 0) return
      this.#apply(denials)
      this.#seq = /** @type {Denial} */ (denials.at(-1)).seq
      if (denials.length < PAGE) return
    }
  }

  /** @type {DenialStore['change']} */
  async change(denial) {
    const { kind, expireAt, issuedBefore, removed } = denial
    const args = [expireAt, issuedBefore, removed ? 1 : 0, this.#limits[kind]]
    const reply = await this.#run(denialWrite, [KINDS.indexOf(kind), keyOf(denial), ...args]).catch(() => {
      throw errors.internal
    })
    if (reply.length === 0) throw errors.limitExceeded
    const [seq, until, before] = reply.map(Number)
    const kept = { ...denial, seq, expireAt: until, issuedBefore: before }
    this.#apply([kept])
    return kept
  }

  async close() {
    clearInterval(this.#timer)
    this.#placement.close()
  }
}

/** @param {Buffer[]} row of denialRead @returns {Denial} */
function denialOf([member, number, value]) {
  const text = member.toString()
  const kind = KINDS[Number(text[0])]
  const [key, channel] = parseKey(kind, text.slice(1))
  const [, expireAt = 0, issuedBefore = 0] = value.length > 0 ? value.toString().split(' ').map(Number) : []
  return { kind, key, channel, seq: Number(number), expireAt, issuedBefore, removed: value.length === 0 }
}
