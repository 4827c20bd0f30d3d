import { WebSocket } from 'ws'
import { addressOf } from './node-stream.js'

/** @import { Socket } from 'node:net' */

/** @typedef {{route: import('./contract.js').WebSocketRoute, server: import('./node.js').NodeServer}} Group */

/** `ws` handles reads and handshakes. Writes go to the socket directly, to encode a frame once for many receivers. */
export class NodeConnection extends WebSocket {
  /** @type {any} */
  session = null
  /** @type {Group} */
  group = /** @type {any} */ (null)
  /** @type {Socket} */
  socket = /** @type {any} */ (null)
  /** @type {Set<string> | null} */
  topics = null
  deflates = false
  /** Turn of the last frame, see `TurnWrites`. */
  turn = 0
  /** Writes of this turn are corked. */
  held = false
  /** Sent by the server; 0: none yet. */
  closeCode = 0
  closeReason = ''

  /** @param {Group} group @param {Socket} socket */
  attach(group, socket) {
    this.group = group
    this.socket = socket
    this.deflates = this.extensions !== ''
    listenTo(/** @type {any} */ (this))
  }

  get remoteAddress() {
    return addressOf(this.socket)
  }

  release() {
    this.held = false
    this.socket.uncork()
    const { route, server } = this.group
    const { unread } = this
    if (unread === 0) return
    server.slow.add(this)
    if (this.live && unread > route.maxBuffered) route.overflow(/** @type {any} */ (this))
  }

  /** Called by `ws`. @param {Buffer} data @param {boolean} mask @param {(error: Error) => void} done */
  pong(data, mask, done) {
    releaseChunks(this)
    super.pong(data, mask, done)
  }

  get unread() {
    return this.socket.destroyed ? 0 : this.socket.writableLength
  }

  /** Neither side has started to close. */
  get live() {
    return this.closeCode === 0 && this.readyState === WebSocket.OPEN
  }
}

/** @param {import('node:events').EventEmitter} connection */
function listenTo(connection) {
  connection.on('message', onMessage)
  connection.on('pong', onPong)
  connection.on('error', onError)
  connection.on('close', onClose)
}

/** @this {NodeConnection} @param {Buffer} data @param {boolean} binary */
function onMessage(data, binary) {
  if (this.deflates) releaseInflater(this)
  if (this.closeCode === 0) this.group.route.message(this, data, binary)
}

/** @this {NodeConnection} */
function onPong() {
  releaseChunks(this)
  if (this.closeCode === 0) this.group.route.pong(this)
}

/** Close codes that `ws` sends for its errors. @type {Record<string, number>} */
const CLOSE_CODES = Object.freeze({
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
})

/** `ws` closes the connection afterwards. @this {NodeConnection} @param {Error & {code?: string}} error */
function onError(error) {
  if (this.closeCode === 0) this.closeCode = CLOSE_CODES[error.code ?? ''] ?? 0
}

/** @this {NodeConnection} @param {number} code @param {Buffer} reason */
function onClose(code, reason) {
  const { route, server } = this.group
  server.remove(this)
  if (this.closeCode !== 0) route.close(this, this.closeCode, this.closeReason)
  else route.close(this, code, reason.toString())
}

/**
 * Frees the decompressor (about 35 KB): without context takeover it is stateless, and `ws` recreates it on demand. Uses
 * private fields, so package.json pins `ws`; without these fields, nothing is freed.
 * @param {any} connection
 */
function releaseInflater(connection) {
  connection._extensions?.['permessage-deflate']?.cleanup?.()
}

/**
 * Copies the fragments of an unfinished message on a control frame: `ws` keeps them as slices of chunks of up to 64 KB.
 * Uses private fields, so package.json pins `ws`; without these fields, the chunks stay.
 * @param {any} connection
 */
function releaseChunks(connection) {
  /** @type {Buffer[]} */
  const fragments = connection._receiver?._fragments ?? []
  for (let i = fragments.length - 1; i >= 0; i--) {
    const fragment = fragments[i]
    // Already copied, as are all earlier ones.
    if (fragment.buffer.byteLength === fragment.length) return
    fragments[i] = Buffer.allocUnsafeSlow(fragment.length)
    fragments[i].set(fragment)
  }
}

export class Topics {
  /** @type {Map<string, Set<NodeConnection>>} */
  #members = new Map()

  /** @param {NodeConnection} member @param {string} topic */
  join(member, topic) {
    member.topics ??= new Set()
    member.topics.add(topic)
    const members = this.#members.get(topic)
    if (members === undefined) this.#members.set(topic, new Set([member]))
    else members.add(member)
  }

  /** @param {NodeConnection} member @param {string} topic */
  leave(member, topic) {
    if (member.topics?.delete(topic) === true) this.#remove(member, topic)
  }

  /** @param {NodeConnection} member */
  leaveAll(member) {
    if (member.topics === null) return
    for (const topic of member.topics) this.#remove(member, topic)
    member.topics = null
  }

  /** @param {string} topic */
  members(topic) {
    return this.#members.get(topic)
  }

  /** @param {NodeConnection} member @param {string} topic */
  #remove(member, topic) {
    const members = this.#members.get(topic)
    members?.delete(member)
    if (members?.size === 0) this.#members.delete(topic)
  }
}
