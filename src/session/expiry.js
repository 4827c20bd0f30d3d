import { disconnects, unsubscribes } from '../errors.js'
import { Kind } from './subscription.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./subscription.js').Subscription} Subscription
 */

/**
 * Ends the connection when its time, and the delay for a refresh, has run out.
 * @param {Session} session whose expireAt was set
 */
export function expireConnection(session) {
  const { deadlines, config } = session.gateway
  const { expireAt } = session
  deadlines.add(expireAt * 1000 + config.client.expired_close_delay, () => {
    if (session.expireAt === expireAt) session.close(disconnects.connectionExpired)
  })
}

/**
 * Ends the subscription when its time, and the delay for a refresh, has run out.
 * @param {Session} session
 * @param {Subscription} subscription whose expireAt was set
 */
export function expireSubscription(session, subscription) {
  const { deadlines, config } = session.gateway
  const { name } = subscription.channel
  const { expireAt } = subscription.details
  deadlines.add(expireAt * 1000 + config.client.expired_sub_close_delay, () => {
    if (session.subscription(name) !== subscription || subscription.details.expireAt !== expireAt) return
    if (subscription.is(Kind.SERVER_SIDE)) session.close(disconnects.subscriptionExpired)
    else session.unsubscribe(subscription, unsubscribes.expired)
  })
}
