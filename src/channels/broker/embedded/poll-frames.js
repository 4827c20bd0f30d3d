// Fields of the frames of shared polls (polls.js).

/** @import { PollChange, PollUpdate } from '../contract.js' */
/** @import { FrameWriter } from './frames.js' */
/** @import { FrameCursor } from './records.js' */

const Flag = Object.freeze({ REMOVED: 1, NOT_JSON: 2 })

/** @param {FrameWriter} writer @param {PollUpdate} update */
function writeUpdate(writer, { key, version, removed, json, data }) {
  writer
    .string(key)
    .u8((removed ? Flag.REMOVED : 0) | (json ? 0 : Flag.NOT_JSON))
    .u64(version)
  writer.payload(data)
}

/** @param {FrameCursor} cursor @returns {PollUpdate} its data is a view, valid while the frame is */
function readUpdate(cursor) {
  const key = cursor.string()
  const flags = cursor.u8()
  const version = cursor.u64()
  const json = (flags & Flag.NOT_JSON) === 0
  return { key, version, removed: (flags & Flag.REMOVED) !== 0, json, data: cursor.view() }
}

/** @param {FrameWriter} writer @param {string} channel @param {PollUpdate} update */
export function writePollUpdate(writer, channel, update) {
  writer.string(channel)
  writeUpdate(writer, update)
}

/** @param {FrameCursor} cursor @returns {{channel: string, update: PollUpdate}} */
export const readPollUpdate = cursor => ({ channel: cursor.string(), update: readUpdate(cursor) })

/** @param {FrameWriter} writer @param {PollChange} change */
export function writePollChange(writer, change) {
  writer.bytes(change.hash)
  writeUpdate(writer, change)
}

/** @param {FrameCursor} cursor @returns {PollChange} as `readUpdate` */
export function readPollChange(cursor) {
  const hash = cursor.bytes()
  return { ...readUpdate(cursor), hash }
}
