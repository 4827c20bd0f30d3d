// Shared polls: data that the backend publishes between two refreshes.

import { errors } from '../../base/errors.js'
import { checkKey } from '../../clients/session/commands/map-writes.js'
import { namespaceOf } from './channel.js'
import { payload, readPayload, string, uint64 } from './params.js'

/** @import { Method } from './context.js' */

/** @type {Method} */
export const sharedPollPublish = {
  fields: { channel: string, key: string, data: payload, b64data: string, version: uint64, epoch: string },
  run(params, context) {
    const { channel, key, version, epoch } = params
    const { kind, options } = namespaceOf(channel, context)
    if (kind !== 'shared_poll') throw errors.badRequest
    if (!options.shared_poll.publish_enabled) throw errors.notAvailable
    if (version === 0n) throw errors.badRequest
    checkKey(key)
    const { data, json } = readPayload(params.data, params.b64data)
    context.traffic.counts.publishes++
    const keyed = { key, removed: false, append: false, time: 0 }
    const tags = epoch === '' ? null : { epoch }
    const rules = { historySize: 0, historyTtl: 0, metaTtl: 0 }
    return new Promise((resolve, reject) =>
      context.broker.pubsub.publish(channel, data, { ...rules, json, version, tags, keyed }, error =>
        error ? reject(error) : resolve('{}'),
      ),
    )
  },
}
