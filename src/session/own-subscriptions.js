// The subscriptions of one session. Most have one, so there is a Map only for those that have more.

/**
 * @typedef {import('./subscription.js').Subscription} Subscription
 * @typedef {null | Subscription | Map<string, Subscription>} Own
 */

/**
 * @param {Own} own
 * @param {string} channel
 * @returns {Subscription | undefined}
 */
export function find(own, channel) {
  if (own === null) return undefined
  if (own instanceof Map) return own.get(channel)
  return own.channel.name === channel ? own : undefined
}

/** @param {Own} own */
export function count(own) {
  return own === null ? 0 : own instanceof Map ? own.size : 1
}

/**
 * @param {Own} own
 * @param {Subscription} subscription
 * @returns {Own} with it
 */
export function add(own, subscription) {
  if (own === null) return subscription
  if (own instanceof Map) return own.set(subscription.channel.name, subscription)
  return new Map([
    [own.channel.name, own],
    [subscription.channel.name, subscription],
  ])
}

/**
 * @param {Own} own
 * @param {string} channel one of them
 * @returns {Own} without it
 */
export function remove(own, channel) {
  if (!(own instanceof Map)) return null
  own.delete(channel)
  return own
}

/**
 * @param {Own} own
 * @returns {Subscription[]} as they are now
 */
export function list(own) {
  if (own === null) return []
  return own instanceof Map ? [...own.values()] : [own]
}
