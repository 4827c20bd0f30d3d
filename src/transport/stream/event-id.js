import { createHash } from 'node:crypto'

/**
 * Event ids of one-way SSE: the positions of all channels of a connection that can recover, so that a browser that reconnects by itself and
 * tells the last one (`Last-Event-ID`) goes on where it was.
 *
 *   id   = entry *("," entry)
 *   entry = channel ":" offset ":" epoch        channel: 8 letters of a hash of its name
 */

const HASH_BYTES = 6
/** Browsers send the id back in a header; servers and proxies take some thousands of bytes of them. */
const MAX_LENGTH = 2000

/** @type {WeakMap<object, string>} the hub's channel -> hash of its name */
const hashes = new WeakMap()

/** @param {string} name */
const hashName = name =>
  createHash('sha256').update(name).digest().subarray(0, HASH_BYTES).toString('base64url')

/** @param {import('../../hub/channel.js').Channel} channel */
function hashOf(channel) {
  let hash = hashes.get(channel)
  if (hash === undefined) hashes.set(channel, (hash = hashName(channel.name)))
  return hash
}

/**
 * @param {import('../../hub/channel.js').Channel[]} channels positioned ones
 * @returns {string} '' when they are too many for one id
 */
export function eventId(channels) {
  const id = channels.map(channel => `${hashOf(channel)}:${channel.offset}:${channel.epoch}`).join(',')
  return id.length > MAX_LENGTH ? '' : id
}

/**
 * @param {string} id of whatever form
 * @returns {(channel: string) => {offset: number, epoch: string, recoverable: boolean} | undefined} position of a channel
 */
export function readEventId(id) {
  /** @type {Map<string, {offset: number, epoch: string, recoverable: boolean}>} */
  const positions = new Map()
  if (id.length <= MAX_LENGTH) {
    for (const entry of id.split(',')) {
      const match = /^([\w-]{8}):(\d{1,15}):(\w{1,32})$/.exec(entry)
      if (match) positions.set(match[1], { offset: Number(match[2]), epoch: match[3], recoverable: true })
    }
  }
  return channel => (positions.size === 0 ? undefined : positions.get(hashName(channel)))
}
