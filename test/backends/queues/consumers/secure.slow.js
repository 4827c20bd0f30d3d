// Sources with TLS and a password, each with a real server: successful and refused connections.

import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { loadKafka } from '../../../../src/backends/queues/kafka/client.js'
import { makeAuthority } from '../../../channels/broker/redis/certificates.js'
import { startGateway } from '../../../kit/gateway.js'
import { skipFile, withoutProgram } from '../../../kit/needs.js'
import { freePort } from '../../../kit/ports.js'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { startPostgres, withoutPostgres } from '../../../kit/servers/postgres.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { startRedis, withoutRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { item, makeConsumer } from './rig.js'

t.setTimeout(300_000)

const folder = t.testdir({})
skipFile(t, withoutProgram('openssl'))

const authority = makeAuthority(folder, 'authority')
const server = authority.sign('server', 'IP:127.0.0.1')
const otherHost = authority.sign('other-host', 'DNS:queue.example')
const tls = { enabled: true, server_ca_pem: authority.file }
const COMMAND = JSON.stringify({ method: 'publish', payload: { channel: 'c', data: {} } })

/**
 * What a consumer says that does not start.
 * @param {any} t @param {string} type @param {object} block
 * @returns {Promise<string>} '' if it does
 */
async function refusal(t, type, block) {
  const { consumer } = await makeConsumer(t, type, block)
  return consumer.start().then(
    () => '',
    ({ message }) => message,
  )
}

/**
 * A message reaches the gateway.
 * @param {any} t @param {string} type @param {object} block @param {() => Promise<any>} send
 */
async function runs(t, type, block, send) {
  const gateway = await startGateway(t, {
    workers: 1,
    channel: { without_namespace: { history_size: 10, history_ttl: '60s' } },
    consumers: [item(type, block)],
  })
  await send()
  await until(
    async () => (await gateway.api('history', { channel: 'c', limit: 10 })).result.publications.length === 1,
  )
  t.same(await gateway.stop(), { code: 0, signal: null })
}

/**
 * A gateway that does not start says why in one line, without the password.
 * @param {any} t @param {string} type @param {object} block with the password `wrong-one` @param {RegExp} why
 */
async function refused(t, type, block, why) {
  const message = await refusal(t, type, block)
  t.match(message, why)
  t.notMatch(message, /wrong-one|\n/)
}

t.test('redis_stream', { skip: withoutRedis() }, async t => {
  const port = await freePort()
  const files = ['--tls-cert-file', server.file, '--tls-key-file', server.keyFile]
  const redis = await startRedis(t, {
    password: 'right',
    args: [
      ...files,
      ...`--tls-ca-cert-file ${authority.file} --tls-auth-clients no --tls-port ${port}`.split(' '),
    ],
  })
  const block = {
    address: `rediss://127.0.0.1:${port}`,
    password: 'right',
    tls,
    streams: ['jobs'],
    consumer_group: 'group',
  }
  await runs(t, 'redis_stream', block, () => redis.call('XADD', 'jobs', '*', 'payload', COMMAND))
  await refused(t, 'redis_stream', { ...block, password: 'wrong-one' }, /WRONGPASS/)
  await refused(t, 'redis_stream', { ...block, tls: { enabled: true } }, /SELF_SIGNED_CERT/)
})

t.test('rabbitmq', { skip: withoutRabbit() }, async t => {
  const port = await freePort()
  const rabbit = await startRabbit(t, {
    settings: [
      `listeners.ssl.1 = 127.0.0.1:${port}`,
      `ssl_options.cacertfile = ${authority.file}`,
      `ssl_options.certfile = ${server.file}`,
      `ssl_options.keyfile = ${server.keyFile}`,
    ],
  })
  await rabbit.declare('jobs')
  const block = { urls: [`amqps://guest:guest@127.0.0.1:${port}`], tls, queues: ['jobs'] }
  await runs(t, 'rabbitmq', block, () => rabbit.send('jobs', [COMMAND]))
  const wrong = [`amqps://guest:wrong-one@127.0.0.1:${port}`]
  await refused(t, 'rabbitmq', { ...block, urls: wrong }, /ACCESS.REFUSED/)
  await refused(t, 'rabbitmq', { ...block, tls: { enabled: true } }, /certificate/)
})

t.test('nats_jetstream', { skip: withoutNats() }, async t => {
  const nats = await startNats(t, {
    args: [
      ...['--tls', '--tlscert', server.file, '--tlskey', server.keyFile],
      ...['--user', 'halley', '--pass', 'right'],
    ],
  })
  const connection = await nats.connect({
    user: 'halley',
    pass: 'right',
    tls: { ca: authority.pem, servername: '127.0.0.1' },
  })
  t.teardown(() => connection.close())
  await (await jetstreamManager(connection)).streams.add({ name: 'JOBS', subjects: ['jobs'] })
  const block = {
    url: nats.url(),
    username: 'halley',
    password: 'right',
    tls,
    stream_name: 'JOBS',
    durable_consumer_name: 'group',
  }
  await runs(t, 'nats_jetstream', block, async () => {
    connection.publish('jobs', COMMAND)
    await connection.flush()
  })
  await refused(t, 'nats_jetstream', { ...block, password: 'wrong-one' }, /Authorization/i)
  await refused(t, 'nats_jetstream', { ...block, tls: { enabled: true } }, /certificate/)
})

t.test('nats_jetstream checks the host name in the certificate', { skip: withoutNats() }, async t => {
  const nats = await startNats(t, {
    args: ['--tls', '--tlscert', otherHost.file, '--tlskey', otherHost.keyFile],
  })
  const block = { url: nats.url(), stream_name: 'JOBS', durable_consumer_name: 'group' }
  await refused(t, 'nats_jetstream', { ...block, tls }, /altnames/)
  const named = { ...tls, server_name: 'queue.example' }
  await refused(t, 'nats_jetstream', { ...block, tls: named }, /stream JOBS/)
  const unverified = { enabled: true, insecure_skip_verify: true }
  await refused(t, 'nats_jetstream', { ...block, tls: unverified }, /stream JOBS/)
})

t.test('postgresql', { skip: withoutPostgres() }, async t => {
  const postgres = await startPostgres(t, {
    files: {
      'server.pem': server.pem,
      'server.key': server.key,
      'rules.conf': 'host all postgres 127.0.0.1/32 trust\nhostssl all halley 127.0.0.1/32 scram-sha-256\n',
    },
    settings: {
      ssl: 'on',
      ssl_cert_file: 'server.pem',
      ssl_key_file: 'server.key',
      hba_file: 'data/rules.conf',
    },
  })
  await postgres.query("CREATE ROLE halley LOGIN PASSWORD 'right'")
  await postgres.query(
    'CREATE TABLE outbox (id bigserial PRIMARY KEY, method text, payload text, partition int DEFAULT 0)',
  )
  await postgres.query('GRANT ALL ON outbox TO halley')
  const dsn = (mode, password = 'right') =>
    `postgres://halley:${password}@127.0.0.1:${postgres.port}/postgres?sslmode=${mode}`
  const block = { dsn: `${dsn('verify-full')}&sslrootcert=${authority.file}`, outbox_table_name: 'outbox' }
  await runs(t, 'postgresql', block, () =>
    postgres.query('INSERT INTO outbox (payload) VALUES ($1)', [COMMAND]),
  )
  for (const mode of ['require', 'prefer'])
    t.equal(await refusal(t, 'postgresql', { ...block, dsn: dsn(mode) }), '', mode)
  t.equal(await refusal(t, 'postgresql', { ...block, dsn: dsn('disable'), tls }), '', 'the option wins')
  const wrong = { ...block, dsn: dsn('require', 'wrong-one') }
  await refused(t, 'postgresql', wrong, /password authentication failed/)
  await refused(t, 'postgresql', { ...block, dsn: dsn('disable') }, /no pg_hba.conf entry|no encryption/)
  await refused(t, 'postgresql', { ...block, dsn: dsn('verify-full') }, /certificate/)
})

/**
 * A user of SCRAM: those live in the metadata of the cluster.
 * @param {number} port of Kafka, without TLS @param {string} name @param {string} password
 */
async function addUser(port, name, password) {
  const { alterUserScramCredentialsV0, Connection } = /** @type {any} */ (await loadKafka())
  const iterations = 4096
  const credentials = [
    { mechanism: 1, hash: 'sha256', bytes: 32 },
    { mechanism: 2, hash: 'sha512', bytes: 64 },
  ].map(({ mechanism, hash, bytes }) => {
    const salt = randomBytes(16)
    const saltedPassword = pbkdf2Sync(password, salt, iterations, bytes, hash)
    return { name, mechanism, iterations, salt, saltedPassword }
  })
  const connection = new Connection('test')
  await connection.connect('127.0.0.1', port)
  for (const one of credentials) await alterUserScramCredentialsV0.api.async(connection, [], [one])
  await connection.close()
}

t.test('kafka', { skip: withoutKafka() }, async t => {
  const port = await freePort()
  const store = join(folder, 'store.pem')
  await writeFile(store, server.key + server.pem)
  const secure = 'listener.name.secure'
  const module = 'org.apache.kafka.common.security'
  const kafka = await startKafka(t, {
    secure: port,
    properties: {
      [`${secure}.ssl.keystore.type`]: 'PEM',
      [`${secure}.ssl.keystore.location`]: store,
      [`${secure}.sasl.enabled.mechanisms`]: 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      [`${secure}.plain.sasl.jaas.config`]: `${module}.plain.PlainLoginModule required user_halley="right";`,
      [`${secure}.scram-sha-256.sasl.jaas.config`]: `${module}.scram.ScramLoginModule required;`,
      [`${secure}.scram-sha-512.sasl.jaas.config`]: `${module}.scram.ScramLoginModule required;`,
    },
  })
  await kafka.createTopic('jobs')
  await addUser(kafka.port, 'halley', 'right')
  const block = {
    brokers: [`127.0.0.1:${port}`],
    topics: ['jobs'],
    consumer_group: 'group',
    tls,
    sasl_mechanism: 'scram-sha-512',
    sasl_user: 'halley',
    sasl_password: 'right',
  }
  await runs(t, 'kafka', block, () => kafka.send('jobs', [{ value: COMMAND }]))
  for (const mechanism of ['plain', 'scram-sha-256', 'scram-sha-512']) {
    const right = { ...block, sasl_mechanism: mechanism }
    t.equal(await refusal(t, 'kafka', right), '', mechanism)
    await refused(t, 'kafka', { ...right, sasl_password: 'wrong-one' }, /[Aa]uthentication failed/)
  }
  await refused(t, 'kafka', { ...block, sasl_mechanism: '' }, /./)
  await refused(t, 'kafka', { ...block, tls: { enabled: true } }, /certificate/)
})
