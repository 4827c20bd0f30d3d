// Redis with TLS, and the errors of a gateway that cannot trust it.

import { writeFile } from 'node:fs/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { parseTargets } from '../../../../src/channels/broker/redis/address.js'
import { probeRedis } from '../../../../src/channels/broker/redis/probe.js'
import { loadConfig } from '../../../../src/config/load.js'
import { skipFile, withoutProgram } from '../../../kit/needs.js'
import { freePort } from '../../../kit/ports.js'
import { needsRedis, serverArgs, spawnRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { makeAuthority } from './certificates.js'

skipFile(t, withoutProgram('openssl'))

needsRedis(t)

const folder = t.testdir({})
const authority = makeAuthority(folder, 'authority')
const other = makeAuthority(folder, 'other')
const ours = authority.sign('ours', 'IP:127.0.0.1')
const named = authority.sign('named', 'DNS:redis.example')
const client = authority.sign('client', 'DNS:gateway')
const untrusted = other.sign('untrusted', 'DNS:gateway')

/**
 * A server that speaks TLS besides, on another port.
 * @param {any} t @param {import('./certificates.js').Certificate} certificate @param {string[]} [args]
 * @returns {Promise<string>} host and port
 */
async function startSecure(t, certificate, args = ['--tls-auth-clients', 'no']) {
  const port = await freePort()
  const files = ['--tls-cert-file', certificate.file, '--tls-key-file', certificate.keyFile]
  await startRedis(t, {
    args: ['--tls-port', `${port}`, ...files, '--tls-ca-cert-file', authority.file, ...args],
  })
  return `127.0.0.1:${port}`
}

/** @param {string} address @param {Record<string, unknown>} [tls] @param {Record<string, unknown>} [more] */
const engine = (address, tls = {}, more = {}) => {
  // On a busy machine a handshake may be slow.
  const redis = { address, tls, connect_timeout: '10s', io_timeout: '10s', ...more }
  return loadConfig({ base: { engine: { type: 'redis', redis } } }).config.engine.redis
}

/**
 * @param {string} address @param {Record<string, unknown>} [tls] @param {Record<string, unknown>} [more]
 * @returns {Promise<string>} what is wrong, '' if nothing
 */
async function faultOf(address, tls, more) {
  try {
    await probeRedis(engine(address, tls, more), /** @type {any} */ ({}))
    return ''
  } catch (error) {
    if (error.constructor !== Error) throw error
    return error.message
  }
}

/**
 * Asserts the faults of addresses.
 * @param {any} t @param {string} place in the rows as PLACE
 * @param {[address: string, fault: string, tls?: object, more?: object][]} rows fault: '' = it is reached, else the
 *   reason why not
 */
async function check(t, place, rows) {
  for (const [address, fault, tls, more] of rows) {
    const expected = fault && `cannot reach ${fault}`.replaceAll('PLACE', place)
    t.equal(await faultOf(address.replace('PLACE', place), { ...tls }, { ...more }), expected, address)
    if (fault === '') t.equal(await ping(t, address.replace('PLACE', place), { ...tls }, { ...more }), 'PONG')
  }
}

/**
 * Connects as the broker does.
 * @param {any} t @param {string} address @param {Record<string, unknown>} [tls] @param {Record<string, unknown>} [more]
 */
async function ping(t, address, tls, more) {
  const [{ options }] = parseTargets(engine(address, tls, more))
  const redis = new Redis({ ...options, lazyConnect: true })
  t.teardown(() => redis.disconnect())
  await redis.connect()
  return redis.ping()
}

const CA = { server_ca_pem: authority.file }
const UNTRUSTED = 'its certificate is not signed by a trusted authority (server_ca_pem)'
const CLOSED = 'it closed the connection without a response (does it require TLS: rediss://?)'

t.test('accepts only certificates of the configured authority', async t => {
  await check(t, await startSecure(t, ours), [
    ['rediss://PLACE', '', CA],
    ['PLACE', '', { enabled: true, ...CA }],
    ['rediss://PLACE', `redis at PLACE: ${UNTRUSTED}`],
    ['rediss://PLACE', `redis at PLACE: ${UNTRUSTED}`, { server_ca_pem: other.pem }],
    ['rediss://PLACE', '', { insecure_skip_verify: true }],
    ['redis://PLACE', `redis at PLACE: ${CLOSED}`],
  ])
})

t.test('a certificate for another host needs server_name', async t => {
  await check(t, await startSecure(t, named), [
    ['rediss://PLACE', 'redis at PLACE: its certificate is for another host (server_name)', CA],
    ['rediss://PLACE', '', { ...CA, server_name: 'redis.example' }],
  ])
})

for (const protocol of ['TLSv1.2', 'TLSv1.3']) {
  t.test(`${protocol}: a server may require a client certificate`, async t => {
    const pair = (/** @type {import('./certificates.js').Certificate} */ { file, keyFile }) => ({
      ...{ ...CA, cert_pem: file, key_pem: keyFile },
    })
    await check(t, await startSecure(t, ours, ['--tls-auth-clients', 'yes', '--tls-protocols', protocol]), [
      ['rediss://PLACE', '', pair(client)],
      ['rediss://PLACE', 'redis at PLACE: it requires a client certificate (cert_pem, key_pem)', CA],
      ['rediss://PLACE', 'redis at PLACE: it does not trust cert_pem', pair(untrusted)],
    ])
  })
}

t.test('TLS to a plain port is an error', async t => {
  const { port } = await startRedis(t)
  const fault = await faultOf(`rediss://127.0.0.1:${port}?connect_timeout=500ms`)
  t.match(fault, `cannot reach redis at 127.0.0.1:${port}: it does not use TLS`)
})

t.test('sentinels and their master may use TLS', async t => {
  const files = ['--tls-cert-file', ours.file, '--tls-key-file', ours.keyFile]
  const common = [...files, '--tls-ca-cert-file', authority.file, '--tls-auth-clients', 'no']
  const secure = (/** @type {number} */ port, /** @type {string} */ dir) =>
    serverArgs({ port: 0, dir, args: ['--tls-port', `${port}`, '--tls-replication', 'yes', ...common] })
  const master = await spawnRedis(t, secure)
  const sentinel = await spawnRedis(t, async (port, dir) => {
    const file = `${dir}/sentinel.conf`
    const lines = ['port 0', `tls-port ${port}`, 'tls-replication yes', 'bind 127.0.0.1', `dir ${dir}`]
    for (let i = 0; i < common.length; i += 2) lines.push(`${common[i].slice(2)} ${common[i + 1]}`)
    lines.push(`sentinel monitor mymaster 127.0.0.1 ${master.port} 1`)
    await writeFile(file, `${lines.join('\n')}\n`)
    return [file, '--sentinel']
  })
  const place = `127.0.0.1:${sentinel.port}`
  const query = 'PLACE?sentinel_master_name=mymaster'
  await check(t, place, [
    [`rediss+sentinel://${query}`, '', CA, { sentinel_tls: CA }],
    [`rediss+sentinel://${query}`, `sentinel at PLACE: ${UNTRUSTED}`, CA],
    [
      `redis+sentinel://${query}`,
      `redis at 127.0.0.1:${master.port} (master of mymaster@PLACE): ${CLOSED}`,
      CA,
      { sentinel_tls: { enabled: true, ...CA } },
    ],
  ])
})

t.test('a cluster may use TLS', async t => {
  const files = ['--tls-cert-file', ours.file, '--tls-key-file', ours.keyFile]
  const bus = await freePort()
  const node = await spawnRedis(t, (port, dir) =>
    serverArgs({
      port: 0,
      dir,
      args: [
        ...['--tls-port', `${port}`, ...files, '--tls-ca-cert-file', authority.file],
        ...[
          '--tls-auth-clients',
          'no',
          '--cluster-enabled',
          'yes',
          '--cluster-port',
          `${bus}`,
          '--tls-cluster',
          'yes',
        ],
      ],
    }),
  )
  const redis = new Redis({
    host: '127.0.0.1',
    port: node.port,
    tls: { ca: authority.pem },
    lazyConnect: true,
    enableReadyCheck: false,
  })
  t.teardown(() => redis.disconnect())
  await redis.connect()
  await redis.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
  await until(async () => String(await redis.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
  t.equal(await faultOf(`rediss+cluster://127.0.0.1:${node.port}`, CA), '')
})
