import { errors } from '../../errors.js'

/** @typedef {import('../session.js').Session} Session */

/**
 * @param {Session} session
 * @param {string} channel
 */
function check(session, channel) {
  const { rules } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (!namespace.options.presence) throw errors.notAvailable
  const subscribed = session.subscription(channel) !== undefined
  if (!rules.mayReadPresence(namespace, session.user, subscribed)) throw errors.permissionDenied
}

/**
 * @param {Session} session
 * @param {number} id
 * @param {any} request
 */
export function presence(session, id, { channel }) {
  check(session, channel)
  session.resumeAfter(id, session.context.broker.presence(channel), presence =>
    session.send(session.codec.presence(id, presence)),
  )
}

/**
 * @param {Session} session
 * @param {number} id
 * @param {any} request
 */
export function presenceStats(session, id, { channel }) {
  check(session, channel)
  session.resumeAfter(id, session.context.broker.presenceStats(channel), stats =>
    session.send(session.codec.presenceStats(id, stats)),
  )
}
