import { disconnects, unsubscribes } from '../errors.js'
import { Kind } from './subscription.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./subscription.js').Subscription} Subscription
 * @typedef {import('./deadlines.js').Deadline} Deadline
 */

/** @implements {Deadline} */
class ConnectionExpiry {
  #session
  #expireAt

  /** @param {Session} session */
  constructor(session) {
    this.#session = session
    this.#expireAt = session.expireAt
    this.at = session.expireAt * 1000 + session.context.config.client.expired_close_delay
  }

  get gone() {
    return this.#session.closed || this.#session.expireAt !== this.#expireAt
  }

  end() {
    this.#session.close(disconnects.connectionExpired)
  }
}

/** @implements {Deadline} */
class SubscriptionExpiry {
  #session
  #subscription
  #expireAt

  /** @param {Session} session @param {Subscription} subscription */
  constructor(session, subscription) {
    this.#session = session
    this.#subscription = subscription
    this.#expireAt = subscription.details.expireAt
    this.at = this.#expireAt * 1000 + session.context.config.client.expired_sub_close_delay
  }

  get gone() {
    const { channel, details } = this.#subscription
    return (
      this.#session.subscription(channel.name) !== this.#subscription || details.expireAt !== this.#expireAt
    )
  }

  end() {
    if (this.#subscription.is(Kind.SERVER_SIDE)) this.#session.close(disconnects.subscriptionExpired)
    else this.#session.unsubscribe(this.#subscription, unsubscribes.expired)
  }
}

/** Closes the connection after `expireAt` and the delay for a refresh. @param {Session} session expireAt > 0 */
export function expireConnection(session) {
  session.context.deadlines.add(new ConnectionExpiry(session))
}

/**
 * Ends the subscription after its `expireAt` and the delay for a refresh.
 * @param {Session} session
 * @param {Subscription} subscription expireAt > 0
 */
export function expireSubscription(session, subscription) {
  session.context.deadlines.add(new SubscriptionExpiry(session, subscription))
}
