/** @import { Channel, Cohort } from '../../channels/hub/channel.js' */
/** @import { Hub } from '../../channels/hub/hub.js' */
/** @import { Timer } from '../../base/timer-wheel.js' */

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
