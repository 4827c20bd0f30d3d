// Operation rate limits: token buckets of sessions, of users in this worker, and of users in Redis.
//
//   command -> client_command -> user_command -> redis_user_command -> handler
//                 | 111             | 111            | 111
//
// Nothing is stored of a client before its first command with a limit.

import { isDeepStrictEqual } from 'node:util'
import { errors } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { blocksOf, methodOverrides } from '../../config/rate-limits.js'
import { SubscriptionType } from '../protocol/requests.js'
import { ACK } from './acks.js'
import { SubRefresh } from './commands/track.js'
import { charge, Limit, untilFull } from './token-buckets.js'

/** @import { RateStore } from '../../channels/broker/contract.js' */
/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { CommandBlock, LimitBlock } from '../../config/rate-limits.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { ChannelRules } from '../auth/channel-rules.js' */
/** @import { Session } from './session.js' */
/** @import { Owner } from './token-buckets.js' */

export const MAX_USERS = 200_000
/** Minimum time between two checks whether the buckets of a user are full, ms. */
const MIN_CHECK_MS = 1000

/** Counted, never refused: SDKs reconnect after such an error, and the command saves work. */
const ALWAYS_ALLOWED = new Set(['unsubscribe', 'untrack'])
/** Result of `check`: Redis decides. */
export const IN_REDIS = new Error('undecided')

/** The limits of all layers. Ids remain, because tokens outlive reloads. */
class Limits {
  /** By key. @type {Map<string, number>} */
  #ids = new Map()
  /** By id; null: not in the current configuration. @type {(Limit | null)[]} */
  current = []

  clear() {
    this.current.fill(null)
  }

  /** @param {string} label @param {string | null} override @param {LimitBlock} block @returns {Limit | null} */
  create(label, override, { enabled, buckets }) {
    if (!enabled || buckets.length === 0) return null
    const key = override === null ? label : `${label} ${override}`
    const id = this.#ids.get(key) ?? this.#ids.size
    this.#ids.set(key, id)
    this.current[id] = new Limit(id, key, label, buckets)
    return this.current[id]
  }
}

/** Limits of a command, `overrides` by namespace or method; null: none. */
class CommandLimits {
  /** @type {Map<string, Limit> | null} */
  overrides = null

  /** @param {Limit | null} base @param {[name: string, limit: Limit | null][]} overrides */
  constructor(base, overrides) {
    this.base = base
    for (const [name, limit] of overrides) if (limit !== null) (this.overrides ??= new Map()).set(name, limit)
  }
}

/** One block of `client.rate_limit`. */
class Layer {
  /** @type {Map<string, CommandLimits>} */
  commands = new Map()
  /** @type {Limit | null} */
  total = null

  /** @param {string} name @param {Record<string, any>} options @param {Limits} limits */
  constructor(name, options, limits) {
    for (const [command, block] of blocksOf(options)) {
      const label = `${name} ${command}`
      if (command === 'total') this.total = limits.create(label, null, block)
      else if (command !== 'default') this.#add(label, command, block, options.default, limits)
    }
  }

  /** @param {string} label @param {string} command @param {CommandBlock} block @param {LimitBlock} usual @param {Limits} limits */
  #add(label, command, block, usual, limits) {
    const overrides = [
      ...(block.namespace_overrides ?? []).map(limit => ({ ...limit, name: limit.namespace_name })),
      ...methodOverrides(block).map(limit => ({ ...limit, name: limit.method })),
    ]
    const base = limits.create(label, null, block) ?? limits.create(label, null, usual)
    const entry = new CommandLimits(
      base,
      overrides.map(limit => [limit.name, limits.create(label, limit.name, limit)]),
    )
    if (base !== null || entry.overrides !== null) this.commands.set(command, entry)
  }

  get empty() {
    return this.total === null && this.commands.size === 0
  }
}

/** The limits of one command in all layers. */
class Entry {
  /** @param {string} command @param {(Layer | null)[]} layers clients, users, Redis */
  constructor(command, [clients, users, redis]) {
    this.clients = clients?.commands.get(command) ?? null
    this.users = users?.commands.get(command) ?? null
    this.redis = redis?.commands.get(command) ?? null
    const all = [this.clients, this.users, this.redis]
    this.overridden = all.some(limits => limits !== null && limits.overrides !== null)
    this.refusable = !ALWAYS_ALLOWED.has(command)
  }
}

/** Of a command without a limit. */
const NO_LIMITS = new Entry('', [null, null, null])

/**
 * @param {CommandLimits | null} limits @param {string | undefined} name namespace or method
 * @returns {Limit | null}
 */
function select(limits, name) {
  if (limits === null) return null
  const { base, overrides } = limits
  const own = overrides === null || name === undefined ? undefined : overrides.get(name)
  if (own !== undefined) return own
  // Acknowledgements: only `total` and an override of their own apply.
  return name === ACK ? null : base
}

/**
 * The namespace or method, for overrides.
 * @param {boolean} overridden @param {string} method @param {any} request @param {ChannelRules} rules
 * @returns {string | undefined}
 */
function nameOf(overridden, method, request, rules) {
  if (method === 'rpc') return request.method ?? ''
  return overridden ? rules.resolve(request.channel)?.name : undefined
}

/** @param {string} method of the protocol @param {any} request @returns {string} name of its block */
function commandOf(method, request) {
  if (method === 'publish' && request.type === SubscriptionType.MAP)
    return request.removed ? 'map_remove' : 'map_publish'
  if (method === 'sub_refresh') {
    if (request.type === SubRefresh.TRACK) return 'track'
    if (request.type === SubRefresh.UNTRACK) return 'untrack'
  }
  return method
}

/** A user with buckets that are not full. @implements {Owner} */
class UserRates extends Timer {
  #limits
  /** @type {number[] | null} */
  rates = null

  /** @param {RateLimits} limits @param {string} user */
  constructor(limits, user) {
    super()
    this.#limits = limits
    this.user = user
  }

  onTimer() {
    this.#limits.checkUser(this)
  }
}

/** A command waiting for Redis. */
class StoreCheck extends Timer {
  #done

  /** @param {(error: Error | null, allowed: boolean) => void} done called once */
  constructor(done) {
    super()
    this.#done = done
    this.over = false
  }

  onTimer() {
    this.end(errors.internal, false)
  }

  /** @param {Error | null} error @param {boolean} allowed */
  end(error, allowed) {
    if (this.over) return
    this.over = true
    this.#done(error, allowed)
  }
}

/**
 * @typedef {object} RateLimitParts
 * @property {TimerWheel} timers
 * @property {() => number} clock unix ms, of the timers
 * @property {() => number} monotonic ms
 * @property {Pick<Traffic, 'add' | 'counts'>} traffic
 * @property {Pick<Log, 'warn'>} log
 * @property {(config: Config) => RateStore} openStore
 * @property {number} [maxUsers]
 */

export class RateLimits {
  #parts
  #limits = new Limits()
  /** @type {Layer | null} */
  #clients = null
  /** @type {Layer | null} */
  #users = null
  /** @type {Layer | null} */
  #redis = null
  /** By command. @type {Map<string, Entry>} */
  #entries = new Map()
  /** @type {Limit | null} */
  #errors = null
  /** @type {RateStore | null} */
  #store = null
  /** @type {object} */
  #storeOptions = {}
  #timeout = 0
  #failClosed = false
  /** @type {Map<string, UserRates>} */
  #byUser = new Map()
  /** The oldest users first. */
  #oldest = this.#byUser.values()

  /** @param {RateLimitParts} parts */
  constructor(parts) {
    this.#parts = parts
  }

  /** Users with tokens in memory. */
  get users() {
    return this.#byUser.size
  }

  /**
   * Applies a configuration. Tokens remain, up to the new capacity.
   * @param {Config} config
   * @returns {RateLimits | null} null: it has no limits
   */
  use(config) {
    const { client_command, user_command, redis_user_command, client_error } = config.client.rate_limit
    this.#limits.clear()
    const layer = (/** @type {string} */ name, /** @type {Record<string, any>} */ options) => {
      if (!options.enabled) return null
      const made = new Layer(name, options, this.#limits)
      return made.empty ? null : made
    }
    this.#clients = layer('client_command', client_command)
    this.#users = layer('user_command', user_command)
    this.#redis = layer('redis_user_command', redis_user_command)
    this.#errors = layer('client_error', client_error)?.total ?? null
    this.#timeout = redis_user_command.timeout
    this.#failClosed = redis_user_command.fail_closed
    const { redis } = redis_user_command
    if (this.#redis === null || !isDeepStrictEqual(redis, this.#storeOptions)) {
      this.#store?.close()
      this.#store = null
    }
    if (this.#redis !== null) this.#store ??= this.#parts.openStore(config)
    this.#storeOptions = redis
    const layers = [this.#clients, this.#users, this.#redis]
    const limited = layers.flatMap(made => [...(made?.commands.keys() ?? [])])
    const commands = [...limited, ...ALWAYS_ALLOWED]
    this.#entries = new Map(commands.map(command => [command, new Entry(command, layers)]))
    const all = [...layers, this.#errors]
    return all.every(limits => limits === null) ? null : this
  }

  /**
   * Charges a command in memory.
   * @param {Session} session @param {string} method of the protocol @param {any} request
   * @returns {Error | null} null: it may run; IN_REDIS: if `checkInRedis` allows it
   */
  check(session, method, request) {
    const { clients, users, redis, overridden, refusable } = this.#entryOf(method, request)
    const name = nameOf(overridden, method, request, session.context.rules)
    const now = this.#parts.monotonic()
    if (this.#clients !== null && method !== 'connect') {
      const limit = select(clients, name)
      const { total } = this.#clients
      if (limit !== null || total !== null) {
        if (this.#charge(session.needExtra(), limit, total, now, refusable)) return errors.tooManyRequests
      }
    }
    const { user } = session
    if (user === '') return null
    if (this.#users !== null) {
      const limit = select(users, name)
      const { total } = this.#users
      if (limit !== null || total !== null) {
        const rates = this.#ratesOf(user)
        const refused = this.#charge(rates, limit, total, now, refusable)
        if (!rates.armed) this.#schedule(rates, now)
        if (refused) return errors.tooManyRequests
      }
    }
    return select(redis, name) === null ? null : IN_REDIS
  }

  /** @param {string} method @param {any} request */
  #entryOf(method, request) {
    return this.#entries.get(commandOf(method, request)) ?? NO_LIMITS
  }

  /**
   * Charges the limit of a command and `total`, if there are such.
   * @param {Owner} owner @param {Limit | null} limit @param {Limit | null} total one of both is not null
   * @param {number} now @param {boolean} refusable
   * @returns {boolean} whether the command is refused
   */
  #charge(owner, limit, total, now, refusable) {
    const first = /** @type {Limit} */ (limit ?? total)
    const over = charge(owner, first, limit === null ? null : total, now, !refusable)
    if (over === null) return false
    this.#parts.traffic.add('rate_limited', over.label)
    return refusable
  }

  /** @param {string} user @returns {UserRates} with full buckets, if new */
  #ratesOf(user) {
    const known = this.#byUser.get(user)
    if (known !== undefined) return known
    if (this.#byUser.size >= (this.#parts.maxUsers ?? MAX_USERS)) this.#dropOldest()
    const rates = new UserRates(this, user)
    this.#byUser.set(user, rates)
    return rates
  }

  #dropOldest() {
    let next = this.#oldest.next()
    if (next.done) {
      this.#oldest = this.#byUser.values()
      next = this.#oldest.next()
    }
    if (!next.done) this.#drop(next.value)
  }

  /** @param {UserRates} owner */
  #drop(owner) {
    this.#parts.timers.cancel(owner)
    this.#byUser.delete(owner.user)
  }

  /** Drops a user whose buckets are full. @param {UserRates} rates */
  checkUser(rates) {
    if (!this.#schedule(rates, this.#parts.monotonic())) this.#drop(rates)
  }

  /** @param {UserRates} rates @param {number} now @returns {boolean} false: all buckets are full */
  #schedule(rates, now) {
    const { timers, clock } = this.#parts
    const ms = untilFull(rates, this.#limits.current, now)
    if (ms < 1) return false
    timers.schedule(rates, clock() + Math.max(MIN_CHECK_MS, Math.ceil(ms)))
    return true
  }

  /**
   * After `check`. Without an answer the command may run, or fails with errors.internal (`fail_closed`).
   * @param {Session} session @param {string} method @param {any} request
   * @param {(error: Error | null) => void} done not called before this returns
   */
  checkInRedis({ user, context }, method, request, done) {
    const { timers, clock, traffic, log } = this.#parts
    const { redis, overridden } = this.#entryOf(method, request)
    const limit = select(redis, nameOf(overridden, method, request, context.rules))
    const store = this.#store
    if (limit === null || store === null) return queueMicrotask(() => done(null))
    const { key, label, buckets } = limit
    const check = new StoreCheck((error, allowed) => {
      timers.cancel(check)
      if (error !== null) {
        traffic.counts.rate_unchecked++
        log.warn({ limit: label }, 'commands are not checked: redis does not answer in time')
        return done(this.#failClosed ? errors.internal : null)
      }
      if (!allowed) traffic.add('rate_limited', label)
      done(allowed ? null : errors.tooManyRequests)
    })
    timers.schedule(check, clock() + this.#timeout)
    store.take(user, key, buckets, (error, allowed) => check.end(error, allowed))
  }

  /** Counts an error reply. @param {Session} session @param {{code: number}} error @returns {boolean} too many */
  errorSent(session, { code }) {
    const limit = this.#errors
    if (limit === null || code === errors.internal.code) return false
    const now = this.#parts.monotonic()
    return this.#charge(session.needExtra(), limit, null, now, true)
  }

  close() {
    this.#store?.close()
  }
}
