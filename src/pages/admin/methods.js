// Methods for the admin page: some server API methods, and three others with bounded responses.

import { countChannels, namespaceOf } from '../../backends/api/channel.js'
import { methods as apiMethods } from '../../backends/api/methods.js'
import { flag, string } from '../../backends/api/params.js'
import { errors } from '../../base/errors.js'

/** @import { Method } from '../../backends/api/context.js' */
/** @import { Connection } from '../../backends/api/operations.js' */

/** Maximum rows of a response. */
export const MAX_ROWS = 500

/** Of the server API, unchanged. */
const API_METHODS = [
  'info',
  'publish',
  'disconnect',
  'unsubscribe',
  'presence',
  'presence_stats',
  'history',
  'map_publish',
  'map_remove',
  'map_read_state',
  'map_clear',
]

/** The channels with most subscribers, and the total. @type {Method} */
const channels = {
  fields: { pattern: string },
  async run({ pattern }, { broker, rules }) {
    const counts = [...(await countChannels(broker.control, pattern))]
    counts.sort(([a, clients], [b, others]) => others - clients || (a < b ? -1 : 1))
    const rows = counts.slice(0, MAX_ROWS).map(([name, clients]) => ({
      name,
      // Another node may have other namespaces.
      kind: rules.resolve(name)?.kind ?? 'stream',
      clients,
    }))
    return JSON.stringify({ total: counts.length, channels: rows })
  },
}

/** Kind, mode and number of keys of a map. @type {Method} */
const mapInfo = {
  fields: { channel: string },
  async run({ channel }, context) {
    const { kind, mapRules, options } = namespaceOf(channel, context)
    if (mapRules === null) throw errors.notAvailable
    const { keys } = await context.broker.maps.stats(channel)
    return JSON.stringify({ kind, mode: options.map.mode, keys })
  },
}

/** Connections of a user ('' = anonymous) or of all users, on all nodes. @type {Method} */
const connections = {
  fields: { user: string, client: string, all: flag },
  async run({ user, client, all }, { broker }) {
    /** @type {(Connection & {node: {uid: string, name: string}, worker: number})[]} */
    const rows = []
    let total = 0
    const params = { user, client, all, limit: MAX_ROWS }
    for (const answer of await broker.control.survey('connections', params)) {
      const { node, worker } = answer
      total += answer.total
      for (const connection of answer.connections) {
        if (rows.length < MAX_ROWS) rows.push({ ...connection, node, worker })
      }
    }
    return JSON.stringify({ total, connections: rows })
  },
}

/** @type {ReadonlyMap<string, Method>} */
export const methods = new Map([
  ...API_METHODS.map(name => /** @type {[string, Method]} */ ([name, apiMethods.get(name)])),
  ['channels', channels],
  ['connections', connections],
  ['map_info', mapInfo],
])
