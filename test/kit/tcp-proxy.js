// A TCP proxy that cuts connections: the bad network between clients and gateway.

import { once } from 'node:events'
import net from 'node:net'

/**
 * Passes bytes both ways between its own port and another one, until it is told to cut.
 */
export class TcpProxy {
  /** @type {Set<net.Socket>} both ends of all connections */
  #sockets = new Set()
  /** @type {Map<net.Socket, net.Socket>} client -> its connection to the target */
  #upstreams = new Map()
  #server
  /** While true, new connections are cut at once. */
  refuses = false
  /** Gets what targets send, before it is passed on. @type {(bytes: Buffer) => void} */
  onAnswer = () => {}
  /** Connections cut so far. */
  cuts = 0
  #accepted = 0
  #holds = false

  /** @param {number} target port on 127.0.0.1 */
  constructor(target) {
    /** Ports that new connections go to, in turns. */
    this.targets = [target]
    this.#server = net.createServer({ noDelay: true }, client => {
      if (this.refuses) {
        client.resetAndDestroy()
        return
      }
      const port = this.targets[this.#accepted++ % this.targets.length]
      const upstream = net.connect({ port, host: '127.0.0.1', noDelay: true })
      upstream.on('data', bytes => this.onAnswer(bytes))
      this.#upstreams.set(client, upstream)
      client.on('close', () => this.#upstreams.delete(client))
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ]) {
        this.#sockets.add(from)
        from.on('error', () => {})
        from.on('close', () => {
          this.#sockets.delete(from)
          to.destroy()
        })
        if (from === upstream || !this.#holds) from.pipe(to)
      }
    })
  }

  /**
   * @param {any} t ends with this test
   * @param {number} target
   * @returns {Promise<TcpProxy>} listening
   */
  static async start(t, target) {
    const proxy = new TcpProxy(target)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    t.teardown(() => proxy.stop())
    return proxy
  }

  get port() {
    return /** @type {net.AddressInfo} */ (this.#server.address()).port
  }

  /** Until the next cut nothing that clients send arrives. They still get what targets send. */
  hold() {
    this.#holds = true
    for (const [client, upstream] of this.#upstreams) client.unpipe(upstream)
  }

  /**
   * Cuts connections, whatever is on its way in them.
   * @param {() => boolean} [chosen] asked for each
   */
  cut(chosen = () => true) {
    this.#holds = false
    for (const socket of [...this.#sockets]) {
      if (!chosen()) continue
      this.cuts++
      // While a socket is shutting down it cannot be reset, and Node.js would wait for that at its end, for ever.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  stop() {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
