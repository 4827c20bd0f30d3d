// A real NATS server with JetStream for tests, on a free port of loopback, with data in a temporary folder.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { withoutProgram } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess } from './server-process.js'

/** Debian's 2.9 has one filter subject for a consumer; several need 2.10, which $NATS_SERVER may name. */
const PROGRAM = process.env.NATS_SERVER || 'nats-server'
const MISSING = `${PROGRAM} cannot be run: the tests want a NATS server (Debian: apt-get install nats-server; NATS_SERVER may name one)`
const TRIES = 20

/** For the option `skip` of a test. */
export const withoutNats = () => (process.env.NATS_SERVER ? false : withoutProgram('nats-server'))

/** One server. */
export class NatsServer extends ServerProcess {
  /** @param {import('./server-process.js').Run} run @param {number} port @param {string} folder */
  constructor(run, port, folder) {
    super(run)
    this.port = port
    this.folder = folder
  }

  /** @param {number} [port] of a proxy before it @returns {string} for the option `url` */
  url(port = this.port) {
    return `nats://127.0.0.1:${port}`
  }

  /**
   * @param {object} [options] of the client
   * @returns {Promise<import('@nats-io/transport-node').NatsConnection>} its owner closes it
   */
  connect(options = {}) {
    return connect({ servers: this.url(), reconnect: false, ...options })
  }

  /**
   * @template T
   * @param {(parts: {connection: any, manager: any, js: any}) => Promise<T>} work with a connection of its own
   * @returns {Promise<T>}
   */
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

  /** Ends it for good, and its data. */
  async stop() {
    await this.kill()
    await rm(this.folder, { recursive: true, force: true })
  }
}

/**
 * @param {any} t ends with this test
 * @param {{args?: string[]}} [options] more of its command line, such as `['--auth', 'token']`
 * @returns {Promise<NatsServer>} running
 */
export async function startNats(t, { args = [] } = {}) {
  for (let tried = 1; ; tried++) {
    const port = await freePort()
    const folder = await mkdtemp(join(tmpdir(), 'halley-nats-'))
    const server = new NatsServer(
      {
        command: PROGRAM,
        args: ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder, ...args],
        ready: /Server is ready/,
        missing: MISSING,
      },
      port,
      folder,
    )
    try {
      await server.start()
      t.teardown(() => server.stop())
      return server
    } catch (error) {
      await server.stop()
      const taken = server.log.some(line => line.includes('address already in use'))
      if (!taken || tried === TRIES) throw error
    }
  }
}
