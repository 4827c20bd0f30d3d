import { dispatch } from './commands/index.js'

/**
 * Takes the connect request of a one-way client, which has no frame around it.
 * @param {import('./session.js').Session} session
 * @param {any} request type-checked
 */
export function begin(session, request) {
  const { outbox } = session.context
  outbox.open(session)
  try {
    dispatch(session, { id: 1, method: 'connect', request, ping: false })
  } catch (error) {
    session.fail(0, error)
  }
  outbox.flush()
}
