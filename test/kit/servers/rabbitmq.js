// A real RabbitMQ server for tests.

import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'amqplib'
import { unless } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

/** The server's script: the one on Debian's PATH switches users. */
const PLACES = ['/usr/lib/rabbitmq/bin/rabbitmq-server', '/usr/local/sbin/rabbitmq-server']
const PROGRAM = process.env.RABBITMQ_SERVER || PLACES.find(place => existsSync(place)) || ''
const MISSING =
  'no RabbitMQ server: the tests want one (Debian: apt-get install rabbitmq-server; RABBITMQ_SERVER may name the script)'

/** For the `skip` option of a test. */
export const withoutRabbit = () => unless(PROGRAM !== '', MISSING)

/** Durable queues and persistent messages survive `kill` and `restart`. */
export class RabbitServer extends ServerProcess {
  #epmd

  /**
   * @param {import('./server-process.js').Run} run @param {number} port @param {string} folder
   * @param {ServerProcess} epmd
   */
  constructor(run, port, folder, epmd) {
    super(run, port, folder)
    this.#epmd = epmd
  }

  /** @override */
  async start() {
    if (this.#epmd.pid === 0) await this.#epmd.start()
    await super.start()
  }

  /** @override */
  async stop() {
    await super.stop()
    await this.#epmd.kill()
  }

  /** @param {number} [port] of a proxy @returns {string} for the `urls` option */
  url(port = this.port) {
    return `amqp://guest:guest@127.0.0.1:${port}`
  }

  /** @template T @param {(channel: import('amqplib').ConfirmChannel) => Promise<T>} work @returns {Promise<T>} */
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

  /** @param {string} queue durable @param {object} [args] `x-...` */
  declare(queue, args = {}) {
    return this.with(channel => channel.assertQueue(queue, { durable: true, arguments: args }))
  }

  /**
   * Persistent messages, confirmed.
   * @param {string} queue @param {(string | Buffer)[]} payloads @param {Record<string, any>} [headers]
   */
  send(queue, payloads, headers = {}) {
    return this.with(async channel => {
      for (const payload of payloads)
        channel.sendToQueue(queue, Buffer.from(payload), { persistent: true, headers })
      await channel.waitForConfirms()
    })
  }

  /** @param {string} queue @returns {Promise<number>} messages without a consumer */
  ready(queue) {
    return this.with(async channel => (await channel.checkQueue(queue)).messageCount)
  }
}

/** @param {any} t ends with this test @param {{settings?: string[]}} [options] lines of its configuration */
export const startRabbit = (t, { settings = [] } = {}) =>
  startServer(t, async () => {
    const [port, distPort, epmdPort] = [await freePort(), await freePort(), await freePort()]
    const folder = await mkdtemp(join(tmpdir(), 'halley-rabbitmq-'))
    await writeFile(join(folder, 'rabbitmq.conf'), settings.map(line => `${line}\n`).join(''))
    return create(folder, port, distPort, epmdPort)
  })

/** @param {string} folder @param {number} port @param {number} distPort @param {number} epmdPort */
function create(folder, port, distPort, epmdPort) {
  const names = { ERL_EPMD_PORT: `${epmdPort}`, ERL_EPMD_ADDRESS: '127.0.0.1' }
  // An epmd started by the node would outlive it.
  const epmd = new ServerProcess(
    {
      command: 'epmd',
      args: ['-d'],
      ready: /epmd running/,
      missing: 'epmd cannot be run: RabbitMQ wants Erlang (Debian: apt-get install rabbitmq-server)',
      env: names,
    },
    epmdPort,
  )
  const env = {
    ...names,
    HOME: folder,
    // The script execs the server, which then gets signals.
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
  return new RabbitServer(run, port, folder, epmd)
}
