// Subscribes under way while `client.concurrency` lets later commands pass. Those of the same channel keep their order:
//
//   subscribe -- handler, broker ... reply        under way
//   subscribe -- error 105                        the handler is not asked
//   unsubscribe, and all that follows it          wait, and count as under way

import { errors } from '../../base/errors.js'

/** @import { Session } from './session.js' */

/**
 * @typedef {object} Subscribing one channel
 * @property {number} id of the subscribe command under way, 0: none
 * @property {(() => void)[]} waiting later commands of the channel, at most `client.concurrency`
 */

/**
 * Lets a subscribe or an unsubscribe wait for an earlier subscribe of its channel.
 * @param {Session} session @param {number} id of the command @param {{channel: string}} request
 * @param {(session: Session, id: number, request: any) => void} command called later
 * @param {boolean} repeats whether the command is a subscribe
 * @returns {boolean} whether it waits
 * @throws errors.alreadySubscribed
 */
export function waitsForSubscribe(session, id, request, command, repeats) {
  const subscribing = session.extra?.subscribing?.get(request.channel)
  if (subscribing === undefined) return false
  if (subscribing.waiting.length === 0) {
    if (subscribing.id === 0) return false
    if (repeats) throw errors.alreadySubscribed
  }
  session.hold()
  subscribing.waiting.push(() => session.resume(id, () => command(session, id, request)))
  return true
}

/**
 * A subscribe begins. `subscribeEnds` MUST follow, unless the client leaves.
 * @param {Session} session @param {number} id @param {string} channel
 */
export function subscribeBegins(session, id, channel) {
  // Otherwise no command passes it.
  if (!(session.context.config.client.concurrency > 1)) return
  const all = (session.needExtra().subscribing ??= new Map())
  const subscribing = all.get(channel)
  if (subscribing === undefined) all.set(channel, { id, waiting: [] })
  else subscribing.id = id
}

/**
 * A command was answered. If it is a subscribe, the commands that wait for it follow.
 * @param {Session} session @param {number} id
 */
export function subscribeEnds({ extra }, id) {
  const all = extra?.subscribing
  if (!all || id === 0) return
  for (const [channel, subscribing] of all) {
    if (subscribing.id !== id) continue
    subscribing.id = 0
    // The next subscribe among them may be under way again.
    while (subscribing.id === 0 && subscribing.waiting.length > 0) subscribing.waiting.shift()?.()
    if (subscribing.id === 0 && all.get(channel) === subscribing) all.delete(channel)
    return
  }
}
