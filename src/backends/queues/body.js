// Bodies of republished messages: payloads are never parsed.

import { SOURCES } from '../../config/republish.js'

/** @import { Republication } from '../../channels/broker/contract.js' */

/** @typedef {(republication: Republication, id: string, withMeta: boolean) => Buffer} Format */

/** @param {Buffer} data @param {boolean} json @returns {Buffer | string} as a JSON value */
const value = (data, json) => (data.length === 0 ? 'null' : json ? data : `"${data.toString('base64')}"`)

/** @param {string} before @param {Buffer | string} middle @param {string} after */
function join(before, middle, after) {
  const first = Buffer.byteLength(before)
  const size = typeof middle === 'string' ? Buffer.byteLength(middle) : middle.length
  const body = Buffer.allocUnsafe(first + size + Buffer.byteLength(after))
  body.write(before, 0)
  if (typeof middle === 'string') body.write(middle, first)
  else body.set(middle, first)
  body.write(after, first + size)
  return body
}

/** @param {string} info ClientInfo as JSON text @returns {{user: string, client: string, conn_info?: unknown}} */
const clientOf = info => (info === '' ? { user: '', client: '' } : JSON.parse(info))

/** @type {Format} */
function halley({ channel, publication, time, source, meta }, id, withMeta) {
  const { data, json, info, tags, offset, epoch } = publication
  const name = json ? 'data' : 'b64data'
  const { user, client } = clientOf(info)
  let after = `,"user":${JSON.stringify(user)},"client":${JSON.stringify(client)}`
  if (info !== '') after += `,"info":${info}`
  if (withMeta && meta !== '') after += `,"user_data":${meta}`
  if (tags !== null) after += `,"tags":${JSON.stringify(tags)}`
  after += `,"offset":${offset},"epoch":"${epoch}","time":${time},"source":"${SOURCES[source]}"}`
  return join(`{"id":"${id}","channel":${JSON.stringify(channel)},"${name}":`, value(data, json), after)
}

/** The fields of Carotene. @type {Format} */
function carotene({ channel, publication, source, meta }, _id, withMeta) {
  const { data, json, info } = publication
  let after = `,"channel":${JSON.stringify(channel)}`
  if (source === 0) {
    const client = clientOf(info)
    const own = client.conn_info === undefined ? 'null' : JSON.stringify(client.conn_info)
    after += `,"user_id":${JSON.stringify(client.user)},"user_data":${withMeta && meta !== '' ? meta : own}}`
  } else after += ',"from_server":"true"}'
  return join('{"type":"message","message":', value(data, json), after)
}

/** `format` -> body @type {Readonly<Record<string, Format>>} */
export const formats = Object.freeze({
  halley,
  carotene,
  data: ({ publication }) => Buffer.from(publication.data),
})

/** @param {Republication} republication @param {string} origin @returns {Record<string, string>} */
export function headersOf({ channel, publication: { tags } }, origin) {
  /** @type {Record<string, string>} */
  const headers = { 'centrifugo-channels': channel, 'halley-origin': origin }
  for (const name in tags) headers[`centrifugo-tag-${name}`] = tags[name]
  return headers
}

/**
 * @param {string} template with {channel} and {namespace} @param {string} boundary of namespaces
 * @returns {(channel: string) => string}
 */
export function compileTemplate(template, boundary) {
  if (template === '{channel}') return channel => channel
  if (!template.includes('{')) return () => template
  return channel => {
    // Routes of patterns have no namespace in their names.
    const end = boundary === '' || channel.startsWith('/') ? -1 : channel.indexOf(boundary)
    const namespace = end === -1 ? '' : channel.slice(0, end)
    return template.replace(/\{(channel|namespace)\}/g, (_, name) =>
      name === 'channel' ? channel : namespace,
    )
  }
}
