// Two nodes with Redis behind nginx, HAProxy and Caddy, as docs/deployment.md describes examples/deployment.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Centrifuge } from 'centrifuge'
import { EventSource } from 'eventsource'
import { createSigner } from 'fast-jwt'
import t from 'tap'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { LongPollSocket } from '../../client/long-poll-socket.js'
import { ApiClient } from '../../src/backends/api/client.js'
import { makeAuthority } from '../channels/broker/redis/certificates.js'
import { testdir } from '../kit/folders.js'
import { startGateway } from '../kit/gateway.js'
import { withoutProgram } from '../kit/needs.js'
import { freePort, listen } from '../kit/ports.js'
import { startRedis, withoutRedis } from '../kit/servers/redis.js'
import { pause, until } from '../kit/wait.js'
import {
  adapted,
  get,
  nginxCommand,
  PROXIES,
  ReverseProxy,
  startProxy,
  temporaryFolders,
} from './proxy-programs.js'

const ORIGIN = 'https://www.example.com'
const FORGED = { 'X-Forwarded-For': '203.0.113.9' }
/** Of the token key, the API and the admin page. */
const SECRET = 'a secret of this test, of 32 bytes'
/** Both nodes have the same ports, as on two machines. */
const HOSTS = ['127.0.0.1', '127.0.0.2']
const token = createSigner({ key: SECRET })({ sub: '42' })

/** Sends each client what its node knows about it. */
const HOOKS = `export const connect = ({ headers }) => ({
  data: { node: process.env.NODE_MARK, address: headers['x-forwarded-for'], scheme: headers['x-forwarded-proto'] },
})
`

/** A client of the official SDK: it gets the numbers 1, 2, 3 ... of its channel, each once and in order. */
class Client {
  last = 0
  connects = 0
  /** @type {string[]} */
  faults = []
  /** What its node has said of it. @type {any} */
  data = null
  #sdk

  constructor(url, ca, transport, channel) {
    this.transport = transport
    class Socket extends WebSocket {
      constructor(at, protocols) {
        super(at, protocols, { ca, origin: ORIGIN, headers: FORGED })
      }
    }
    const poll = transport === 'poll'
    const path = `/connection/${transport}`
    const endpoint = poll || transport === 'websocket' ? `${url.replace('https', 'wss')}${path}` : url + path
    this.#sdk = new Centrifuge([{ transport: poll ? 'websocket' : transport, endpoint }], {
      token,
      websocket: poll ? LongPollSocket : Socket,
      fetch: (at, init) => fetch(at, { ...init, headers: { ...init.headers, ...FORGED } }),
      readableStream: ReadableStream,
      eventsource: EventSource,
      emulationEndpoint: `${url}/emulation`,
      minReconnectDelay: 20,
      maxReconnectDelay: 200,
    })
    const subscription = this.#sdk.newSubscription(channel, {
      minResubscribeDelay: 20,
      maxResubscribeDelay: 200,
    })
    this.#sdk.on('connected', ({ data }) => {
      this.connects++
      this.data = data
    })
    this.#sdk.on('disconnected', ({ code, reason }) => this.faults.push(`ended with ${code} ${reason}`))
    subscription.on('unsubscribed', ({ code, reason }) =>
      this.faults.push(`unsubscribed with ${code} ${reason}`),
    )
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      if (wasRecovering && !recovered) this.faults.push('not recovered')
    })
    subscription.on('publication', ({ data }) => {
      if (data !== this.last + 1) this.faults.push(`${data} after ${this.last}`)
      this.last = data
    })
    /** Resolves when it is subscribed. */
    this.ready = new Promise(resolve => subscription.once('subscribed', resolve))
    subscription.subscribe()
    this.#sdk.connect()
  }

  stop() {
    this.#sdk.removeAllListeners('disconnected')
    this.#sdk.disconnect()
  }
}

/** Publishes 1, 2, 3 ... until `stop`, which returns the last number. @param {string} url @param {string} channel */
function startPublisher(url, channel) {
  const api = new ApiClient({ url, key: SECRET })
  const publisher = { last: 0, stop: async () => 0 }
  let stopped = false
  const run = async () => {
    while (!stopped) {
      await api.publish(channel, ++publisher.last)
      await pause(3)
    }
    api.close()
    return publisher.last
  }
  const done = run()
  publisher.stop = () => {
    stopped = true
    return done
  }
  return publisher
}

t.test('behind a reverse proxy', { skip: withoutProgram('openssl') || withoutRedis() }, async t => {
  const folder = testdir(t, { 'hooks.js': HOOKS, tls: {} })
  const port = await freePort()
  const certificates = join(folder, 'tls')
  const authority = makeAuthority(certificates, 'ca')
  const certificate = authority.sign('localhost', 'DNS:localhost')
  await writeFile(join(certificates, 'fullchain.pem'), certificate.pem)
  await writeFile(join(certificates, 'privkey.pem'), certificate.key)
  await writeFile(join(certificates, 'haproxy.pem'), certificate.pem + certificate.key)
  const ca = authority.pem

  const [former, agent] = [getGlobalDispatcher(), new Agent({ connect: { ca } })]
  setGlobalDispatcher(agent)
  t.teardown(async () => {
    setGlobalDispatcher(former)
    await agent.destroy()
  })

  const redis = await startRedis(t)
  const example = parse(
    await readFile(new URL('../../examples/deployment/config.yaml', import.meta.url), 'utf8'),
  )
  const [namespace] = example.channel.namespaces
  const startNode = address =>
    startGateway(
      t,
      {
        ...example,
        workers: 1,
        // Internal endpoints on the same port: the proxies must block them.
        http_server: { address, port },
        http_api: { key: SECRET },
        admin: { password: SECRET },
        client: {
          ...example.client,
          token: { hmac_secret_key: SECRET },
          ping_interval: '25s',
          recovery_max_publication_limit: 1_000_000,
        },
        engine: { type: 'redis', redis: { address: redis.address, connect_timeout: '10s' } },
        // Long enough for a machine that is blocked.
        channel: { namespaces: [{ ...namespace, history_size: 1_000_000 }] },
        hooks: { module: join(folder, 'hooks.js') },
        // Named by the port, which both have.
        stats: { socket: 'none' },
        shutdown: { timeout: '30s', drain: '100ms' },
      },
      { env: { NODE_MARK: address } },
    )
  await startNode(HOSTS[0])
  const direct = `http://${HOSTS[0]}:${port}`
  t.equal((await fetch(`${direct}/metrics`)).status, 200, 'the nodes themselves serve everything')

  const certbot = http.createServer((request, response) => response.end(`challenge ${request.url}`))
  const certbotPort = await listen(t, certbot)

  for (const [name, kind] of Object.entries(PROXIES)) {
    t.test(name, { skip: withoutProgram(name) }, async t => {
      // The path of a Unix socket has at most 107 bytes: a folder of the checkout may be too long.
      const own = await mkdtemp(join(tmpdir(), `halley-${name}-`))
      t.teardown(() => rm(own, { recursive: true, force: true }))
      const [plain, secure] = [await freePort(), await freePort()]
      const nodes = HOSTS.map(host => `${host}:${port}`)
      const place = { folder: own, plain, secure, certbot: certbotPort, certificates, nodes, internal: port }
      const second = await startNode(HOSTS[1])
      const proxy = await startProxy(t, kind, place, ca)

      for (const path of [
        '/',
        '/api/info',
        '/connection/../api/info',
        '/connection/%2e%2e/api/info',
        '//api/info',
      ]) {
        const { status, text } = await get(proxy.url, path, ca, { 'X-API-Key': SECRET })
        t.ok(status >= 400, `${path} answers ${status}`)
        t.notMatch(text, 'nodes')
      }
      for (const path of ['/admin', '/admin/', '/metrics', '/health', '/emulations'])
        t.equal((await get(proxy.url, path, ca)).status, 404, `${path} is closed`)
      const redirect = await fetch(`http://localhost:${plain}/connection/sse?a=b`, { redirect: 'manual' })
      t.ok([301, 308].includes(redirect.status))
      // Caddy omits the port, which is 443 outside of tests.
      t.equal(
        redirect.headers.get('location')?.replace(`:${secure}`, ''),
        'https://localhost/connection/sse?a=b',
      )
      if (name !== 'caddy') {
        const path = '/.well-known/acme-challenge/abc'
        const challenge = await fetch(`http://localhost:${plain}${path}`)
        t.equal(await challenge.text(), `challenge ${path}`, 'certbot gets its requests')
      }

      const channel = `chat:${name}`
      /** @type {Client[]} */
      const clients = []
      t.teardown(() => clients.map(client => client.stop()))
      // In sequence, so that the proxy knows how many connections each node has.
      for (const transport of ['websocket', 'http_stream', 'sse', 'poll']) {
        const client = new Client(proxy.url, ca, transport, channel)
        clients.push(client)
        await client.ready
        t.match(
          client.data,
          { address: '127.0.0.1', scheme: 'https' },
          `${transport}: its address is passed on`,
        )
      }
      const nodesSeen = new Set(clients.map(({ data }) => data.node))
      // A proxy may consider a blocked node dead.
      await until(async () => {
        if (nodesSeen.size === HOSTS.length) return true
        const client = new Client(proxy.url, ca, 'websocket', channel)
        await client.ready
        nodesSeen.add(client.data.node)
        client.stop()
        return false
      })
      const publisher = startPublisher(direct, channel)
      const caughtUp = async () => {
        const { last } = publisher
        await until(
          () => clients.every(client => client.last >= last),
          () => clients.map(client => `${client.transport} ${client.last} ${client.faults}`).join('; '),
        )
      }
      await caughtUp()
      await proxy.reload()
      await caughtUp()
      if (kind.keeps)
        t.strictSame(
          clients.map(client => client.connects),
          [1, 1, 1, 1],
          'a reload of the proxy leaves clients alone',
        )

      process.kill(second.workerPids[0], 'SIGKILL')
      await second.line(({ msg }) => msg === 'worker died')
      await caughtUp()

      await second.stop()
      await until(
        () => clients.every(({ data }) => data.node === HOSTS[0]),
        () => clients.map(client => `${client.transport} ${JSON.stringify(client.data)}`).join('; '),
      )
      const last = await publisher.stop()
      await caughtUp()
      for (const client of clients) {
        t.strictSame(client.faults, [], `${client.transport}: all numbers in order, up to ${last}`)
        t.equal(client.last, last)
        client.stop()
      }
    })
  }

  t.test(
    'examples/nginx.conf: a program and its gateway on one origin',
    { skip: withoutProgram('nginx') },
    async t => {
      const own = join(folder, 'embedded')
      await mkdir(own)
      const secure = await freePort()
      const program = http.createServer((request, response) =>
        response.end(`${request.headers['x-forwarded-proto']} ${request.url}`),
      )
      const programPort = await listen(t, program)
      const server = await adapted('nginx.conf', [
        ['listen 443 ssl;', `listen 127.0.0.1:${secure} ssl;`],
        ['server_name example.com;', 'server_name localhost;'],
        ['/etc/ssl/example.com.pem', join(certificates, 'fullchain.pem')],
        ['/etc/ssl/example.com.key', join(certificates, 'privkey.pem')],
        ['127.0.0.1:8000', `${HOSTS[0]}:${port}`],
        ['127.0.0.1:3000', `127.0.0.1:${programPort}`],
      ])
      const file = join(own, 'nginx.conf')
      await writeFile(
        file,
        `pid ${own}/pid;\n${process.getuid?.() === 0 ? 'user root;\n' : ''}events {}\nhttp {\naccess_log off;\n` +
          `${temporaryFolders(own)}${server}}\n`,
      )
      const nginx = new ReverseProxy(nginxCommand(file, own), own)
      t.teardown(() => nginx.stop())
      const url = `https://localhost:${secure}`
      await nginx.started(async () => (await get(url, '/page', ca)).text === 'https /page')
      const clients = ['websocket', 'http_stream', 'sse', 'poll'].map(
        transport => new Client(url, ca, transport, 'chat:embedded'),
      )
      t.teardown(() => clients.map(client => client.stop()))
      await Promise.all(clients.map(({ ready }) => ready))
      const publisher = startPublisher(direct, 'chat:embedded')
      await until(() => clients.every(({ last }) => last > 0))
      await publisher.stop()
      t.strictSame(
        clients.flatMap(({ faults }) => faults),
        [],
      )
    },
  )
})
