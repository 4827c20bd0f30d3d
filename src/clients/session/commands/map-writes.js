// publish and remove of a key of a map.

import { errors } from '../../../base/errors.js'
import { Operation } from '../../hooks/capabilities.js'
import { MapPublishEvent, MapRemoveEvent } from '../../hooks/events.js'
import { fitsFormat, partOf, payloadOf } from '../../protocol/payload.js'
import { SubscriptionType } from '../../protocol/requests.js'
import { ask } from '../ask.js'
import { isGranted, maySee } from '../rights.js'

/** @import { MapResult, MapRules } from '../../../channels/broker/contract.js' */
/** @import { Namespace } from '../../auth/channel-rules.js' */
/** @import { MapPublishAnswer, MapRemoveAnswer } from '../../hooks/contract.js' */
/** @import { Payload } from '../../protocol/payload.js' */
/** @import { Session } from '../session.js' */

const MAX_KEY_BYTES = 1024
/** @type {MapPublishAnswer & MapRemoveAnswer} */
const UNCHANGED = Object.freeze({})

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace */
export function writeMap(session, id, request, namespace) {
  if (request.type !== SubscriptionType.MAP || namespace.mapRules === null) throw errors.permissionDenied
  if (request.removed) askRemove(session, id, request, namespace)
  else askPublish(session, id, request, namespace)
}

/** @param {Session} session @param {any} request @param {Namespace} namespace @returns {string} '' = none */
function keyOf({ id, user }, { key = '' }, { options: { map } }) {
  if (map.client_key === 'client_id') return id
  if (map.client_key !== 'user_id') return key
  if (user === '') throw errors.permissionDenied
  return user
}

/** @param {string} key @returns {string} @throws {Error} it cannot be a key */
export function checkKey(key) {
  if (key === '' || Buffer.byteLength(key) > MAX_KEY_BYTES || !isWellFormed(key)) throw errors.badRequest
  return key
}

/** Lone surrogates have no UTF-8. @param {string} key */
const isWellFormed = key => !/\p{Surrogate}/u.test(key)

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace */
function askPublish(session, id, request, namespace) {
  const { rules } = session.context
  const { channel } = request
  const payload = (request.append ? partOf : payloadOf)(request.data)
  if (!fitsFormat(payload, namespace.dataFormat)) throw errors.badRequest
  const key = keyOf(session, request, namespace)
  const allowed = rules.mayPublishMap(namespace, session.user, session.subscription(channel) !== undefined)
  const handler = namespace.handlers.mapPublish
  if ((handler === null && allowed) || isGranted(session, channel, Operation.PUBLISH))
    return publish(session, id, request, namespace, key, payload, UNCHANGED)
  if (handler === null) throw errors.permissionDenied
  ask(session, id, handler, new MapPublishEvent(session, channel, key, allowed, payload), answer => {
    if (answer === null && !allowed) throw errors.permissionDenied
    const { key: own = key, data = payload } = answer ?? UNCHANGED
    publish(session, id, request, namespace, own, data, answer ?? UNCHANGED)
  })
}

/**
 * @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {string} key
 * @param {Payload} payload @param {MapPublishAnswer} answer from a handler
 */
function publish(session, id, request, namespace, key, payload, answer) {
  const { channel, expected_offset, expected_epoch = '', append = false } = request
  const { options } = namespace
  const { tags, idempotencyKey, keyMode, version, versionEpoch, delta, streamData } = answer
  write(session, id, request, done =>
    session.context.broker.maps.publish(
      channel,
      checkKey(key),
      payload.data,
      /** @type {MapRules} */ (namespace.mapRules),
      {
        info: session.clientInfo(session.subscription(channel)?.details.info ?? ''),
        json: payload.json,
        delta: delta ?? options.delta_publish,
        tags,
        idempotencyKey,
        keyMode,
        version,
        versionEpoch,
        streamData: streamData?.data,
        streamJson: streamData?.json,
        expected: expected_offset === undefined ? null : { offset: expected_offset, epoch: expected_epoch },
        append,
        bytes: payload.bytes,
        maxBytes: append ? options.map.max_value_bytes : 0,
        // Removed with the client, also if this worker dies.
        owned: options.map.remove_client_on_unsubscribe && key === session.id,
      },
      done,
    ),
  )
}

/** @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace */
function askRemove(session, id, request, namespace) {
  const { rules } = session.context
  const { channel } = request
  const key = keyOf(session, request, namespace)
  const allowed = rules.mayRemoveFromMap(namespace, session.user, session.subscription(channel) !== undefined)
  const handler = namespace.handlers.mapRemove
  if ((handler === null && allowed) || isGranted(session, channel, Operation.PUBLISH))
    return remove(session, id, request, namespace, key, UNCHANGED)
  if (handler === null) throw errors.permissionDenied
  ask(session, id, handler, new MapRemoveEvent(session, channel, key, allowed), answer => {
    if (answer === null && !allowed) throw errors.permissionDenied
    remove(session, id, request, namespace, answer?.key ?? key, answer ?? UNCHANGED)
  })
}

/**
 * @param {Session} session @param {number} id @param {any} request @param {Namespace} namespace @param {string} key
 * @param {MapRemoveAnswer} answer from a handler
 */
function remove(session, id, request, namespace, key, { tags, idempotencyKey }) {
  const { channel } = request
  const rules = /** @type {MapRules} */ (namespace.mapRules)
  write(session, id, request, done =>
    session.context.broker.maps.remove(channel, checkKey(key), rules, { tags, idempotencyKey }, done),
  )
}

/**
 * @param {Session} session @param {number} id @param {any} request
 * @param {(done: (error: Error | null, result: MapResult) => void) => void} call may throw errors of the request
 */
function write(session, id, { channel, expected_offset, expected_epoch, append }, call) {
  const extended = expected_offset !== undefined || expected_epoch !== undefined || append !== undefined
  call((error, result) =>
    session.publishAnswered(id, () => {
      if (error) throw error
      const { codec } = session
      if (!extended) return session.send(codec.empty(id, 'publish'))
      const { current } = result
      const shown = current !== null && maySee(session, channel, current.tags) ? current : null
      session.send(codec.published(id, { ...result, current: shown }))
    }),
  )
  session.publishSent()
  session.context.traffic.counts.publishes++
}
