import { WebSocket } from 'ws'

/** @typedef {{route: import('./contract.js').WebSocketRoute, server: import('./node.js').NodeServer}} Group */

/**
 * The connection of the node server: the WebSocket of `ws`, which reads, shakes hands and says goodbye, with what the
 * server keeps about it. Messages are written past it, straight to the socket, so that a frame that many receive is
 * made once.
 */
export class NodeConnection extends WebSocket {
  /** @type {any} what the transport hangs on it */
  session = null
  /** @type {Group} */
  group = /** @type {any} */ (null)
  /** @type {import('node:net').Socket} */
  socket = /** @type {any} */ (null)
  /** @type {Set<string> | null} */
  topics = null
  /** Messages may go to it compressed. */
  deflates = false
  /** What we have written in this turn of the event loop waits in the socket. */
  held = false
  /** The close code we asked for; 0 while nobody has. */
  closeCode = 0
  closeReason = ''

  /**
   * @param {Group} group
   * @param {import('node:net').Socket} socket
   */
  attach(group, socket) {
    this.group = group
    this.socket = socket
    this.deflates = this.extensions !== ''
    listenTo(/** @type {any} */ (this))
  }

  /** Lets go what one turn of the event loop has written. */
  release() {
    this.held = false
    this.socket.uncork()
    const { route, server } = this.group
    const { unread } = this
    if (unread === 0) return
    server.slow.add(this)
    if (this.live && unread > route.maxBuffered) route.overflow(/** @type {any} */ (this))
  }

  /** Bytes that its client has not taken. */
  get unread() {
    return this.socket.destroyed ? 0 : this.socket.writableLength
  }

  /** Nothing has been said about the end yet, by either side. */
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

/**
 * @this {NodeConnection}
 * @param {Buffer} data
 * @param {boolean} binary
 */
function onMessage(data, binary) {
  if (this.deflates) releaseInflater(this)
  if (this.closeCode === 0) this.group.route.message(this, data, binary)
}

/** @this {NodeConnection} */
function onPong() {
  if (this.closeCode === 0) this.group.route.pong(this)
}

/**
 * `ws` has closed the connection by itself by now; the close event follows.
 *
 * @this {NodeConnection}
 * @param {Error & {code?: string}} error
 */
function onError(error) {
  if (this.closeCode === 0 && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') this.closeCode = 1009
}

/**
 * @this {NodeConnection}
 * @param {number} code
 * @param {Buffer} reason
 */
function onClose(code, reason) {
  const { route, server } = this.group
  server.remove(this)
  if (this.closeCode !== 0) route.close(this, this.closeCode, this.closeReason)
  else route.close(this, code, reason.toString())
}

/**
 * `ws` keeps a decompressor of about 35 KB for each connection that has sent something compressed, although without
 * context takeover none of it is worth keeping. It makes a new one when it needs one.
 *
 * @param {any} connection
 */
function releaseInflater(connection) {
  connection._extensions?.['permessage-deflate']?.cleanup?.()
}

/** @typedef {{topics: Set<string> | null}} Member */

/**
 * Who wants which topic, for a server whose library has no topics.
 *
 * @template {Member} M
 */
export class Topics {
  /** @type {Map<string, Set<M>>} */
  #members = new Map()

  /**
   * @param {M} member
   * @param {string} topic
   */
  join(member, topic) {
    member.topics ??= new Set()
    member.topics.add(topic)
    const members = this.#members.get(topic)
    if (members === undefined) this.#members.set(topic, new Set([member]))
    else members.add(member)
  }

  /**
   * @param {M} member
   * @param {string} topic
   */
  leave(member, topic) {
    if (member.topics?.delete(topic) === true) this.#remove(member, topic)
  }

  /** @param {M} member */
  leaveAll(member) {
    if (member.topics === null) return
    for (const topic of member.topics) this.#remove(member, topic)
    member.topics = null
  }

  /**
   * @param {string} topic
   * @returns {Set<M> | undefined}
   */
  members(topic) {
    return this.#members.get(topic)
  }

  /**
   * @param {M} member
   * @param {string} topic
   */
  #remove(member, topic) {
    const members = this.#members.get(topic)
    members?.delete(member)
    if (members?.size === 0) this.#members.delete(topic)
  }
}
