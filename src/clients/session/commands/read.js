import { disconnects, errors } from '../../../base/errors.js'
import { Operation } from '../../hooks/capabilities.js'
import { resumeAfter } from '../ask.js'
import { maxReplyBytes, whenRead } from '../replies.js'
import { isGranted, receivable, serverFilterOf } from '../rights.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { Session } from '../session.js' */

const OPERATIONS = Object.freeze({ mayReadHistory: Operation.HISTORY, mayReadPresence: Operation.PRESENCE })

/**
 * @param {Session} session @param {string} channel @param {(namespace: Namespace) => boolean} available
 * @param {'mayReadHistory' | 'mayReadPresence'} rule
 */
function readable(session, channel, available, rule) {
  const { rules } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (!available(namespace)) throw errors.notAvailable
  const subscribed = session.subscription(channel) !== undefined
  const allowed =
    rules[rule](namespace, session.user, subscribed) || isGranted(session, channel, OPERATIONS[rule])
  if (!allowed) throw errors.permissionDenied
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
  // The backend's, not the client's.
  const server = serverFilterOf(session, channel)
  if (server === null && namespace.options.require_server_tags_filter) throw errors.permissionDenied
  const query = {
    limit: cap > 0 && (limit < 0 || limit > cap) ? cap : limit,
    sinceOffset,
    sinceEpoch: since?.epoch ?? '',
    reverse,
    maxBytes: maxReplyBytes(session),
  }
  whenRead(session, id, () =>
    resumeAfter(session, id, broker.pubsub.history(channel, query, namespace.metaTtl), result => {
      const publications = receivable(session, result.publications, server)
      if (!session.canReceive(publications)) throw disconnects.inappropriateProtocol
      session.send(session.codec.history(id, { ...result, publications }))
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
