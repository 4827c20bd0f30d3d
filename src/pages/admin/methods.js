// Methods for the admin page: some server API methods, and three others with bounded responses.

import { countChannels, namespaceOf } from '../../backends/api/channel.js'
import { readConnections } from '../../backends/api/connections.js'
import { methods as apiMethods } from '../../backends/api/methods.js'
import { flag, ignored, string } from '../../backends/api/params.js'
import { checkFilter, compileLabelFilter } from '../../backends/api/where.js'
import { errors } from '../../base/errors.js'

/** @import { Method } from '../../backends/api/context.js' */

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
  'block_user',
  'unblock_user',
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

/**
 * Connections of a user ('' = anonymous) or of all users (`all`), on all nodes: as in the server API, with node and worker.
 * `now`: unix ms; `blocks`: whether users can be blocked.
 * @type {Method}
 */
const connections = {
  fields: { user: string, client: string, label_filter: ignored, all: flag },
  async run({ user, client, label_filter: labelFilter, all }, { broker }) {
    checkFilter('label_filter', labelFilter, compileLabelFilter)
    const conditions = [
      ...(client === '' ? [] : [{ key: 'client', cmp: 'eq', val: client }]),
      ...(all || user !== '' ? [] : [{ key: 'user', cmp: 'nex' }]),
    ]
    const where = conditions.length > 0 ? { op: 'and', nodes: conditions } : undefined
    const query = { user: all ? '' : user, labelFilter, where, limit: MAX_ROWS }
    const { rows, total } = await readConnections(broker.control, query)
    const texts = rows.map(({ client: id, text, node, worker }) => {
      const place = JSON.stringify({ client: id, node, worker })
      return `${place.slice(0, -1)},${text.slice(1)}`
    })
    const blocks = apiMethods.has('block_user')
    return `{"total":${total},"connections":[${texts.join(',')}],"now":${Date.now()},"blocks":${blocks}}`
  },
}

/** @type {ReadonlyMap<string, Method>} */
export const methods = new Map([
  ...API_METHODS.flatMap(name => {
    const method = apiMethods.get(name)
    return method === undefined ? [] : [/** @type {[string, Method]} */ ([name, method])]
  }),
  ['channels', channels],
  ['connections', connections],
  ['map_info', mapInfo],
])
