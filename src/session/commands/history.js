import { disconnects, errors } from '../../errors.js'

/**
 * @param {import('../session.js').Session} session
 * @param {number} id
 * @param {any} request
 */
export function history(session, id, { channel, limit = 0, since, reverse = false }) {
  const { rules, broker, config } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (!namespace.historyOn) throw errors.notAvailable
  const subscribed = session.subscription(channel) !== undefined
  if (!rules.mayReadHistory(namespace, session.user, subscribed)) throw errors.permissionDenied
  const sinceOffset = since ? (since.offset ?? 0) : undefined
  if (reverse && sinceOffset === 0) throw errors.badRequest
  const cap = config.client.history_max_publication_limit
  const filter = {
    limit: cap > 0 && (limit < 0 || limit > cap) ? cap : limit,
    sinceOffset,
    sinceEpoch: since?.epoch ?? '',
    reverse,
  }
  session.resumeAfter(id, broker.history(channel, filter, namespace.metaTtl), result => {
    if (!session.reads(result.publications)) throw disconnects.inappropriateProtocol
    session.send(session.codec.history(id, result))
  })
}
