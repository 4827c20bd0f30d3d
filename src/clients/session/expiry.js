import { Disconnect, disconnects, ReplyError, unsubscribes } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { RefreshEvent, SubRefreshEvent } from '../hooks/events.js'
import { replaceCapabilities, replaceServerFilter } from './rights.js'
import { Kind, list, NO_DETAILS } from './subscription.js'

/** @import { Handler } from '../hooks/contract.js' */
/** @import { HookEvent } from '../hooks/events.js' */
/** @import { TokenStamp } from '../auth/claims.js' */
/** @import { Session } from './session.js' */
/** @import { Subscription } from './subscription.js' */

/** Retry delay after a failed call, ms (server API). */
const RETRY_MS = 60_000

/** @param {number | undefined} expireAt unix s; 0 or less, undefined = never @param {{now: () => number}} context */
export const isPast = (expireAt, context) =>
  expireAt !== undefined && expireAt > 0 && expireAt < context.now()

/** Also updates presence. @param {Session} session @param {string | undefined} info raw JSON; undefined: unchanged */
export function renewInfo(session, info) {
  if (info === undefined || info === session.info) return
  session.info = info
  for (const subscription of list(session.subscriptions)) showInfo(session, subscription)
}

/** @param {Session} session @param {string | undefined} meta raw JSON; undefined: unchanged */
export function renewMeta(session, meta) {
  const { keepsMeta, details } = session.context
  if (meta === undefined || !keepsMeta) return
  const { name, version, labels } = session.details ?? {}
  session.details = details.of(name, version, meta, labels)
}

/** @param {Session} session @param {Subscription} subscription */
function showInfo(session, subscription) {
  const { broker, presenceMaps } = session.context
  if (subscription.is(Kind.IN_CLIENTS_MAP)) presenceMaps.changed(session, subscription)
  if (!subscription.is(Kind.PRESENT)) return
  const info = session.clientInfo(subscription.details.info)
  broker.presence.update(subscription.channel.name, session.id, info)
}

class Expiry extends Timer {
  /** @param {Session} session */
  constructor(session) {
    super()
    this.session = session
  }

  /**
   * @template {HookEvent} E
   * @template {{expireAt: number}} A
   * @param {Handler<E, A>} handler @param {E} event
   * @param {(answer: A | null) => void} refreshed null: refused; a failed handler call is retried instead
   */
  call(handler, event, refreshed) {
    const { hookCalls, timers, clock } = this.session.context
    hookCalls.ask(this.session, handler, event, (error, answer) => {
      if (!this.isCurrent) return
      const refused = error instanceof ReplyError || error instanceof Disconnect
      if (error === null) refreshed(answer)
      else if (refused) refreshed(null)
      else timers.schedule(this, clock() + RETRY_MS)
    })
  }

  get isCurrent() {
    return !this.session.closed
  }
}

class ConnectionExpiry extends Expiry {
  onTimer() {
    const { session } = this
    const { refresh } = session.context.handlers
    if (refresh === null) return session.close(disconnects.connectionExpired)
    this.call(refresh, new RefreshEvent(session), answer => {
      if (answer?.unreadable) return session.close(disconnects.internal)
      if (answer === null || answer.expireAt <= session.context.now())
        return session.close(disconnects.connectionExpired)
      renewInfo(session, answer.info)
      renewMeta(session, answer.meta)
      if (answer.caps !== undefined) replaceCapabilities(session, answer.caps)
      expireConnection(session, answer.expireAt)
    })
  }
}

class SubscriptionExpiry extends Expiry {
  /** @param {Session} session @param {Subscription} subscription */
  constructor(session, subscription) {
    super(session)
    this.subscription = subscription
  }

  get isCurrent() {
    const { session, subscription } = this
    return !session.closed && session.subscription(subscription.channel.name) === subscription
  }

  onTimer() {
    const { session, subscription } = this
    const { name } = subscription.channel
    const handler = session.context.rules.resolve(name)?.handlers.subRefresh ?? null
    if (handler === null) return this.#end()
    this.call(handler, new SubRefreshEvent(session, name), answer => {
      if (answer === null || isPast(answer.expireAt, session.context)) return this.#end()
      try {
        if (answer.filter) replaceServerFilter(session, subscription, answer.filter)()
      } catch (error) {
        session.context.log.error(
          { err: error, channel: name },
          'server_tags_filter of a sub_refresh refused',
        )
        return this.#end()
      }
      if (!this.isCurrent) return
      extendSubscription(session, subscription, answer.info || undefined, Math.max(0, answer.expireAt))
    })
  }

  #end() {
    if (this.subscription.is(Kind.SERVER_SIDE)) this.session.close(disconnects.subscriptionExpired)
    else this.session.unsubscribe(this.subscription, unsubscribes.expired)
  }
}

/**
 * Calls the handler at `expireAt`, or closes the connection after `expired_close_delay`.
 * @param {Session} session connected @param {number} expireAt unix s, 0 = never
 */
export function expireConnection(session, expireAt) {
  const { timers, config, handlers } = session.context
  if (expireAt > 0) {
    session.expiry ??= new ConnectionExpiry(session)
    const delay = handlers.refresh === null ? config.client.expired_close_delay : 0
    timers.schedule(session.expiry, expireAt * 1000 + delay)
  } else if (session.expiry !== null) timers.cancel(session.expiry)
}

/**
 * @param {Session} session @param {Subscription} subscription
 * @param {string | undefined} info raw JSON; undefined: unchanged @param {number} expireAt unix s, 0 = never
 * @param {TokenStamp} [stamp] of a new token
 */
export function extendSubscription(session, subscription, info, expireAt, stamp) {
  const { details } = subscription
  const renewed = info !== undefined && info !== details.info
  // The shared NO_DETAILS has no expiry.
  if (renewed || stamp)
    subscription.details = {
      info: info ?? details.info,
      expiry: details.expiry,
      stamp: stamp ?? details.stamp,
    }
  else if (details === NO_DETAILS) subscription.details = { ...NO_DETAILS }
  if (renewed) showInfo(session, subscription)
  expireSubscription(session, subscription, expireAt)
}

/**
 * Calls the handler, or ends the subscription, `expired_sub_close_delay` after `expireAt`.
 * @param {Session} session @param {Subscription} subscription without NO_DETAILS, unless it never expires
 * @param {number} expireAt unix s, 0 = never
 */
export function expireSubscription(session, subscription, expireAt) {
  const { timers, config } = session.context
  const { details } = subscription
  if (expireAt > 0) {
    details.expiry ??= new SubscriptionExpiry(session, subscription)
    timers.schedule(details.expiry, expireAt * 1000 + config.client.expired_sub_close_delay)
  } else if (details.expiry !== null) timers.cancel(details.expiry)
}
