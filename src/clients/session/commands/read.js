import { disconnects, errors } from '../../../base/errors.js'
import { resumeAfter } from '../ask.js'
import { maxReplyBytes, whenRead } from '../replies.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Session } from '../session.js' */

/**
 * Checks that the session may read the channel.
 * @param {Session} session @param {string} channel @param {(namespace: Namespace) => boolean} available
 * @param {'mayReadHistory' | 'mayReadPresence'} rule
 * @returns {Namespace}
 */
function readable(session, channel, available, rule) {
  const { rules } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (!available(namespace)) throw errors.notAvailable
  const subscribed = session.subscription(channel) !== undefined
  if (!rules[rule](namespace, session.user, subscribed)) throw errors.permissionDenied
  return namespace
}

const hasHistory = (/** @type {Namespace} */ namespace) => namespace.historyOn
const hasPresence = (/** @type {Namespace} */ namespace) => namespace.options.presence

/** @param {Session} session @param {number} id @param {any} request */
export function history(session, id, { channel, limit = 0, since, reverse = false }) {
  const { broker, config } = session.context
  const namespace = readable(session, channel, hasHistory, 'mayReadHistory')
  const sinceOffset = since ? (since.offset ?? 0) : undefined
  if (reverse && sinceOffset === 0) throw errors.badRequest
  const cap = config.client.history_max_publication_limit
  const filter = {
    limit: cap > 0 && (limit < 0 || limit > cap) ? cap : limit,
    sinceOffset,
    sinceEpoch: since?.epoch ?? '',
    reverse,
    maxBytes: maxReplyBytes(session),
  }
  whenRead(session, id, () =>
    resumeAfter(session, id, broker.pubsub.history(channel, filter, namespace.metaTtl), result => {
      if (!session.canReceive(result.publications)) throw disconnects.inappropriateProtocol
      session.send(session.codec.history(id, result))
    }),
  )
}

/** @param {Session} session @param {number} id @param {any} request */
export function presence(session, id, { channel }) {
  readable(session, channel, hasPresence, 'mayReadPresence')
  resumeAfter(session, id, session.context.broker.presence.list(channel), presence =>
    session.send(session.codec.presence(id, presence)),
  )
}

/** @param {Session} session @param {number} id @param {any} request */
export function presenceStats(session, id, { channel }) {
  readable(session, channel, hasPresence, 'mayReadPresence')
  resumeAfter(session, id, session.context.broker.presence.stats(channel), stats =>
    session.send(session.codec.presenceStats(id, stats)),
  )
}
