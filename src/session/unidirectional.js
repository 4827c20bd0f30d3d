import { Disconnect, disconnects, errors } from '../errors.js'

/** Clients that can only receive have no use for an error reply (client protocol, section 17). */
const DISCONNECTS = new Map([
  [errors.tokenExpired.code, disconnects.connectionExpired],
  [errors.expired.code, disconnects.connectionExpired],
  [errors.tooManyRequests.code, disconnects.tooManyRequests],
  [errors.permissionDenied.code, disconnects.permissionDenied],
])

/**
 * How the failed connect of a one-way client ends its connection.
 * @param {Error & {code?: number}} error
 * @param {{enabled: boolean, transforms: {code: number, to: {code: number, reason: string}}[]}} overrides
 *   client.connect_code_to_unidirectional_disconnect
 * @returns {Disconnect}
 */
export function disconnectFor(error, { enabled, transforms }) {
  if (error instanceof Disconnect) return error
  const own = enabled ? transforms.find(({ code }) => code === error.code)?.to : undefined
  if (own) return new Disconnect(own.code, own.reason)
  return DISCONNECTS.get(error.code ?? 0) ?? disconnects.internal
}
