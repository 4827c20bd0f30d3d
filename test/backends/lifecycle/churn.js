// Clients that connect, disconnect and record it.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import WebSocket from 'ws'
import { RawClient } from '../../kit/raw-client.js'

/** Timeout of a handshake with a killed worker, ms. */
const HANDSHAKE_MS = 3000

export const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: {
    without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
  },
}

const below = limit => Math.floor(Math.random() * limit)

export class Churn {
  /** Ids of clients that have connected, by address. @type {Map<string, Set<string>>} */
  book = new Map()
  #stopped = false
  /** @type {Promise<void>[]} */
  #loops = []

  /** @param {any} t ends with this test @param {string[]} addresses of gateways @param {number} clients at a time */
  constructor(t, addresses, clients) {
    for (const address of addresses) this.book.set(address, new Set())
    this.#loops = Array.from({ length: clients }, (_, index) =>
      this.#loop(addresses[index % addresses.length]),
    )
    t.teardown(() => this.stop())
  }

  /** Number of connected clients. */
  get size() {
    return [...this.book.values()].reduce((sum, ids) => sum + ids.size, 0)
  }

  async #loop(address) {
    while (!this.#stopped) {
      try {
        await this.#visit(address)
      } catch {
        // The gateway is down, or the worker was killed.
        await pause(20)
      }
    }
  }

  async #visit(address) {
    const socket = new WebSocket(address, { handshakeTimeout: HANDSHAKE_MS, perMessageDeflate: false })
    const client = new RawClient(socket)
    try {
      await once(socket, 'open')
      await client.login()
      this.book.get(address)?.add(client.connect.client)
      for (let n = below(4); n > 0; n--) await client.subscribe(`channel-${below(20)}`)
      if (below(2)) await client.call('unsubscribe', { channel: `channel-${below(20)}` })
      await Promise.race([client.closed, pause(below(300))])
    } finally {
      // Some leave without a close frame.
      if (below(2)) socket.terminate()
      else socket.close()
    }
  }

  /** Ends all clients. */
  async stop() {
    this.#stopped = true
    await Promise.all(this.#loops)
  }
}
