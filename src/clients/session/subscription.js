import { errors } from '../../base/errors.js'
import { Operation } from '../hooks/capabilities.js'
import { Phase } from '../protocol/requests.js'

/** @import { Channel, Cohort } from '../../channels/hub/channel.js' */
/** @import { Hub } from '../../channels/hub/hub.js' */
/** @import { Timer } from '../../base/timers.js' */
/** @import { TokenStamp } from '../auth/claims.js' */
/** @import { Session } from './session.js' */

/** Bits of Operation in bits of Kind. */
const ALLOW_SHIFT = 11

/** Properties of a subscription as bits, to save memory. */
export const Kind = Object.freeze({
  SERVER_SIDE: 1,
  POSITIONED: 2,
  RECOVERABLE: 4,
  PRESENT: 8,
  /** Join and leave are published. */
  ANNOUNCED: 16,
  /** The client refreshes it with subscription tokens. */
  REFRESHED_BY_CLIENT: 32,
  /** A refresh whose token lacks the channel closes the connection. */
  FROM_CONNECTION_TOKEN: 64,
  /** Its client or user is a key of a presence map. */
  IN_CLIENTS_MAP: 128,
  IN_USERS_MAP: 256,
  /** Its end removes the client's key from the map. */
  REMOVES_KEY: 512,
  /** Of a shared poll. */
  POLL: 1024,
  /** Only capabilities of the connection allow it. */
  BY_CAPABILITY: Operation.SUBSCRIBE << ALLOW_SHIFT,
  /** Operations of `allow`. */
  MAY_PUBLISH: Operation.PUBLISH << ALLOW_SHIFT,
  MAY_READ_PRESENCE: Operation.PRESENCE << ALLOW_SHIFT,
  MAY_READ_HISTORY: Operation.HISTORY << ALLOW_SHIFT,
})

/** What allowed a subscription (`Source` of Centrifugo), in the four bits of Kind from SOURCE_SHIFT on. */
export const Source = Object.freeze({
  UNKNOWN: 0,
  CONNECTION_TOKEN: 1,
  /** Also a connect hook. */
  CONNECT_PROXY: 2,
  SUBSCRIPTION_TOKEN: 3,
  /** Also a subscribe hook. */
  SUBSCRIBE_PROXY: 4,
  USER_LIMITED: 5,
  OPTION: 6,
  INSECURE: 7,
  ONE_WAY_CONNECT: 8,
  PERSONAL: 9,
  API: 10,
  CAPABILITIES: 11,
})
const SOURCE_SHIFT = 20
const SOURCES = 0xf << SOURCE_SHIFT

/** @param {number} [source] one of Source @returns {number} bits of Kind */
export const kindOfSource = (source = Source.UNKNOWN) => source << SOURCE_SHIFT

/** @param {Subscription} subscription @returns {number} one of Source */
export const sourceOf = ({ kind }) => (kind & SOURCES) >> SOURCE_SHIFT

const ALLOWED = Kind.MAY_PUBLISH | Kind.MAY_READ_PRESENCE | Kind.MAY_READ_HISTORY

/** @param {number} [operations] bits of Operation @returns {number} bits of Kind */
export const kindOfAllow = (operations = 0) => (operations << ALLOW_SHIFT) & ALLOWED

/** Bits of Kind with entries in maps. */
export const MAPPED = Kind.IN_CLIENTS_MAP | Kind.IN_USERS_MAP | Kind.REMOVES_KEY

/**
 * `info`: channel info as JSON text, '' if none; `stamp`: of the subscription token, null: subscribed without a token.
 * @typedef {{info: string, expiry: Timer | null, stamp: TokenStamp | null}} Details
 */

/** @type {Details} */
export const NO_DETAILS = Object.freeze({ info: '', expiry: null, stamp: null })

export class Subscription {
  /**
   * @param {Channel} channel @param {Cohort} cohort @param {Cohort | null} events @param {number} kind bits of Kind
   * @param {Details} details
   */
  constructor(channel, cohort, events, kind, details) {
    this.channel = channel
    this.cohort = cohort
    this.events = events
    this.kind = kind
    this.details = details
  }

  /** @param {number} kind one bit of Kind */
  is(kind) {
    return (this.kind & kind) !== 0
  }

  /** @param {number} operation one bit of Operation @returns {boolean} whether its `allow` has it */
  allows(operation) {
    return (this.kind & kindOfAllow(operation)) !== 0
  }

  /** A refreshed token allows it from now on. @param {number} allow bits of Operation */
  renewed(allow) {
    const kept = this.kind & ~(ALLOWED | SOURCES | Kind.BY_CAPABILITY)
    this.kind = kept | kindOfAllow(allow) | kindOfSource(Source.SUBSCRIPTION_TOKEN)
  }
}

// Subscriptions of one session. Most sessions have one; only more need a Map.

/** @typedef {null | Subscription | Map<string, Subscription>} Subscriptions */

/** @param {Subscriptions} subscriptions @param {string} channel @returns {Subscription | undefined} */
export function find(subscriptions, channel) {
  if (subscriptions === null) return undefined
  if (subscriptions instanceof Map) return subscriptions.get(channel)
  return subscriptions.channel.name === channel ? subscriptions : undefined
}

/** @param {Subscriptions} subscriptions */
export function count(subscriptions) {
  return subscriptions === null ? 0 : subscriptions instanceof Map ? subscriptions.size : 1
}

/** @param {Subscriptions} subscriptions @returns {Iterable<string>} */
export function names(subscriptions) {
  if (subscriptions === null) return []
  return subscriptions instanceof Map ? subscriptions.keys() : [subscriptions.channel.name]
}

/** @param {Subscriptions} subscriptions @param {Subscription} subscription @returns {Subscriptions} */
export function add(subscriptions, subscription) {
  if (subscriptions === null) return subscription
  if (subscriptions instanceof Map) return subscriptions.set(subscription.channel.name, subscription)
  return new Map([
    [subscriptions.channel.name, subscriptions],
    [subscription.channel.name, subscription],
  ])
}

/** @param {Subscriptions} subscriptions @param {string} channel must be subscribed @returns {Subscriptions} */
export function remove(subscriptions, channel) {
  if (!(subscriptions instanceof Map)) return null
  subscriptions.delete(channel)
  return subscriptions
}

/** @param {Subscriptions} subscriptions @returns {Subscription[]} a snapshot */
export function list(subscriptions) {
  if (subscriptions === null) return []
  return subscriptions instanceof Map ? [...subscriptions.values()] : [subscriptions]
}

/** Sends batched messages before a close. @param {Subscriptions} subscriptions @param {Hub} hub */
export function flush(subscriptions, hub) {
  for (const { channel } of list(subscriptions)) if (channel.window) hub.batches.flush(channel, 'close')
}

// With `client.concurrency`, other commands bypass a pending subscribe. Commands of its channel stay in order:
//
//   subscribe -- handler, broker ... reply        pending
//   subscribe -- error 105                        without a handler call
//   next page of a map -- error 113
//   unsubscribe, and all later commands           wait, and count as pending

/** @typedef {{id: number, waiting: (() => void)[]}} Subscribing id of a pending subscribe (0: none), later commands */

/**
 * @param {{type?: number, phase?: number, cursor?: string}} request
 * @returns {boolean} whether it follows the first request of a map
 */
export const continues = ({ type, phase, cursor }) =>
  Boolean(type) && (phase !== Phase.STATE || Boolean(cursor))

/**
 * Queues a subscribe or unsubscribe behind an earlier subscribe of its channel.
 * @param {Session} session @param {number} id of the command @param {any} request
 * @param {(session: Session, id: number, request: any) => void} command called later
 * @param {boolean} repeats whether the command is a subscribe
 * @returns {boolean} whether it waits
 */
export function waitsForSubscribe(session, id, request, command, repeats) {
  const subscribing = session.extra?.subscribing?.get(request.channel)
  if (subscribing === undefined) return false
  if (subscribing.waiting.length === 0) {
    if (subscribing.id === 0) return false
    if (repeats) throw continues(request) ? errors.concurrentPagination : errors.alreadySubscribed
  }
  session.hold()
  subscribing.waiting.push(() => session.resume(id, () => command(session, id, request)))
  return true
}

/** `subscribeEnds` MUST follow. @param {Session} session @param {number} id @param {string} channel */
export function subscribeBegins(session, id, channel) {
  if (!(session.context.config.client.concurrency > 1)) return
  const all = (session.needExtra().subscribing ??= new Map())
  const subscribing = all.get(channel)
  if (subscribing === undefined) all.set(channel, { id, waiting: [] })
  else subscribing.id = id
}

/** Runs commands waiting for this subscribe. @param {Session} session @param {number} id of an answered command */
export function subscribeEnds({ extra }, id) {
  const all = extra?.subscribing
  if (!all || id === 0) return
  for (const [channel, subscribing] of all) {
    if (subscribing.id !== id) continue
    subscribing.id = 0
    // A waiting subscribe becomes pending.
    while (subscribing.id === 0 && subscribing.waiting.length > 0) subscribing.waiting.shift()?.()
    if (subscribing.id === 0 && all.get(channel) === subscribing) all.delete(channel)
    return
  }
}
