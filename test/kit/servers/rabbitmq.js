// A real RabbitMQ server for tests, on free ports of loopback, with data in a temporary folder.

import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'amqplib'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess } from './server-process.js'

/** The server's own script: the one of Debian on the PATH changes the user. */
const PLACES = ['/usr/lib/rabbitmq/bin/rabbitmq-server', '/usr/local/sbin/rabbitmq-server']
const PROGRAM = process.env.RABBITMQ_SERVER || PLACES.find(place => existsSync(place)) || ''
const MISSING =
  'no RabbitMQ server: the tests want one (Debian: apt-get install rabbitmq-server; RABBITMQ_SERVER may name the script)'
const TRIES = 5

/** For the option `skip` of a test. */
export const withoutRabbit = () => unless(PROGRAM !== '', MISSING)

/** One server. Durable queues and persistent messages survive `kill` and `restart`. */
export class RabbitServer extends ServerProcess {
  #epmd

  /**
   * @param {import('./server-process.js').Run} run
   * @param {number} port @param {string} folder @param {ServerProcess} epmd names of Erlang's nodes
   */
  constructor(run, port, folder, epmd) {
    super(run)
    this.port = port
    this.folder = folder
    this.#epmd = epmd
  }

  /** @param {number} [port] of a proxy before it @returns {string} for the option `urls` */
  url(port = this.port) {
    return `amqp://guest:guest@127.0.0.1:${port}`
  }

  /**
   * @template T
   * @param {(channel: import('amqplib').ConfirmChannel) => Promise<T>} work with a connection of its own
   * @returns {Promise<T>}
   */
  async with(work) {
    const connection = await connect(this.url())
    connection.on('error', () => {})
    try {
      const channel = await connection.createConfirmChannel()
      channel.on('error', () => {})
      return await work(channel)
    } finally {
      await connection.close().catch(() => {})
    }
  }

  /** @param {string} queue @param {object} [args] `x-...` @returns {Promise<unknown>} a durable queue is there */
  declare(queue, args = {}) {
    return this.with(channel => channel.assertQueue(queue, { durable: true, arguments: args }))
  }

  /**
   * Persistent messages, confirmed.
   * @param {string} queue @param {(string | Buffer)[]} payloads @param {Record<string, any>} [headers] of each
   */
  send(queue, payloads, headers = {}) {
    return this.with(async channel => {
      for (const payload of payloads)
        channel.sendToQueue(queue, Buffer.from(payload), { persistent: true, headers })
      await channel.waitForConfirms()
    })
  }

  /** @param {string} queue @returns {Promise<number>} messages that no consumer has got */
  ready(queue) {
    return this.with(async channel => (await channel.checkQueue(queue)).messageCount)
  }

  /** Ends it for good, and its data. */
  async stop() {
    await this.kill()
    await this.#epmd.kill()
    await rm(this.folder, { recursive: true, force: true })
  }
}

/**
 * @param {any} t ends with this test
 * @param {{settings?: string[]}} [options] lines of its configuration
 * @returns {Promise<RabbitServer>} running; account `guest`, password `guest`
 */
export async function startRabbit(t, { settings = [] } = {}) {
  for (let tried = 1; ; tried++) {
    const [port, distPort, epmdPort] = [await freePort(), await freePort(), await freePort()]
    const folder = await mkdtemp(join(tmpdir(), 'halley-rabbitmq-'))
    await writeFile(join(folder, 'rabbitmq.conf'), settings.map(line => `${line}\n`).join(''))
    const server = create(folder, port, distPort, epmdPort)
    try {
      await server.start()
      t.teardown(() => server.stop())
      return server
    } catch (error) {
      await server.stop()
      const taken = server.log.some(line => line.includes('eaddrinuse'))
      if (!taken || tried === TRIES) throw error
    }
  }
}

/** @param {string} folder @param {number} port @param {number} distPort @param {number} epmdPort */
function create(folder, port, distPort, epmdPort) {
  const names = { ERL_EPMD_PORT: `${epmdPort}`, ERL_EPMD_ADDRESS: '127.0.0.1' }
  // Started by the node, epmd would be a daemon that outlives it.
  const epmd = new ServerProcess({
    command: 'epmd',
    args: ['-d'],
    ready: /epmd running/,
    missing: 'epmd cannot be run: RabbitMQ wants Erlang (Debian: apt-get install rabbitmq-server)',
    env: names,
  })
  const env = {
    ...names,
    HOME: folder,
    // The script becomes the server, else a shell waits for it and signals do not reach it.
    detached: '1',
    RABBITMQ_NODENAME: `halley-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: `${port}`,
    RABBITMQ_DIST_PORT: `${distPort}`,
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONF_ENV_FILE: join(folder, 'none'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '-start_epmd false -kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none',
  }
  const run = {
    command: PROGRAM === '' ? 'rabbitmq-server' : realpathSync(PROGRAM),
    args: [],
    ready: /Server startup complete/,
    missing: MISSING,
    env,
  }
  const server = new RabbitServer(run, port, folder, epmd)
  const start = server.start.bind(server)
  server.start = async () => {
    if (epmd.pid === 0) await epmd.start()
    await start()
  }
  return server
}
