// Channel methods: presence, history, names.

import { errors } from '../../base/errors.js'
import { compileGlob } from '../../config/glob.js'
import { flag, int32, object, offset, string } from './params.js'

/** @import { Control, Publication } from '../../channels/broker/contract.js' */
/** @import { ReplyError } from '../../base/errors.js' */
/** @import { ApiContext, Method } from './context.js' */

/** @param {string} channel @param {ApiContext} context @throws {ReplyError} 107 or 102 */
export function namespaceOf(channel, { rules }) {
  if (channel === '') throw errors.badRequest
  const namespace = rules.resolve(channel)
  if (namespace === undefined) throw errors.unknownChannel
  return namespace
}

/** @param {string} channel @param {ApiContext} context @throws {ReplyError} 107, 102 or 108 */
function checkPresence(channel, context) {
  if (!namespaceOf(channel, context).options.presence) throw errors.notAvailable
}

/** @param {Iterable<[string, string]>} entries names and JSON texts @returns {string} JSON text */
const objectOf = entries =>
  `{${Array.from(entries, ([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`

/** @type {Method} */
export const presence = {
  fields: { channel: string },
  async run({ channel }, context) {
    checkPresence(channel, context)
    return `{"presence":${objectOf(await context.broker.presence.list(channel))}}`
  },
}

/** @type {Method} */
export const presenceStats = {
  fields: { channel: string },
  async run({ channel }, context) {
    checkPresence(channel, context)
    const { clients, users } = await context.broker.presence.stats(channel)
    return `{"num_clients":${clients},"num_users":${users}}`
  },
}

/** @param {Publication} publication @returns {string} JSON text */
function publicationText({ data, json, offset, info, tags, target }) {
  let text = ''
  // JSON responses carry binary payloads as base64.
  if (data.length > 0) text = json ? `,"data":${data}` : `,"b64data":"${data.toString('base64')}"`
  if (info !== '') text += `,"info":${info}`
  if (offset !== 0) text += `,"offset":${offset}`
  if (tags) text += `,"tags":${JSON.stringify(tags)}`
  if (target !== null && target.excludeUser !== '')
    text += `,"exclude_user":${JSON.stringify(target.excludeUser)}`
  return `{${text.slice(1)}}`
}

/** Maximum publications of a `history` response, bytes. */
const MAX_HISTORY_BYTES = 16 * 1024 * 1024

/** @type {Method} */
export const history = {
  fields: { channel: string, limit: int32, since: object({ offset, epoch: string }), reverse: flag },
  async run({ channel, limit, since, reverse }, context) {
    const namespace = namespaceOf(channel, context)
    if (!namespace.historyOn) throw errors.notAvailable
    // Nothing precedes the start.
    if (reverse && since !== null && since.offset === 0) throw errors.badRequest
    const { offset: sinceOffset, epoch: sinceEpoch = '' } = since ?? {}
    const query = {
      limit: Math.max(limit, -1),
      sinceOffset,
      sinceEpoch,
      reverse,
      maxBytes: MAX_HISTORY_BYTES,
    }
    const found = await context.broker.pubsub.history(channel, query, namespace.metaTtl)
    // No partial results.
    if (!found.complete) throw errors.limitExceeded
    const publications = found.publications.map(publicationText).join(',')
    return `{"publications":[${publications}],"epoch":${JSON.stringify(found.epoch)},"offset":${found.offset}}`
  },
}

/** @type {Method} */
export const historyRemove = {
  fields: { channel: string },
  async run({ channel }, context) {
    if (!namespaceOf(channel, context).historyOn) throw errors.notAvailable
    await context.broker.pubsub.removeHistory(channel)
    return '{}'
  },
}

/**
 * @param {Control} control @param {string} pattern a glob; '' = all
 * @returns {Promise<Map<string, number>>} subscribers by channel, on all workers of all nodes
 * @throws {ReplyError} 100 for an invalid pattern
 */
export async function countChannels(control, pattern) {
  // Workers match their channels; invalid patterns are rejected here.
  if (pattern !== '' && compileGlob(pattern) === undefined) throw errors.internal
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const answer of await control.survey('channels', { pattern })) {
    for (const [name, count] of Object.entries(answer)) counts.set(name, (counts.get(name) ?? 0) + count)
  }
  return counts
}

/** @type {Method} */
export const channels = {
  fields: { pattern: string },
  async run({ pattern }, { broker }) {
    const counts = [...(await countChannels(broker.control, pattern))]
    return `{"channels":${objectOf(counts.map(([name, count]) => [name, `{"num_clients":${count}}`]))}}`
  },
}
