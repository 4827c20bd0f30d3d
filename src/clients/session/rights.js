// Rights of a session beside the channel options: `caps` of the connection, `allow` of a subscription. And what takes
// publications away: the filter of the backend, targets.

import { errors, unsubscribes } from '../../base/errors.js'
import { reaches } from '../../channels/broker/target.js'
import { Operation } from '../hooks/capabilities.js'
import { Filter } from '../protocol/filter.js'
import { Kind, list, Source } from './subscription.js'

/** @import { Capabilities } from '../hooks/capabilities.js' */
/** @import { Tags } from '../protocol/filter.js' */
/** @import { ChannelOptions } from '../../config/options.js' */
/** @import { Channel } from '../../channels/hub/channel.js' */
/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Grant } from './plan.js' */
/** @import { Session } from './session.js' */
/** @import { Subscription } from './subscription.js' */

/** @type {Grant} of a subscription that only capabilities allow */
export const CAPABILITY_GRANT = Object.freeze({ capability: true, source: Source.CAPABILITIES })

/** @param {Session} session @param {string} channel @returns {number} bits of Operation in its capabilities */
export function capabilitiesFor({ extra, context }, channel) {
  if (extra === null || extra.caps === null) return 0
  // Patterns take time for long names, which no subscription has.
  return channel.length > context.config.channel.max_length ? 0 : extra.caps.of(channel)
}

/** @param {Session} session @param {string} channel @returns {boolean} private channels need a token */
export const maySubscribeByCapability = (session, channel) =>
  (capabilitiesFor(session, channel) & Operation.SUBSCRIBE) !== 0 && !session.context.rules.isPrivate(channel)

/** @param {Session} session @param {string} channel @param {number} operation one bit of Operation, not SUBSCRIBE */
export const isGranted = (session, channel, operation) =>
  Boolean(session.subscription(channel)?.allows(operation)) ||
  (capabilitiesFor(session, channel) & operation) !== 0

/**
 * Replaces the capabilities, and ends the subscriptions that existed only by the former ones.
 * @param {Session} session @param {Capabilities | null} caps
 */
export function replaceCapabilities(session, caps) {
  const former = session.extra?.caps ?? null
  if (former === caps) return
  const extra = session.needExtra()
  extra.caps = caps
  if (former === null) return
  for (const subscription of list(session.subscriptions)) {
    const lost = subscription.is(Kind.BY_CAPABILITY)
    if (lost && !maySubscribeByCapability(session, subscription.channel.name))
      session.unsubscribe(subscription, unsubscribes.server)
  }
  for (const { channel, kind } of [...(extra.catchUps?.values() ?? [])]) {
    const lost = (kind & Kind.BY_CAPABILITY) !== 0
    if (lost && !maySubscribeByCapability(session, channel))
      session.refuseCatchUp(channel, unsubscribes.server)
  }
}

/**
 * @param {{options: ChannelOptions, kind: string}} namespace @param {object | undefined} filter of the backend
 * @throws {Error} errors.permissionDenied: the namespace requires one; errors.notAvailable: it cannot have one
 */
export function checkServerFilter({ options, kind }, filter) {
  if (filter === undefined) {
    if (options.require_server_tags_filter) throw errors.permissionDenied
  } else if (options.batch_flush_latest || kind === 'shared_poll') throw errors.notAvailable
}

/** @param {Session} session @param {Channel} channel @param {Filter | null} filter @returns {boolean} whether it fits the limits */
export function hasRoomFor({ codec, context }, channel, filter) {
  if (filter === null) return true
  const { tags_filters_max_size, server_tags_filters_max_size } = context.config.channel
  const limit = filter.server === null ? tags_filters_max_size : server_tags_filters_max_size
  return context.hub.mayFilter(channel, codec, filter, limit)
}

/** @param {Session} session @param {string} channel @returns {Filter | null} the backend's, of the subscription */
export const serverFilterOf = (session, channel) =>
  session.subscription(channel)?.cohort.filter?.server ?? null

/**
 * @param {Session} session @param {Publication[]} publications of a stream @param {Filter | null} filter
 * @returns {Publication[]} those that match the filter and do not exclude the session
 */
export function receivable({ user, id }, publications, filter) {
  if (filter === null && publications.every(({ target }) => target === null)) return publications
  return publications.filter(
    ({ tags, target }) =>
      (filter === null || filter.matches(tags)) && (target === null || reaches(target, user, id)),
  )
}

/**
 * Whether the client may see an entry of a map that a failed write returns.
 * @param {Session} session @param {string} channel @param {Tags | null} tags of the entry
 */
export function maySee(session, channel, tags) {
  const server = serverFilterOf(session, channel)
  if (server !== null) return server.matches(tags)
  return session.context.rules.resolve(channel)?.options.require_server_tags_filter !== true
}

/**
 * Replaces the backend's filter of a subscription. One with deltas, which exclude filters, ends, and the SDK subscribes
 * again.
 * @param {Session} session @param {Subscription} subscription @param {Filter} server
 * @returns {() => void} to call after the reply
 * @throws {Error} the former one stays
 */
export function replaceServerFilter(session, subscription, server) {
  const { context } = session
  const { channel } = subscription
  const namespace = context.rules.resolve(channel.name)
  if (namespace !== undefined) checkServerFilter(namespace, server)
  const filter = new Filter(subscription.cohort.filter?.node ?? null, server)
  if (filter.key === subscription.cohort.filter?.key) return () => {}
  if (subscription.cohort.delta)
    return () => session.unsubscribe(subscription, unsubscribes.insufficientState)
  if (!hasRoomFor(session, channel, filter)) throw errors.limitExceeded
  // What is in the batch belongs to the former one.
  context.hub.batches.flush(channel, 'subscribe')
  if (!session.closed)
    subscription.cohort = context.hub.refilter(session, channel, subscription.cohort, filter)
  return () => {}
}
