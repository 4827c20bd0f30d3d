// A real NATS server with JetStream for tests.

import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { withoutProgram } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

/** Several filter subjects per consumer need 2.10 (set NATS_SERVER); Debian has 2.9. */
const PROGRAM = process.env.NATS_SERVER || 'nats-server'
const MISSING = `${PROGRAM} cannot be run: the tests want a NATS server (Debian: apt-get install nats-server; NATS_SERVER may name one)`

/** For the `skip` option of a test. */
export const withoutNats = () => (process.env.NATS_SERVER ? false : withoutProgram('nats-server'))

export class NatsServer extends ServerProcess {
  /** @param {number} [port] of a proxy @returns {string} for the `url` option */
  url(port = this.port) {
    return `nats://127.0.0.1:${port}`
  }

  /** @param {object} [options] of the client @returns {Promise<import('@nats-io/transport-node').NatsConnection>} */
  connect(options = {}) {
    return connect({ servers: this.url(), reconnect: false, ...options })
  }

  /** @template T @param {(parts: {connection: any, manager: any, js: any}) => Promise<T>} work @returns {Promise<T>} */
  async with(work) {
    const connection = await this.connect()
    try {
      return await work({
        connection,
        manager: await jetstreamManager(connection),
        js: jetstream(connection),
      })
    } finally {
      await connection.close()
    }
  }
}

/** @param {any} t ends with this test @param {{args?: string[]}} [options] such as `['--auth', 'token']` */
export const startNats = (t, { args = [] } = {}) =>
  startServer(t, async () => {
    const port = await freePort()
    const folder = await mkdtemp(join(tmpdir(), 'halley-nats-'))
    const run = {
      command: PROGRAM,
      args: ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder, ...args],
      ready: /Server is ready/,
      missing: MISSING,
    }
    return new NatsServer(run, port, folder)
  })
