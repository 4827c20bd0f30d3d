/**
 * Always succeeds, also for channels never subscribed.
 * @param {import('../session.js').Session} session
 * @param {number} id
 * @param {any} request
 */
export function unsubscribe(session, id, request) {
  const subscription = session.subscription(request.channel)
  if (subscription) session.removeSubscription(subscription)
  session.send(session.codec.empty(id, 'unsubscribe'))
}
