// Redis behind TLS, and what a gateway says when it cannot be trusted.

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
const stranger = other.sign('stranger', 'DNS:gateway')

/**
 * A server that speaks TLS besides, on another port.
 * @param {any} t
 * @param {import('./certificates.js').Certificate} certificate
 * @param {string[]} [args]
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

/**
 * @param {string} address
 * @param {Record<string, unknown>} [tls]
 * @param {Record<string, unknown>} [more]
 */
const engine = (address, tls = {}, more = {}) => {
  // On a busy machine a handshake may take its time.
  const redis = { address, tls, connect_timeout: '10s', io_timeout: '10s', ...more }
  return loadConfig({ base: { engine: { type: 'redis', redis } } }).config.engine.redis
}

/**
 * @param {string} address
 * @param {Record<string, unknown>} [tls]
 * @param {Record<string, unknown>} [more]
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
 * Connects as the broker does.
 * @param {any} t
 * @param {string} address
 * @param {Record<string, unknown>} [tls]
 * @param {Record<string, unknown>} [more]
 */
async function ping(t, address, tls, more) {
  const [{ options }] = parseTargets(engine(address, tls, more))
  const redis = new Redis({ ...options, lazyConnect: true })
  t.teardown(() => redis.disconnect())
  await redis.connect()
  return redis.ping()
}

t.test('a server whose certificate is from the authority that is named', async t => {
  const place = await startSecure(t, ours)
  const tls = { server_ca_pem: authority.file }
  t.equal(await faultOf(`rediss://${place}`, tls), '')
  t.equal(await faultOf(place, { enabled: true, ...tls }), '')
  t.equal(await ping(t, `rediss://${place}`, tls), 'PONG')
  t.equal(
    await faultOf(`rediss://${place}`),
    `cannot reach redis at ${place}: its certificate is not signed by a trusted authority (server_ca_pem)`,
  )
  t.equal(
    await faultOf(`rediss://${place}`, { server_ca_pem: other.pem }),
    `cannot reach redis at ${place}: its certificate is not signed by a trusted authority (server_ca_pem)`,
  )
  t.equal(await faultOf(`rediss://${place}`, { insecure_skip_verify: true }), '')
  t.equal(await ping(t, `rediss://${place}`, { insecure_skip_verify: true }), 'PONG')
  t.equal(
    await faultOf(`redis://${place}`),
    `cannot reach redis at ${place}: it closed the connection without an answer (does it require TLS: rediss://?)`,
  )
})

t.test('a server whose certificate is for another host', async t => {
  const place = await startSecure(t, named)
  const tls = { server_ca_pem: authority.file }
  t.equal(
    await faultOf(`rediss://${place}`, tls),
    `cannot reach redis at ${place}: its certificate is for another host (server_name)`,
  )
  t.equal(await faultOf(`rediss://${place}`, { ...tls, server_name: 'redis.example' }), '')
  t.equal(await ping(t, `rediss://${place}`, { ...tls, server_name: 'redis.example' }), 'PONG')
})

for (const protocol of ['TLSv1.2', 'TLSv1.3']) {
  t.test(`${protocol}: a server that wants certificates`, async t => {
    const place = await startSecure(t, ours, ['--tls-auth-clients', 'yes', '--tls-protocols', protocol])
    const tls = { server_ca_pem: authority.file }
    const shown = { cert_pem: client.file, key_pem: client.keyFile }
    t.equal(await faultOf(`rediss://${place}`, { ...tls, ...shown }), '')
    t.equal(await ping(t, `rediss://${place}`, { ...tls, ...shown }), 'PONG')
    t.equal(
      await faultOf(`rediss://${place}`, tls),
      `cannot reach redis at ${place}: it requires a client certificate (cert_pem, key_pem)`,
    )
    t.equal(
      await faultOf(`rediss://${place}`, { ...tls, cert_pem: stranger.file, key_pem: stranger.keyFile }),
      `cannot reach redis at ${place}: it does not trust cert_pem`,
    )
  })
}

t.test('TLS to a port that does not speak it', async t => {
  const redis = await startRedis(t)
  const place = `127.0.0.1:${redis.port}`
  t.match(
    await faultOf(`rediss://${place}?connect_timeout=500ms`),
    `cannot reach redis at ${place}: it does not speak TLS`,
  )
})

t.test('sentinels and their master behind TLS', async t => {
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
  const ca = { server_ca_pem: authority.file }
  const query = `${place}?sentinel_master_name=mymaster`
  t.equal(await faultOf(`rediss+sentinel://${query}`, ca, { sentinel_tls: ca }), '')
  t.equal(await ping(t, `rediss+sentinel://${query}`, ca, { sentinel_tls: ca }), 'PONG')
  t.equal(
    await faultOf(`rediss+sentinel://${query}`, ca),
    `cannot reach sentinel at ${place}: its certificate is not signed by a trusted authority (server_ca_pem)`,
  )
  t.equal(
    await faultOf(`redis+sentinel://${query}`, ca, { sentinel_tls: { enabled: true, ...ca } }),
    `cannot reach redis at 127.0.0.1:${master.port} (master of mymaster@${place}): it closed the connection without an answer (does it require TLS: rediss://?)`,
  )
})

t.test('a cluster behind TLS', async t => {
  const files = ['--tls-cert-file', ours.file, '--tls-key-file', ours.keyFile]
  const bus = await freePort()
  const node = await spawnRedis(t, (port, dir) =>
    serverArgs({
      port: 0,
      dir,
      args: [
        ...[
          '--tls-port',
          `${port}`,
          ...files,
          '--tls-ca-cert-file',
          authority.file,
          '--tls-auth-clients',
          'no',
        ],
        ...['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--tls-cluster', 'yes'],
      ],
    }),
  )
  const tls = { server_ca_pem: authority.file }
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
  t.equal(await faultOf(`rediss+cluster://127.0.0.1:${node.port}`, tls), '')
})
