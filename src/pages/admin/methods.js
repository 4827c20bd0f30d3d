// Methods for the admin page: some of the server API unchanged, and two of its own with bounded answers.

import { countChannels } from '../../backends/api/channel.js'
import { methods as apiMethods } from '../../backends/api/methods.js'
import { flag, string } from '../../backends/api/params.js'

/** @import { Method } from '../../backends/api/context.js' */
/** @import { Connection } from '../../backends/api/operations.js' */

/** Most rows of an answer. */
export const MAX_ROWS = 500

/** Of the server API, unchanged. */
const API_METHODS = ['info', 'publish', 'disconnect', 'unsubscribe', 'presence', 'presence_stats', 'history']

/** The channels with most subscribers, and how many there are. @type {Method} */
const channels = {
  fields: { pattern: string },
  async run({ pattern }, { broker }) {
    const counts = [...(await countChannels(broker.control, pattern))]
    counts.sort(([a, clients], [b, others]) => others - clients || (a < b ? -1 : 1))
    const rows = counts.slice(0, MAX_ROWS).map(([name, clients]) => ({ name, clients }))
    return JSON.stringify({ total: counts.length, channels: rows })
  },
}

/** The connections of a user ('' = anonymous ones), or of everybody, on all nodes. @type {Method} */
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
])
