import { errors } from '../../base/errors.js'

/** @import { Channel, Cohort } from '../../channels/hub/channel.js' */
/** @import { Hub } from '../../channels/hub/hub.js' */
/** @import { Timer } from '../../base/timers.js' */
/** @import { Session } from './session.js' */

/** Properties of a subscription, as bits: a million subscriptions should be small. */
export const Kind = Object.freeze({
  SERVER_SIDE: 1,
  POSITIONED: 2,
  RECOVERABLE: 4,
  /** Listed in presence. */
  PRESENT: 8,
  /** Its join was announced, so its leave must be too. */
  ANNOUNCED: 16,
  /** The client keeps it alive with subscription tokens. */
  REFRESHED_BY_CLIENT: 32,
  /** A refresh with a token without its channel closes the connection. */
  FROM_CONNECTION_TOKEN: 64,
})

/**
 * @typedef {object} Details present in some subscriptions only
 * @property {string} info channel info as JSON text, '' if none
 * @property {Timer | null} expiry
 */

/** @type {Details} */
export const NO_DETAILS = Object.freeze({ info: '', expiry: null })

/** One session's subscription to one channel. */
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
}

// The subscriptions of one session. Most sessions have one: a Map only for more.

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

/**
 * Sends what batches hold for a client before the gateway closes its connection.
 * @param {Subscriptions} subscriptions @param {Hub} hub
 */
export function flush(subscriptions, hub) {
  for (const { channel } of list(subscriptions)) if (channel.window) hub.batches.flush(channel, 'close')
}

// Subscribes under way while `client.concurrency` lets later commands pass. Those of the same channel keep their order:
//
//   subscribe -- handler, broker ... reply        under way
//   subscribe -- error 105                        the handler is not asked
//   unsubscribe, and all that follows it          wait, and count as under way

/**
 * @typedef {object} Subscribing one channel
 * @property {number} id of the subscribe command under way, 0: none
 * @property {(() => void)[]} waiting later commands of the channel, at most `client.concurrency`
 */

/**
 * Lets a subscribe or an unsubscribe wait for an earlier subscribe of its channel.
 * @param {Session} session @param {number} id of the command @param {{channel: string}} request
 * @param {(session: Session, id: number, request: any) => void} command called later
 * @param {boolean} repeats whether the command is a subscribe
 * @returns {boolean} whether it waits
 * @throws errors.alreadySubscribed
 */
export function waitsForSubscribe(session, id, request, command, repeats) {
  const subscribing = session.extra?.subscribing?.get(request.channel)
  if (subscribing === undefined) return false
  if (subscribing.waiting.length === 0) {
    if (subscribing.id === 0) return false
    if (repeats) throw errors.alreadySubscribed
  }
  session.hold()
  subscribing.waiting.push(() => session.resume(id, () => command(session, id, request)))
  return true
}

/**
 * A subscribe begins. `subscribeEnds` MUST follow, unless the client leaves.
 * @param {Session} session @param {number} id @param {string} channel
 */
export function subscribeBegins(session, id, channel) {
  // Otherwise no command passes it.
  if (!(session.context.config.client.concurrency > 1)) return
  const all = (session.needExtra().subscribing ??= new Map())
  const subscribing = all.get(channel)
  if (subscribing === undefined) all.set(channel, { id, waiting: [] })
  else subscribing.id = id
}

/**
 * A command was answered. If it is a subscribe, the commands that wait for it follow.
 * @param {Session} session @param {number} id
 */
export function subscribeEnds({ extra }, id) {
  const all = extra?.subscribing
  if (!all || id === 0) return
  for (const [channel, subscribing] of all) {
    if (subscribing.id !== id) continue
    subscribing.id = 0
    // The next subscribe among them may be under way again.
    while (subscribing.id === 0 && subscribing.waiting.length > 0) subscribing.waiting.shift()?.()
    if (subscribing.id === 0 && all.get(channel) === subscribing) all.delete(channel)
    return
  }
}
