// A TCP proxy that cuts connections, like a bad network.

import { once } from 'node:events'
import net from 'node:net'

export class TcpProxy {
  /** @type {Set<net.Socket>} both ends of each connection */
  #sockets = new Set()
  #server
  /** Whether new connections are reset. */
  refuses = false
  /** Called with data of targets before it is forwarded. @type {(bytes: Buffer) => void} */
  onAnswer = () => {}
  /** Connections cut so far. */
  cuts = 0
  #accepted = 0
  #holds = false
  /** Called with data of clients: true keeps it, and all that follows, until `release`. @type {(bytes: Buffer) => boolean} */
  keeps = () => false
  /** @type {{to: net.Socket, bytes: Buffer}[] | null} */
  #kept = null

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
      }
      upstream.pipe(client)
      client.on('data', bytes => this.#forward(bytes, client, upstream))
      client.on('end', () => upstream.end())
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

  /** @param {Buffer} bytes @param {net.Socket} client @param {net.Socket} to */
  #forward(bytes, client, to) {
    if (this.#holds) return
    if (this.#kept === null && this.keeps(bytes)) this.#kept = []
    if (this.#kept !== null) return void this.#kept.push({ to, bytes })
    if (to.write(bytes)) return
    client.pause()
    to.once('drain', () => client.resume())
  }

  /** Whether it keeps data, see `keeps`. */
  get isKeeping() {
    return this.#kept !== null
  }

  /** Forwards what it has kept. */
  release() {
    this.keeps = () => false
    for (const { to, bytes } of this.#kept ?? []) to.write(bytes)
    this.#kept = null
  }

  get port() {
    return /** @type {net.AddressInfo} */ (this.#server.address()).port
  }

  /** Drops data from clients until the next cut; still forwards data from targets. */
  hold() {
    this.#holds = true
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
