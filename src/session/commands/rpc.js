import { errors } from '../../errors.js'

/**
 * @param {import('../session.js').Session} session
 * @param {number} id
 * @param {any} request
 */
export function rpc(session, id, { method = '' }) {
  const { ping } = session.context.config.rpc
  if (!ping.enabled) throw errors.notAvailable
  if (method !== ping.method) throw errors.methodNotFound
  session.send(session.codec.empty(id, 'rpc'))
}
