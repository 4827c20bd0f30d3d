// The output of a FrameWriter to its socket.

import { FrameReader, FrameWriter } from '../../../../src/channels/broker/embedded/frames.js'

/**
 * @param {(writer: FrameWriter) => void} write @returns {Promise<Buffer>} the bytes of the first write to the socket
 */
export function written(write) {
  return new Promise(resolve => {
    const socket = { writableLength: 0, destroyed: false, write: bytes => resolve(Buffer.from(bytes)) }
    write(new FrameWriter(/** @type {any} */ (socket)))
  })
}

/** @param {(writer: FrameWriter) => void} write @returns {Promise<any>} a cursor over the frame, at its first field */
export async function cursorOver(write) {
  let cursor
  const reader = new FrameReader(
    (_type, at) => (cursor = Object.assign(Object.create(Object.getPrototypeOf(at)), at)),
    () => {},
  )
  reader.push(await written(write))
  return cursor
}
