// A real Kafka server for tests: one KRaft node.

import { existsSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadKafka } from '../../../src/backends/queues/kafka/client.js'
import { isPackage, unless, withoutProgram } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

const LIBS = process.env.KAFKA_LIBS ?? ''
const MISSING_CLIENT =
  '@platformatic/kafka is not installed (npm install --no-save --save-dev @platformatic/kafka@2.12.1)'
const MISSING =
  'KAFKA_LIBS does not name a folder with the jars of org.apache.kafka:kafka_2.13:3.9.1 and an slf4j binding'
const CLUSTER = 'aGFsbGV5LXRlc3RzLS0tLQ'
/** Messages per request: the server limits its bytes. */
const BATCH = 2000

/** For the `skip` option of a test. */
export const withoutKafka = () =>
  unless(isPackage('@platformatic/kafka'), MISSING_CLIENT) ||
  unless(
    LIBS !== '' && existsSync(LIBS) && readdirSync(LIBS).some(name => name.startsWith('kafka_')),
    MISSING,
  ) ||
  withoutProgram('java', 'default-jre-headless')

/**
 * @typedef {{key?: string, value: string | Buffer | null, headers?: Record<string, string>, partition?: number}} Sent
 */

/** Acknowledged messages survive `kill` and `restart`. */
export class KafkaServer extends ServerProcess {
  /** For the `brokers` option; not through a proxy. */
  get broker() {
    return `127.0.0.1:${this.port}`
  }

  get #client() {
    return { clientId: 'test', bootstrapBrokers: [this.broker], connectTimeout: 10_000, timeout: 20_000 }
  }

  /** @template T @param {(admin: import('@platformatic/kafka').Admin) => Promise<T>} work @returns {Promise<T>} */
  async with(work) {
    const { Admin } = await loadKafka()
    const admin = new Admin(this.#client)
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  }

  /** @param {string} topic */
  async createTopic(topic, partitions = 1) {
    await this.with(admin => admin.createTopics({ topics: [topic], partitions, replicas: 1 }))
  }

  /** @param {string} topic @param {Sent[]} messages acknowledged when this resolves; partition 0 by default */
  async send(topic, messages) {
    const { Producer } = await loadKafka()
    const producer = new Producer({ ...this.#client, autocreateTopics: false })
    try {
      for (let first = 0; first < messages.length; first += BATCH) {
        await producer.send({
          acks: -1,
          messages: messages
            .slice(first, first + BATCH)
            .map(({ key, value, headers = {}, partition = 0 }) => ({
              topic,
              partition,
              key: key === undefined ? undefined : Buffer.from(key),
              value: value === null ? undefined : Buffer.from(value),
              headers: new Map(
                Object.entries(headers).map(([name, text]) => [Buffer.from(name), Buffer.from(text)]),
              ),
            })),
        })
      }
    } finally {
      await producer.close()
    }
  }
}

/**
 * @param {any} t ends with this test
 * @param {{properties?: Record<string, string>, proxy?: import('../tcp-proxy.js').TcpProxy, secure?: number}} [options]
 *   `proxy`: forwards to a server port that advertises the proxy; `secure`: one more port, with TLS
 *   and SASL (properties `listener.name.secure.*`)
 */
export const startKafka = (t, { properties = {}, proxy, secure } = {}) =>
  startServer(t, async () => {
    const [port, controllerPort] = [await freePort(), await freePort()]
    const folder = await mkdtemp(join(tmpdir(), 'halley-kafka-'))
    const more = []
    if (proxy) {
      const own = await freePort()
      proxy.targets = [own]
      more.push({ name: 'PROXIED', protocol: 'PLAINTEXT', port: own, advertised: proxy.port })
    }
    if (secure !== undefined)
      more.push({ name: 'SECURE', protocol: 'SASL_SSL', port: secure, advertised: secure })
    return create(folder, port, controllerPort, { ...listenersOf(port, controllerPort, more), ...properties })
  })

/**
 * @param {number} port @param {number} controllerPort
 * @param {{name: string, protocol: string, port: number, advertised: number}[]} more
 * @returns {Record<string, string>} properties
 */
function listenersOf(port, controllerPort, more) {
  const all = [{ name: 'CLIENT', protocol: 'PLAINTEXT', port, advertised: port }, ...more]
  const controller = { name: 'CONTROLLER', protocol: 'PLAINTEXT', port: controllerPort }
  return {
    listeners: [...all, controller].map(({ name, port }) => `${name}://127.0.0.1:${port}`).join(),
    'advertised.listeners': all.map(({ name, advertised }) => `${name}://127.0.0.1:${advertised}`).join(),
    'listener.security.protocol.map': [...all, controller]
      .map(({ name, protocol }) => `${name}:${protocol}`)
      .join(),
  }
}

/** @param {string} folder @param {number} port @param {number} controllerPort @param {Record<string, string>} more */
async function create(folder, port, controllerPort, more) {
  const data = join(folder, 'data')
  const configuration = {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    'inter.broker.listener.name': 'CLIENT',
    'controller.listener.names': 'CONTROLLER',
    'log.dirs': data,
    'num.network.threads': '1',
    'num.io.threads': '2',
    'num.partitions': '1',
    'auto.create.topics.enable': 'false',
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'transaction.state.log.num.partitions': '1',
    // A killed server can soon register the same id again.
    'broker.session.timeout.ms': '1000',
    'broker.heartbeat.interval.ms': '200',
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '500',
    ...more,
  }
  const text = Object.entries(configuration)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
  await mkdir(data)
  await writeFile(join(folder, 'server.properties'), text)
  // Like Kafka's own tool, without a second JVM.
  await writeFile(
    join(data, 'meta.properties'),
    `version=1\ncluster.id=${CLUSTER}\nnode.id=1\ndirectory.id=aGFsbGV5LXRlc3RzLWRpcg\n`,
  )
  return new KafkaServer(
    {
      command: 'java',
      args: [
        ...['-Xms128m', '-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto'],
        ...['-cp', join(LIBS, '*'), '-Dorg.slf4j.simpleLogger.defaultLogLevel=info'],
        ...['kafka.Kafka', join(folder, 'server.properties')],
      ],
      ready: /Kafka Server started/,
      missing: 'java cannot be run: Kafka wants it (Debian: apt-get install default-jre-headless)',
    },
    port,
    folder,
  )
}
