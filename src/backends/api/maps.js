// Map methods: keyed state of channels.

import { errors } from '../../base/errors.js'
import { fitsFormat } from '../../clients/protocol/payload.js'
import { checkKey } from '../../clients/session/commands/map-writes.js'
import { namespaceOf } from './channel.js'
import {
  flag,
  ignored,
  int32,
  offset,
  payload,
  readPart,
  readPayload,
  string,
  tags,
  uint64,
} from './params.js'

/** @import { MapDone, MapResult, MapRules, Publication, StatePage } from '../../channels/broker/contract.js' */
/** @import { ReplyError } from '../../base/errors.js' */
/** @import { ApiContext, Method, Namespace } from './context.js' */

/** Maximum entries of a response in bytes, and of one page read from the broker. */
const MAX_BYTES = 16 * 1024 * 1024
const PAGE = 1000
const KEY_MODES = ['', 'if_new', 'if_exists']

/** A position that may be absent. */
const optionalOffset = { ...offset, zero: undefined }

/**
 * @param {string} channel @param {ApiContext} context
 * @returns {Namespace & {mapRules: MapRules}} @throws {ReplyError} 107 or 102
 */
function mapOf(channel, context) {
  const namespace = namespaceOf(channel, context)
  if (namespace.mapRules === null) throw errors.badRequest
  return /** @type {Namespace & {mapRules: MapRules}} */ (namespace)
}

/** @param {(done: MapDone) => void} write @returns {Promise<string>} */
const resultOf = write =>
  new Promise((resolve, reject) =>
    write((error, result) => (error ? reject(error) : resolve(resultText(result)))),
  )

/** @param {MapResult} result @returns {string} JSON text */
function resultText({ offset, epoch, suppressed, current }) {
  let text = ''
  if (offset > 0) text += `,"offset":${offset}`
  if (epoch !== '') text += `,"epoch":${JSON.stringify(epoch)}`
  if (suppressed !== '') text += `,"suppressed":true,"suppress_reason":"${suppressed}"`
  if (current !== null) text += `,"current":${entryText(current)}`
  return `{${text.slice(1)}}`
}

/** @param {Publication} publication of a map @returns {string} JSON text of a MapEntry */
function entryText({ data, json, offset, tags, keyed }) {
  let text = `"key":${JSON.stringify(keyed?.key ?? '')}`
  if (data.length > 0) text += json ? `,"data":${data}` : `,"b64data":"${data.toString('base64')}"`
  if (tags) text += `,"tags":${JSON.stringify(tags)}`
  if (offset > 0) text += `,"offset":${offset}`
  if (keyed?.removed) text += ',"removed":true'
  if (keyed?.append) text += ',"append":true'
  if (keyed?.time) text += `,"time":${keyed.time}`
  return `{${text}}`
}

/** @param {string[]} entries JSON texts @param {number} offset @param {string} epoch @param {string} [cursor] */
function listText(entries, offset, epoch, cursor = '') {
  let text = `"entries":[${entries.join(',')}]`
  if (offset > 0) text += `,"offset":${offset}`
  if (epoch !== '') text += `,"epoch":${JSON.stringify(epoch)}`
  if (cursor !== '') text += `,"cursor":${JSON.stringify(cursor)}`
  return `{${text}}`
}

/** @type {Method} */
export const mapPublish = {
  fields: {
    channel: string,
    key: string,
    data: payload,
    b64data: string,
    stream_data: payload,
    b64stream_data: string,
    tags,
    idempotency_key: string,
    delta: flag,
    version: uint64,
    version_epoch: string,
    score: ignored,
    key_mode: string,
    expected_offset: optionalOffset,
    expected_epoch: string,
    append: flag,
  },
  async run(params, context) {
    const { channel, key, append, expected_offset: expectedOffset, expected_epoch: epoch } = params
    const namespace = mapOf(channel, context)
    const { options, dataFormat, mapRules } = namespace
    const value = (append ? readPart : readPayload)(params.data, params.b64data)
    const given = params.stream_data !== '' || params.b64stream_data !== ''
    const change = given ? readPayload(params.stream_data, params.b64stream_data) : null
    if (!fitsFormat(value, dataFormat) || (change && (append || !fitsFormat(change, dataFormat))))
      throw errors.badRequest
    if (!KEY_MODES.includes(params.key_mode)) throw errors.badRequest
    // An epoch alone checks nothing.
    if (epoch !== '' && expectedOffset === undefined) throw errors.badRequest
    checkKey(key)
    context.traffic.counts.publishes++
    return resultOf(done =>
      context.broker.maps.publish(
        channel,
        key,
        value.data,
        mapRules,
        {
          json: value.json,
          delta: options.delta_publish || params.delta,
          tags: params.tags,
          idempotencyKey: params.idempotency_key,
          version: params.version,
          versionEpoch: params.version_epoch,
          keyMode: params.key_mode,
          expected: expectedOffset === undefined ? null : { offset: expectedOffset, epoch },
          append,
          bytes: value.bytes,
          maxBytes: append ? options.map.max_value_bytes : 0,
          streamData: change?.data ?? null,
          streamJson: change?.json,
        },
        done,
      ),
    )
  },
}

/** @type {Method} */
export const mapRemove = {
  fields: { channel: string, key: string, idempotency_key: string },
  async run({ channel, key, idempotency_key: idempotencyKey }, context) {
    const { mapRules } = mapOf(channel, context)
    checkKey(key)
    return resultOf(done => context.broker.maps.remove(channel, key, mapRules, { idempotencyKey }, done))
  },
}

/** @param {string} channel @param {ApiContext} context @param {number} metaTtl @returns {Promise<StatePage>} empty */
const positionOf = (channel, { broker }, metaTtl) =>
  new Promise((resolve, reject) =>
    broker.pubsub.position(channel, metaTtl, (error, offset, epoch) =>
      error ? reject(error) : resolve({ entries: [], text: null, cursor: '', offset, epoch }),
    ),
  )

/** Positions only with limit 0; all entries with a negative limit. @type {Method} */
export const mapReadState = {
  fields: {
    channel: string,
    cursor: string,
    limit: int32,
    key: string,
    asc: ignored,
    revision_offset: offset,
    revision_epoch: string,
  },
  async run(params, context) {
    const { channel, key, limit, revision_offset: upTo } = params
    const { mapRules } = mapOf(channel, context)
    if (limit === 0 && key === '') {
      if (mapRules.streamSize === 0) return listText([], 0, '')
      const { offset, epoch } = await positionOf(channel, context, mapRules.metaTtl)
      if (params.revision_epoch !== '' && params.revision_epoch !== epoch) throw errors.unrecoverablePosition
      return listText([], offset, epoch)
    }
    let left = limit < 0 || key !== '' ? Infinity : limit
    let bytes = 0
    let { cursor, revision_epoch: epoch } = params
    // The position of the first page: changes made while the others are read come after it.
    let position = -1
    /** @type {string[]} */
    const entries = []
    do {
      const query = { cursor, limit: Math.min(left, PAGE), key, epoch, upTo, maxBytes: 0 }
      const page = await context.broker.maps.state(channel, query, mapRules)
      if (position === -1) position = page.offset
      epoch = page.epoch
      for (const entry of page.entries) {
        const text = entryText(entry)
        entries.push(text)
        bytes += Buffer.byteLength(text)
      }
      left -= page.entries.length
      cursor = page.cursor
      // A limit ends the page early; without one, there are no partial results.
      if (bytes > MAX_BYTES && limit < 0) throw errors.limitExceeded
    } while (cursor !== '' && left > 0 && bytes <= MAX_BYTES)
    return listText(entries, position, epoch, cursor)
  },
}

/** @type {Method} */
export const mapReadStream = {
  fields: {
    channel: string,
    since_offset: optionalOffset,
    since_epoch: string,
    limit: int32,
    reverse: flag,
  },
  async run({ channel, since_offset: sinceOffset, since_epoch: sinceEpoch, limit, reverse }, context) {
    const { mapRules } = mapOf(channel, context)
    if (mapRules.streamSize === 0) throw errors.badRequest
    // Nothing precedes the start.
    if (reverse && sinceOffset === 0) throw errors.badRequest
    const query = { limit: Math.max(limit, -1), sinceOffset, sinceEpoch, reverse, maxBytes: MAX_BYTES }
    const found = await context.broker.pubsub.history(channel, query, mapRules.metaTtl)
    if (!found.complete) throw errors.limitExceeded
    return listText(found.publications.map(entryText), found.offset, found.epoch)
  },
}

/** @type {Method} */
export const mapStats = {
  fields: { channel: string },
  async run({ channel }, context) {
    mapOf(channel, context)
    const { keys } = await context.broker.maps.stats(channel)
    return keys > 0 ? `{"num_keys":${keys}}` : '{}'
  },
}

/** @type {Method} */
export const mapClear = {
  fields: { channel: string },
  async run({ channel }, context) {
    mapOf(channel, context)
    await context.broker.maps.clear(channel)
    return '{}'
  },
}
