import { disconnects, errors } from '../../../base/errors.js'
import { Source } from '../../../config/republish.js'
import { Operation } from '../../hooks/capabilities.js'
import { PublishEvent, RpcEvent } from '../../hooks/events.js'
import { fitsFormat, payloadOf, rawOf } from '../../protocol/payload.js'
import { ACK } from '../acks.js'
import { ask } from '../ask.js'
import { isGranted } from '../rights.js'
import { writeMap } from './map-writes.js'

/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { PublishAnswer } from '../../hooks/contract.js' */
/** @import { Payload } from '../../protocol/payload.js' */
/** @import { Session } from '../session.js' */

/** @type {PublishAnswer} */
const UNCHANGED = Object.freeze({})

/** @param {Session} session @param {number} id @param {any} request */
export function publish(session, id, request) {
  const { channel, data } = request
  const { rules } = session.context
  const namespace = rules.resolve(channel)
  if (!namespace) throw errors.unknownChannel
  if (!rules.checkName(channel, namespace)) throw errors.badRequest
  if (request.type || namespace.kind !== 'stream') return writeMap(session, id, request, namespace)
  const payload = payloadOf(data)
  if (!fitsFormat(payload, namespace.dataFormat)) throw errors.badRequest
  const allowed = rules.mayPublish(namespace, session.user, session.subscription(channel) !== undefined)
  const handler = namespace.handlers.publish
  // Before the handler.
  if ((handler === null && allowed) || isGranted(session, channel, Operation.PUBLISH))
    return send(session, id, channel, namespace, payload, UNCHANGED)
  if (handler === null) throw errors.permissionDenied
  ask(session, id, handler, new PublishEvent(session, channel, allowed, payload), answer => {
    if (answer === null && !allowed) throw errors.permissionDenied
    send(session, id, channel, namespace, answer?.data ?? payload, answer ?? UNCHANGED)
  })
}

/**
 * @param {Session} session @param {number} id @param {string} channel @param {Namespace} namespace
 * @param {Payload} payload @param {PublishAnswer} answer from a handler
 */
function send(session, id, channel, { options, metaTtl, historyOn, republish }, payload, answer) {
  const { broker, traffic } = session.context
  session.publishSent()
  traffic.counts.publishes++
  const { tags, idempotencyKey, version, versionEpoch } = answer
  const withHistory = historyOn && !answer.skipHistory
  broker.pubsub.publish(
    channel,
    payload.data,
    {
      historySize: withHistory ? options.history_size : 0,
      historyTtl: options.history_ttl,
      metaTtl,
      info: session.clientInfo(session.subscription(channel)?.details.info ?? ''),
      json: payload.json,
      delta: answer.delta ?? options.delta_publish,
      tags,
      idempotencyKey,
      version,
      versionEpoch,
      republish: republish === null ? null : republish.route(channel, Source.CLIENT),
      meta: session.extra === null ? '' : session.extra.meta,
    },
    error =>
      session.publishAnswered(id, () => {
        if (error) throw error
        session.send(session.codec.empty(id, 'publish'))
      }),
  )
}

/** @param {Session} session @param {number} id @param {any} request */
export function rpc(session, id, { method = '', data }) {
  const { config, handlers, acks } = session.context
  if (acks && method === ACK) {
    acks.answer(session, data)
    return session.send(session.codec.empty(id, 'rpc'))
  }
  const { ping } = config.rpc
  if (ping.enabled && method === ping.method) return session.send(session.codec.empty(id, 'rpc'))
  if (handlers.rpc === null) throw ping.enabled ? errors.methodNotFound : errors.notAvailable
  const handler = handlers.rpc(method)
  if (handler === null) throw errors.methodNotFound
  ask(session, id, handler, new RpcEvent(session, method, payloadOf(data)), answer => {
    const result = answer?.data ? rawOf(answer.data) : ''
    if (typeof result === 'object' && !session.codec.binary) throw disconnects.inappropriateProtocol
    session.send(session.codec.rpc(id, result))
  })
}

/** Asynchronous client messages are not supported. */
export function message() {
  throw disconnects.notAvailable
}
