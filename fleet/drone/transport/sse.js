// sse and uni_sse: messages are events' data in the endless answer. The connect request is a POST: servers bound the length of URLs.

import { StreamConnection } from './stream.js'

const D = 100
const SPACE = 32

export class SseConnection extends StreamConnection {
  /** @override @param {string} type */
  takes(type) {
    return type === '' || type.startsWith('text/event-stream')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    const from = start + (buffer[start + 5] === SPACE ? 6 : 5)
    if (buffer[start] === D && from < end) super.line(buffer, from, end)
  }
}
