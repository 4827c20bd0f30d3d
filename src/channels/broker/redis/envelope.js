// Publication format in streams and on topics: flags, optional fields, payload. All numbers are little-endian.
//
//   [flags u8] [INFO: length u32, bytes] [TAGS: length u32, JSON] [VERSION: u64]
//   [KEYED: kind u8, time f64, length u32, key] [TARGET: length u32, JSON] [payload ...]

/** @import { Keyed, Publication, PublishOptions } from '../contract.js' */

const Flag = { INFO: 1, TAGS: 2, VERSION: 4, NOT_JSON: 8, DELTA: 16, KEYED: 32, TARGET: 64 }

/** Kind of a map's change, as bits. */
const Kind = { REMOVED: 1, APPEND: 2 }

/**
 * @param {string | Buffer} data
 * @param {Partial<Pick<PublishOptions, 'info' | 'tags' | 'version' | 'json' | 'delta' | 'target'>>} options
 * @param {Keyed | null} [keyed] @returns {Buffer}
 */
export function encode(
  data,
  { info = '', tags = null, version = 0n, json = true, delta = false, target = null },
  keyed = null,
) {
  const tagsText = tags === null ? '' : JSON.stringify(tags)
  const infoSize = info === '' ? 0 : 4 + Buffer.byteLength(info)
  const tagsSize = tags === null ? 0 : 4 + Buffer.byteLength(tagsText)
  const versioned = version > 0n
  const dataSize = typeof data === 'string' ? Buffer.byteLength(data) : data.length
  const keySize = keyed === null ? 0 : Buffer.byteLength(keyed.key)
  const keyedSize = keyed === null ? 0 : 13 + keySize
  const targetText = target === null ? '' : JSON.stringify(target)
  const targetSize = target === null ? 0 : 4 + Buffer.byteLength(targetText)
  const fieldsSize = infoSize + tagsSize + (versioned ? 8 : 0) + keyedSize + targetSize
  const bytes = Buffer.allocUnsafe(1 + fieldsSize + dataSize)
  let flags = 0
  let at = 1
  if (infoSize > 0) {
    flags |= Flag.INFO
    at = writeText(bytes, at, info, infoSize - 4)
  }
  if (tags !== null) {
    flags |= Flag.TAGS
    at = writeText(bytes, at, tagsText, tagsSize - 4)
  }
  if (versioned) {
    flags |= Flag.VERSION
    at = bytes.writeBigUInt64LE(version, at)
  }
  if (keyed !== null) {
    flags |= Flag.KEYED
    at = bytes.writeUInt8((keyed.removed ? Kind.REMOVED : 0) | (keyed.append ? Kind.APPEND : 0), at)
    at = bytes.writeDoubleLE(keyed.time, at)
    at = writeText(bytes, at, keyed.key, keySize)
  }
  if (target !== null) {
    flags |= Flag.TARGET
    at = writeText(bytes, at, targetText, targetSize - 4)
  }
  if (!json) flags |= Flag.NOT_JSON
  if (delta) flags |= Flag.DELTA
  bytes[0] = flags
  if (typeof data === 'string') bytes.write(data, at, dataSize, 'utf8')
  else data.copy(bytes, at)
  return bytes
}

/** @param {Buffer} bytes @param {number} at @param {string} text @param {number} size bytes @returns {number} end */
function writeText(bytes, at, text, size) {
  bytes.writeUInt32LE(size, at)
  bytes.write(text, at + 4, size, 'utf8')
  return at + 4 + size
}

/**
 * @param {Buffer} bytes @param {number} at position of the flags
 * @param {number} offset @param {string} epoch @param {number} previous offset of the previous publication
 * @returns {Publication} its payload is a view of `bytes`
 */
export function decode(bytes, at, offset, epoch, previous) {
  const flags = bytes[at++]
  let info = ''
  let tags = null
  let version = 0n
  if (flags & Flag.INFO) {
    const size = bytes.readUInt32LE(at)
    info = bytes.toString('utf8', at + 4, at + 4 + size)
    at += 4 + size
  }
  if (flags & Flag.TAGS) {
    const size = bytes.readUInt32LE(at)
    tags = JSON.parse(bytes.toString('utf8', at + 4, at + 4 + size))
    at += 4 + size
  }
  if (flags & Flag.VERSION) {
    version = bytes.readBigUInt64LE(at)
    at += 8
  }
  let keyed = null
  if (flags & Flag.KEYED) {
    const size = bytes.readUInt32LE(at + 9)
    const key = bytes.toString('utf8', at + 13, at + 13 + size)
    const removed = (bytes[at] & Kind.REMOVED) !== 0
    keyed = { key, removed, append: (bytes[at] & Kind.APPEND) !== 0, time: bytes.readDoubleLE(at + 1) }
    at += 13 + size
  }
  let target = null
  if (flags & Flag.TARGET) {
    const size = bytes.readUInt32LE(at)
    target = JSON.parse(bytes.toString('utf8', at + 4, at + 4 + size))
    at += 4 + size
  }
  const data = bytes.subarray(at)
  return {
    data,
    offset,
    epoch,
    previous,
    info,
    tags,
    version,
    json: (flags & Flag.NOT_JSON) === 0,
    delta: (flags & Flag.DELTA) !== 0,
    keyed,
    target,
  }
}

const PUBLICATION = 0x70 // p
const SPACE = 0x20
const LINE_FEED = 0x0a

/** @param {Buffer} bytes @param {number} at @param {number} end @returns {number} digits in between */
function readNumber(bytes, at, end) {
  let number = 0
  while (at < end) number = number * 10 + bytes[at++] - 0x30
  return number
}

/** The head of a publication on a topic: `p<offset> <epoch> <batch id> <index>[ <previous>]\n`. One object is reused. */
export class Head {
  offset = 0
  epoch = ''
  /** Begins with the uid of the publishing worker. */
  batchId = ''
  index = 0
  previous = 0
  /** Start of the body. */
  end = 0

  /** @param {Buffer} message @returns {boolean} whether it is a publication: any client can write to topics */
  read(message) {
    if (message[0] !== PUBLICATION) return false
    const end = message.indexOf(LINE_FEED)
    const offsetEnd = message.indexOf(SPACE, 1)
    const epochEnd = message.indexOf(SPACE, offsetEnd + 1)
    const batchEnd = message.indexOf(SPACE, epochEnd + 1)
    if (offsetEnd < 0 || epochEnd <= offsetEnd || batchEnd <= epochEnd || batchEnd > end) return false
    const offset = readNumber(message, 1, offsetEnd)
    this.offset = offset
    this.epoch = message.toString('latin1', offsetEnd + 1, epochEnd)
    this.batchId = message.toString('latin1', epochEnd + 1, batchEnd)
    let index = 0
    let at = batchEnd + 1
    while (at < end && message[at] !== SPACE) index = index * 10 + message[at++] - 0x30
    this.index = index
    this.previous = at < end ? readNumber(message, at + 1, end) : offset - 1
    this.end = end + 1
    return true
  }
}

/** @param {Buffer} value `<offset>[ <owner>]\n<body>` @param {string} epoch @returns {Publication} an entry of a map */
export function decodeEntry(value, epoch) {
  const end = value.indexOf(LINE_FEED)
  const space = value.lastIndexOf(SPACE, end)
  const offset = readNumber(value, 0, space < 0 ? end : space)
  return decode(value, end + 1, offset, epoch, offset - 1)
}

/**
 * @param {Buffer[]} reply head of a `read` reply, then id and value of each entry
 * @param {string} epoch @returns {Publication[]} in the order of the reply
 */
export function decodeEntries(reply, epoch) {
  const publications = []
  for (let i = 1; i < reply.length; i += 2) {
    const offset = Number.parseInt(reply[i].toString('latin1', 0, reply[i].length), 10)
    const value = reply[i + 1]
    const end = value.indexOf(LINE_FEED)
    const space = value.lastIndexOf(SPACE, end)
    const previous = space < 0 ? offset - 1 : readNumber(value, space + 1, end)
    publications.push(decode(value, end + 1, offset, epoch, previous))
  }
  return publications
}
