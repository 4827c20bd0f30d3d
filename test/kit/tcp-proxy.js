// A TCP proxy that cuts connections, like a bad network.

import { once } from 'node:events'
import net from 'node:net'

export class TcpProxy {
  /** @type {Set<net.Socket>} both ends of each connection */
  #sockets = new Set()
  /** @type {Map<net.Socket, net.Socket>} client -> its connection to the target */
  #upstreams = new Map()
  #server
  /** Whether new connections are reset. */
  refuses = false
  /** Called with data of targets before it is forwarded. @type {(bytes: Buffer) => void} */
  onAnswer = () => {}
  /** Connections cut so far. */
  cuts = 0
  #accepted = 0
  #holds = false

  /** @param {number} target port on 127.0.0.1 */
  constructor(target) {
    /** Ports for new connections, in turn. */
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

  /** @param {any} t ends with this test @param {number} target */
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

  /** Drops data from clients until the next cut; still forwards data from targets. */
  hold() {
    this.#holds = true
    for (const [client, upstream] of this.#upstreams) client.unpipe(upstream)
  }

  /** Resets connections with all data in flight. @param {() => boolean} [chosen] called for each */
  cut(chosen = () => true) {
    this.#holds = false
    for (const socket of [...this.#sockets]) {
      if (!chosen()) continue
      this.cuts++
      // A half-closed socket cannot be reset: Node.js would never end it.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  stop() {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
