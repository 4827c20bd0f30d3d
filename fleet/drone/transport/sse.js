// sse and uni_sse: messages are events' data in the endless answer to a GET, as EventSource makes it.

import { StreamConnection } from './stream.js'

const DATA = Buffer.from('data:')
const CR = 13
const SPACE = 32
/** A longer connect request goes as a POST: servers bound the length of URLs. */
const MAX_QUERY = 2000

export class SseConnection extends StreamConnection {
  /** @override */
  opened() {
    const query = encodeURIComponent(this.outbox)
    if (query.length > MAX_QUERY) return super.opened()
    this.outbox = ''
    const { target } = this
    this.write(target.head(`GET ${target.dialer.path}?cf_connect=${query}`, 'Accept: text/event-stream\r\n'))
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    if (buffer[end - 1] === CR) end--
    const from = start + DATA.length
    if (end <= from || DATA.compare(buffer, start, from) !== 0) return
    super.line(buffer, buffer[from] === SPACE ? from + 1 : from, end)
  }
}
