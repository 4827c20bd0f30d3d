import { disconnects, errors } from '../../errors.js'
import { bytesPayload, fitsFormat, NO_PAYLOAD, textPayload } from '../../protocol/payload.js'

/** @import { Payload } from '../../protocol/payload.js' */
/** @import { Session } from '../session.js' */

/** @param {string | Buffer | undefined} data from the codec: JSON text, or any bytes @returns {Payload} */
function payloadOf(data) {
  if (data === undefined) return NO_PAYLOAD
  return typeof data === 'string' ? textPayload(data) : bytesPayload(data)
}

/** @param {Session} session @param {number} id @param {any} request */
export function publish(session, id, { channel, data }) {
  const { rules, broker, traffic } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  const payload = payloadOf(data)
  if (!fitsFormat(payload, namespace.dataFormat)) throw errors.badRequest
  const subscription = session.subscription(channel)
  if (!rules.mayPublish(namespace, session.user, subscription !== undefined)) throw errors.permissionDenied
  const { options, metaTtl } = namespace
  session.publishSent()
  traffic.publishes++
  broker.pubsub.publish(
    channel,
    payload.data,
    {
      historySize: namespace.historyOn ? options.history_size : 0,
      historyTtl: options.history_ttl,
      metaTtl,
      info: session.clientInfo(subscription?.details.info ?? ''),
      json: payload.json,
      delta: options.delta_publish,
    },
    error =>
      session.publishAnswered(id, () => {
        if (error) throw error
        session.send(session.codec.empty(id, 'publish'))
      }),
  )
}

/** @param {Session} session @param {number} id @param {any} request */
export function rpc(session, id, { method = '' }) {
  const { ping } = session.context.config.rpc
  if (!ping.enabled) throw errors.notAvailable
  if (method !== ping.method) throw errors.methodNotFound
  session.send(session.codec.empty(id, 'rpc'))
}

/** Asynchronous messages to the server have no receiver. */
export function send() {
  throw disconnects.notAvailable
}
