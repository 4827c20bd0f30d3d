import { Flag } from './frames.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 * @typedef {import('./records.js').FrameCursor} FrameCursor
 */

/**
 * Reads the part of a publication after the channel name.
 * @param {FrameCursor} cursor @param {number} flags @param {number} offset @param {string} epoch
 * @param {boolean} copy whether the payload must outlive the frame
 * @returns {Publication}
 */
export function readPublication(cursor, flags, offset, epoch, copy) {
  const view = cursor.view()
  return {
    data: copy ? Buffer.from(view) : view,
    offset,
    epoch,
    info: flags & Flag.INFO ? cursor.string() : '',
    tags: flags & Flag.TAGS ? JSON.parse(cursor.string()) : null,
    version: flags & Flag.VERSION ? cursor.u64() : 0n,
    json: (flags & Flag.NOT_JSON) === 0,
    delta: (flags & Flag.DELTA) !== 0,
  }
}

/** @param {FrameCursor} cursor @param {string} epoch @returns {Publication[]} with payloads of their own */
export function readPublications(cursor, epoch) {
  const publications = []
  for (let count = cursor.u32(); count > 0; count--) {
    const flags = cursor.u8()
    publications.push(readPublication(cursor, flags, cursor.f64(), epoch, true))
  }
  return publications
}

/**
 * Writes a publication and its options after the number of the request.
 * @param {import('./frames.js').FrameWriter} writer @param {number} offset @param {string} epoch
 * @param {string} channel @param {string | Buffer} data @param {import('../contract.js').PublishOptions} options
 */
export function writePublication(writer, offset, epoch, channel, data, options) {
  const { historySize, info, tags, idempotencyKey, version, json, delta, republish } = options
  let flags = 0
  if (historySize > 0) flags |= Flag.HISTORY
  if (info) flags |= Flag.INFO
  if (tags) flags |= Flag.TAGS
  if (version) flags |= Flag.VERSION
  if (json === false) flags |= Flag.NOT_JSON
  if (idempotencyKey) flags |= Flag.IDEMPOTENT
  if (delta) flags |= Flag.DELTA
  if (republish) flags |= Flag.REPUBLISH
  writer.u8(flags).f64(offset).epoch(epoch).string(channel).payload(data)
  if (info) writer.string(info)
  if (tags) writer.string(JSON.stringify(tags))
  if (version) writer.u64(version)
  if (flags & (Flag.HISTORY | Flag.IDEMPOTENT | Flag.REPUBLISH)) {
    writer.u32(historySize).f64(options.historyTtl).f64(options.metaTtl)
    writer.string(options.versionEpoch ?? '').string(idempotencyKey ?? '')
  }
  if (republish) {
    writer.u32(republish.to).u8(republish.source).u32(republish.wait).f64(Date.now())
    writer.string(republish.withMeta ? (options.meta ?? '') : '')
  }
}
