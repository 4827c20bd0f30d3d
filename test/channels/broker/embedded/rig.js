// Workers and host of the embedded broker in one process, over real sockets, with a clock set by the test.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BrokerHost } from '../../../../src/channels/broker/embedded/host.js'
import { createBroker } from '../../../../src/channels/broker/index.js'

const NODE = 'node-under-test'

/** A log that records its lines. */
export function createTestLog() {
  const lines = []
  const at = level => (details, message) =>
    lines.push(typeof details === 'string' ? { level, msg: details } : { level, ...details, msg: message })
  return { lines, error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') }
}

/** @param {any} t @param {{maxBytes?: number}} [options] */
export async function startEmbedded(t, { maxBytes = 2 ** 29 } = {}) {
  let now = 1_700_000_000_000
  const log = createTestLog()
  const host = new BrokerHost({ maxBytes, log: /** @type {any} */ (log), clock: () => now })
  const folder = await mkdtemp(join(tmpdir(), 'halley-bus-'))
  const path = join(folder, 'bus')
  const server = createServer().listen(path)
  await once(server, 'listening')
  const sockets = new Map()
  const workers = new Map()
  const open = new Set()
  t.teardown(async () => {
    for (const socket of open) socket.destroy()
    server.close()
    await rm(folder, { recursive: true, force: true })
  })

  return {
    host,
    log,
    sockets,

    /** A socket served by the host under this name. */
    async socket(name, worker = -1, options = {}) {
      const [[accepted], socket] = await Promise.all([
        once(server, 'connection'),
        new Promise(resolve => {
          const socket = connect(path, () => resolve(socket))
        }),
      ])
      open.add(socket).add(accepted)
      host.attach(accepted, name, worker, options)
      return socket
    },

    /** @param {any} [createEngine] and its `config` @param {object} [options] of the host */
    async join(events, worker = sockets.size, createEngine = null, config = undefined, options = {}) {
      const socket = await this.socket(String(worker), worker, options)
      const parts = { socket, config, events, node: NODE, worker, log: /** @type {any} */ (log) }
      const broker = createBroker(createEngine, parts)
      socket.on('data', broker.receive)
      sockets.set(broker, socket)
      workers.set(broker, worker)
      return broker
    },

    place: broker => ({ node: NODE, worker: workers.get(broker) }),

    cut(broker) {
      sockets.get(broker).destroy()
    },

    /** Advances second by second, like the primary. */
    pass(ms) {
      for (const end = now + ms; now < end; ) {
        now = Math.min(end, now + 1000)
        host.tick()
      }
    },
  }
}
