/** @import { ChunkMaker } from './chunk-maker.js' */
/** @import { NodeConnection } from './node-connection.js' */
/** @import { NodeStream } from './node-stream.js' */

/**
 * What the node server writes in one turn of the event loop. The first frame of a connection leaves at once, as most
 * turns have one for each; later ones are corked until the end of the turn. Streams write at its end.
 */
export class TurnWrites {
  #chunks
  /** Number of this turn, among those that write. */
  #turn = 1
  /** Something was written in this turn. */
  #begun = false
  /** @type {(NodeConnection | NodeStream)[]} wait for the end of the turn */
  #held = []
  #end = () => this.#endTurn()

  /** @param {ChunkMaker} chunks */
  constructor(chunks) {
    this.#chunks = chunks
  }

  /** @param {NodeConnection} connection @param {Buffer} frame */
  write(connection, frame) {
    const { socket } = connection
    if (connection.held) {
      socket.write(frame)
      return
    }
    const isFirst = connection.turn !== this.#turn
    if (isFirst) {
      connection.turn = this.#turn
      this.#begin()
      socket.write(frame)
      if (socket.writableLength === 0) return
    }
    connection.held = true
    socket.cork()
    this.hold(connection)
    if (!isFirst) socket.write(frame)
  }

  /** Calls its `release` at the end of the turn. @param {NodeConnection | NodeStream} written */
  hold(written) {
    this.#held.push(written)
    this.#begin()
  }

  #begin() {
    if (this.#begun) return
    this.#begun = true
    setImmediate(this.#end)
  }

  #endTurn() {
    this.#turn++
    this.#begun = false
    const held = this.#held
    if (held.length === 0) return
    this.#held = []
    for (const written of held) written.release(this.#chunks)
    this.#chunks.clear()
  }
}
