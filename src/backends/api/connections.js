// `connections`: live sessions of all nodes, without presence.

import { errors, ReplyError } from '../../base/errors.js'
import { MAX_LIST_BYTES } from './connection-list.js'
import { ignored, int32, string } from './params.js'
import { checkFilter, compileLabelFilter, compileWhere } from './where.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Query, WorkerList } from './connection-list.js' */
/** @import { Method } from './context.js' */

const DEFAULT_LIMIT = 1000
const MAX_LIMIT = 10_000

/**
 * A connection: client id, ConnectionInfo as JSON text, and where it is.
 * @typedef {{client: string, text: string, node: {uid: string, name: string}, worker: number}} Row
 */

/**
 * Asks all workers of all nodes.
 * @param {Control} control @param {Query} query with valid filters
 * @returns {Promise<{rows: Row[], total: number}>} the connections with the lowest client ids, in their order
 * @throws {ReplyError} errors.internal: a worker does not respond; errors.limitExceeded: more than 16 MiB;
 *   errors.notAvailable: a node does not keep what `where` reads
 */
export async function readConnections(control, query) {
  let total = 0
  /** @type {Row[]} */
  const rows = []
  for (const answer of await control.survey('list_connections', query)) {
    if (answer.unavailable) throw errors.notAvailable
    const { node, worker, total: count, rows: own } = /** @type {WorkerList} */ (answer)
    total += count
    for (const [client, text] of own) rows.push({ client, text, node, worker })
  }
  rows.sort((a, b) => (a.client < b.client ? -1 : 1))
  rows.length = Math.min(rows.length, query.limit)
  let bytes = 0
  for (const { text } of rows) bytes += Buffer.byteLength(text)
  if (bytes > MAX_LIST_BYTES) throw errors.limitExceeded
  return { rows, total }
}

/** @param {any} params of a request @throws {ReplyError} 107 */
function checkFilters({ label_filter: labelFilter, where }) {
  checkFilter('label_filter', labelFilter, compileLabelFilter)
  checkFilter('where', where, compileWhere)
}

/** @param {string} fault @returns {ReplyError} 107 */
function badRequest(fault) {
  const { code, message, temporary, status } = errors.badRequest
  return new ReplyError(code, `${message}: ${fault}`, temporary, status)
}

/** @type {Method} */
export const connections = {
  fields: { user: string, expression: string, label_filter: ignored, where: ignored, limit: int32 },
  async run(params, { broker }) {
    const { user, expression, label_filter: labelFilter, where, limit } = params
    // There are no CEL expressions: `where` replaces them.
    if (expression !== '') throw errors.notAvailable
    if (user === '' && labelFilter === undefined && where === undefined)
      throw badRequest('user, label_filter or where is required')
    if (limit < 0 || limit > MAX_LIMIT) throw badRequest(`limit must be from 1 to ${MAX_LIMIT}`)
    checkFilters(params)
    const query = { user, labelFilter, where, limit: limit || DEFAULT_LIMIT }
    const { rows, total } = await readConnections(broker.control, query)
    const texts = rows.map(({ client, text }) => `"${client}":${text}`).join(',')
    return `{"connections":{${texts}},"total":${total},"truncated":${total > rows.length}}`
  },
}
