// Event proxies over HTTP: on the socket server `node`, over TLS, and after reloads.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeAuthority } from '../../channels/broker/redis/certificates.js'
import { makeToken } from '../../clients/auth/jwt.js'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { RawClient } from '../../kit/raw-client.js'
import { until } from '../../kit/wait.js'
import { httpAdapter } from './adapters.js'
import { Backend, result } from './backend.js'
import { conformance } from './conformance.js'

t.test('the table, on the socket server node', async t => {
  await conformance(t, httpAdapter(await Backend.start(t)), { http_server: { driver: 'node' } })
})

t.test('TLS with certificates on both sides', { skip: withoutProgram('openssl') }, async t => {
  const authority = makeAuthority(testdir(t), 'authority')
  const server = authority.sign('server', 'DNS:localhost')
  const client = authority.sign('client', 'DNS:gateway')
  const options = {
    cert: server.pem,
    key: server.key,
    ca: authority.pem,
    requestCert: true,
    rejectUnauthorized: true,
  }
  const backend = await Backend.start(t, options)
  backend.answer = () => result({ user: 'u', channels: ['c'] })
  /** @param {object} tls @returns {Promise<any>} the reply */
  const connect = async tls => {
    const gateway = await startGateway(t, {
      workers: 1,
      client: {
        proxy: { connect: { enabled: true, endpoint: `${backend.url}/`, timeout: '20s', http: { tls } } },
      },
    })
    const one = await RawClient.open(gateway.ws)
    t.teardown(() => one.socket.terminate())
    return one.call('connect')
  }
  const { file: server_ca_pem } = authority
  const own = { cert_pem: client.pem, key_pem: Buffer.from(client.key).toString('base64') }
  t.ok((await connect({ enabled: true, server_ca_pem, ...own })).connect)
  t.equal((await connect({ enabled: true, server_ca_pem })).error.code, 100, 'without a client certificate')
  t.equal((await connect({ enabled: true, ...own })).error.code, 100, 'of an unknown authority')
  t.ok((await connect({ enabled: true, insecure_skip_verify: true, ...own })).connect)
})

/** Concurrent notices, as of src/clients/session/hook-calls.js. */
const MAX_NOTICES = 256
const LEAVERS = MAX_NOTICES + 44

t.test('a reload recreates proxies; pending calls and notices complete on the old ones', async t => {
  const [old, next] = [await Backend.start(t), await Backend.start(t)]
  next.answer = () => result({ data: 'next' })
  /** @type {() => void} */
  let release = () => {}
  const released = new Promise(resolve => {
    release = () => resolve(null)
  })
  old.answer = async () => {
    await released
    return result({ data: 'old' })
  }
  const configOf = backend => ({
    workers: 1,
    prometheus: { enabled: true },
    client: {
      allow_anonymous_connect_without_token: true,
      ...(backend && {
        proxy: {
          disconnected: {
            enabled: true,
            endpoint: `${backend.url}/disconnected`,
            timeout: '60s',
            http: { max_connections: 128 },
          },
        },
      }),
    },
    channel: {
      without_namespace: { allow_publish_for_client: true, allow_publish_for_anonymous: true },
      ...(backend && {
        proxy: { publish: { endpoint: `${backend.url}/`, timeout: '20s' } },
        namespaces: [{ name: 'asked', publish_proxy_enabled: true }],
      }),
    },
    rpc: backend
      ? { proxy: { endpoint: `${backend.url}/`, timeout: '20s' }, without_namespace: { proxy_enabled: true } }
      : {},
  })
  const gateway = await startGateway(t, configOf(null))
  const client = await RawClient.connected(gateway.ws)
  t.teardown(() => client.socket.terminate())
  let reloads = 0
  const reload = async backend => {
    const config = {
      workers: 2,
      log: { level: 'debug' },
      http_server: { address: '127.0.0.1', port: gateway.port },
      http_api: { key: 'key' },
      health: { enabled: true },
      overload: { max_tick: '0s' },
      ...configOf(backend),
      client: { ...configOf(backend).client, allowed_origins: ['*'], ping_interval: '10m' },
    }
    await writeFile(join(gateway.folder, 'config.json'), JSON.stringify(config))
    gateway.process.kill('SIGHUP')
    reloads++
    const count = () => gateway.lines.filter(({ msg }) => msg === 'configuration reloaded').length
    await gateway.line(() => count() === reloads)
  }
  t.equal((await client.call('rpc', { method: 'm' })).error.code, 108, 'no proxy yet')
  await reload(old)
  client.send({ id: 100, rpc: { method: 'm' } })
  await old.request(() => true)
  const leavers = await Promise.all(Array.from({ length: LEAVERS }, () => RawClient.connected(gateway.ws)))
  for (const leaver of leavers) leaver.socket.terminate()
  const toldBy = (/** @type {Backend[]} */ ...backends) =>
    backends
      .flatMap(({ requests }) => requests)
      .filter(({ event }) => event === 'disconnected')
      .map(({ json }) => json.client)
  const waits = `protocol="http",type="disconnected",name="default"} ${MAX_NOTICES}`
  await until(async () => (await (await fetch(`${gateway.url}/metrics`)).text()).includes(waits))
  t.ok(toldBy(old).length < MAX_NOTICES, 'the others wait for a connection, or for their turn')
  await reload(next)
  release()
  await until(() => toldBy(old, next).length >= LEAVERS)
  t.strictSame(toldBy(old, next).sort(), leavers.map(({ connect }) => connect.client).sort(), 'each once')
  t.ok(toldBy(old).length >= MAX_NOTICES, 'by the former proxy')
  t.strictSame((await client.next(({ id }) => id === 100)).rpc, { data: 'old' })
  t.strictSame((await client.call('rpc', { method: 'm' })).rpc, { data: 'next' })
  t.strictSame((await client.call('publish', { channel: 'asked:x', data: 1 })).publish, {})
  t.equal(next.requests.filter(({ event }) => event !== 'disconnected').length, 2)
  await reload(null)
  t.equal((await client.call('rpc', { method: 'm' })).error.code, 108, 'the proxy was removed')
})

t.test(
  'a client that knows when it expires may send its token after a reload has brought the proxy',
  async t => {
    const backend = await Backend.start(t)
    const secret = 'secret of the tests'
    const base = {
      client: { token: { hmac_secret_key: secret } },
      channel: { without_namespace: {} },
    }
    const gateway = await startGateway(t, { ...base, workers: 1 })
    const exp = Math.floor(Date.now() / 1000) + 1000
    const connection = makeToken({ sub: 'ann', exp }, secret)
    const subscription = makeToken({ sub: 'ann', channel: 'c', exp }, secret)
    const enter = () => RawClient.connected(gateway.ws, { token: connection })
    const before = await enter()
    t.ok((await before.call('subscribe', { channel: 'c', token: subscription })).subscribe.expires)
    const file = join(gateway.folder, 'config.json')
    const whole = JSON.parse(await readFile(file, 'utf8'))
    const endpoint = `${backend.url}/`
    await writeFile(
      file,
      JSON.stringify({
        ...whole,
        client: { ...whole.client, proxy: { refresh: { enabled: true, endpoint } } },
        channel: {
          ...whole.channel,
          proxy: { sub_refresh: { endpoint } },
          without_namespace: { ...whole.channel.without_namespace, sub_refresh_proxy_enabled: true },
        },
      }),
    )
    gateway.process.kill('SIGHUP')
    await gateway.line(({ msg }) => msg === 'configuration reloaded')
    t.ok((await before.call('refresh', { token: connection })).refresh.expires)
    t.ok((await before.call('sub_refresh', { channel: 'c', token: subscription })).sub_refresh.expires)
    before.socket.terminate()
    const after = await enter()
    after.send({ id: 9, refresh: { token: connection } })
    t.match(await after.closed, { code: 3501 }, 'one that does not know when it expires may not')
  },
)
