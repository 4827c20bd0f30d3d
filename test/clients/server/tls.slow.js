// TLS on the ports of a gateway: every transport, refusals, and a renewal of certificates under load.

import { once } from 'node:events'
import net from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { spawnHalley } from '../../kit/cli.js'
import { skipDriver } from '../../kit/drivers.js'
import { tempDir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { freePort } from '../../kit/ports.js'
import { pause, until } from '../../kit/wait.js'
import { Certificates, handshake, request, sdk, skip } from './tls-rig.js'

const CLIENTS = 6
/** Publications of each client to wait for, before and after the renewal. */
const SOME = 5
/** Some 50 publications a second of each client, and a history that outlasts any pause. */
const PAUSE_MS = 20
const KEPT = 5000
/** The start of a ClientHello: a record of 512 bytes is announced. */
const HALF_HELLO = Buffer.from('160301020001000001fc0303', 'hex')
const PLAIN = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** @param {string[]} args @param {Record<string, string>} [env] */
async function halley(args, env = {}) {
  const { code, out, err } = await spawnHalley(args, { env })
  return { code, out: out + err }
}

/** @param {number} port @param {string | Buffer} bytes @returns {Promise<string>} response, until the end */
async function exchange(port, bytes) {
  const socket = net.connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', data => (text += data))
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

/** A client that publishes numbers and records what it receives. */
class Talker {
  connects = 0
  received = new Set()
  /** Publications with a reply. */
  published = 0
  #talks = true

  constructor(client, name) {
    this.client = client
    this.name = name
    client.on('connecting', () => this.connects++)
    const subscription = client.newSubscription('news')
    subscription.on('publication', ({ data }) => this.received.add(`${data.by} ${data.n}`))
    subscription.subscribe()
    client.connect()
    this.subscribed = subscription.ready()
  }

  async talk() {
    while (this.#talks) {
      try {
        await this.client.publish('news', { by: this.name, n: this.published })
        this.published++
      } catch {
        // Lost with the connection: published again.
        await this.client.ready()
      }
      await pause(PAUSE_MS)
    }
  }

  end() {
    this.#talks = false
  }

  /** Whether it has received all publications. */
  has(talkers) {
    return talkers.every(({ name, published }) =>
      [...Array(published).keys()].every(n => this.received.has(`${name} ${n}`)),
    )
  }
}

t.jobs = 2

for (const driver of /** @type {const} */ (['uws', 'node'])) {
  t.test(`a gateway with TLS on ${driver}`, { skip: skip || skipDriver(driver) }, async t => {
    const folder = tempDir(t)
    const certificates = new Certificates(folder)
    const { ca } = certificates
    const own = driver === 'uws'
    const internal = own ? await freePort() : 0
    const pair = { enabled: true, cert_pem: certificates.certFile, key_pem: certificates.keyFile }
    const gateway = await startGateway(t, {
      http_server: {
        driver,
        tls: pair,
        internal_port: internal,
        internal_tls: { ...pair, enabled: own, client_ca_pem: Buffer.from(ca).toString('base64') },
      },
      client: { insecure: true, recovery_max_publication_limit: KEPT },
      channel: { without_namespace: { history_size: KEPT, history_ttl: '10m', force_recovery: true } },
      sse: { enabled: true },
      http_stream: { enabled: true },
      uni_sse: { enabled: true },
      admin: { password: 'admin key' },
      stats: { socket: join(folder, 'stats.sock') },
    })
    const { port } = gateway
    const url = `https://127.0.0.1:${port}`
    const unfinished = exchange(port, HALF_HELLO)

    t.test('printed addresses use https', async t => {
      t.equal((await gateway.line(({ msg }) => msg === 'halley is listening')).url, url)
      t.same(
        gateway.lines.filter(({ level }) => level > 30),
        [],
      )
    })

    t.test('HTTP/1.1 is served over TLS 1.2 and 1.3', async t => {
      const version = name =>
        handshake(port, { ca, minVersion: name, maxVersion: name, ciphers: 'DEFAULT@SECLEVEL=0' })
      for (const name of ['TLSv1.2', 'TLSv1.3']) t.equal((await version(name)).protocol, name)
      for (const name of ['TLSv1', 'TLSv1.1']) await t.rejects(version(name), { code: /PROTOCOL/ })
      const { alpn } = await handshake(port, { ca, ALPNProtocols: ['h2', 'http/1.1'] })
      t.equal(alpn, own ? false : 'http/1.1', 'uws has no ALPN: clients use HTTP/1.1 then')
      await t.rejects(handshake(port, { ca: certificates.other.pem }), { code: /UNABLE|SELF/ })
    })

    t.test('streams and POSTs work over https, WebSockets over wss', async t => {
      const connect = encodeURIComponent(JSON.stringify({ id: 1, connect: {} }))
      const sse = await request(`${url}/connection/sse?cf_connect=${connect}`, { ca, until: '"client"' })
      t.equal(sse.status, 200)
      const stream = { ca, method: 'POST', body: JSON.stringify({ id: 1, connect: {} }), until: '"client"' }
      t.equal((await request(`${url}/connection/http_stream`, stream)).status, 200)
      const client = sdk(t, port, ca)
      const subscription = client.newSubscription('alone')
      const got = new Promise(resolve => subscription.on('publication', resolve))
      subscription.subscribe()
      client.connect()
      await subscription.ready()
      await client.publish('alone', { secret: true })
      t.same(/** @type {any} */ (await got).data, { secret: true })
    })

    t.test('a plain HTTP request gets one line of text, or is closed', async t => {
      const text = await exchange(port, PLAIN)
      if (own) return t.equal(text, '')
      t.match(text, /^HTTP\/1\.1 400 [\s\S]+\r\n\r\nthis port requires TLS: use https:\/\/ or wss:\/\/\n$/)
      t.match(await gateway.line(({ msg }) => msg === 'plain HTTP on a TLS port'), {
        level: 40,
        remote_address: '127.0.0.1',
      })
    })

    if (own) {
      t.test('only the internal port requires client certificates', async t => {
        const inside = `https://127.0.0.1:${internal}/health`
        t.equal((await request(inside, { ca, ...certificates.client('backend') })).status, 200)
        const forged = certificates.client('forged', certificates.other)
        for (const identity of [{}, forged]) await t.rejects(request(inside, { ca, ...identity }))
      })
    } else {
      t.test('the dashboard trusts the authority given by --ca', async t => {
        const file = certificates.authority.file
        const once = (...more) =>
          halley(['dashboard', url, '--once', ...more], { HALLEY_ADMIN_KEY: 'admin key' })
        const { code, out } = await once('--ca', file)
        t.equal(code, 0, out)
        t.match(out, url)
        t.match(await once(), { code: 1, out: /certificate/ })
        t.match(await once('--ca', `${file}.none`), { code: 2, out: /--ca .+: ENOENT/ })
      })
    }

    t.test('a certificate is renewed under load without errors', async t => {
      const talkers = Array.from({ length: CLIENTS }, (_, name) => new Talker(sdk(t, port, ca), name))
      await Promise.all(talkers.map(({ subscribed }) => subscribed))
      const talks = talkers.map(talker => talker.talk())
      const morePublished = (from = 0) =>
        until(
          () => talkers.every(({ published }) => published >= from + SOME) && talkers[0].received.size > SOME,
        )
      await morePublished()

      const serial = certificates.renew()
      gateway.process.kill('SIGHUP')
      const line = await gateway.line(({ msg }) => /^configuration (?:not )?reloaded$/.test(msg))
      const changed = ['http_server.tls.cert_pem', 'http_server.tls.key_pem']
      const listed = own ? line.new_workers : line.live
      t.same(
        listed.filter(key => key.startsWith('http_server.tls.')),
        changed,
      )
      if (own) await gateway.line(({ msg }) => msg === 'rolling restart finished')
      for (let i = 0; i < 8; i++) t.equal((await handshake(port, { ca })).serial, serial)
      await morePublished(Math.max(...talkers.map(({ published }) => published)))

      for (const talker of talkers) talker.end()
      await Promise.all(talks)
      await until(() => talkers.every(talker => talker.has(talkers)))
      const connects = talkers.map(talker => talker.connects)
      if (own) t.ok(Math.max(...connects) > 1, 'clients have reconnected to new workers')
      else t.same(connects, new Array(CLIENTS).fill(1), 'no connection has ended')
      for (const { client } of talkers) client.disconnect()
    })

    t.test('a key that does not match the certificate is refused', async t => {
      const { serial } = await handshake(port, { ca })
      const other = certificates.client('other')
      certificates.replace(certificates.authority.sign('gateway-next', 'DNS:localhost').pem, other.key)
      const { code, out } = await halley(['reload', join(folder, 'stats.sock')])
      t.equal(code, 1)
      t.match(
        out,
        /^halley reload: configuration not reloaded: http_server\.tls\.key_pem: is not the key of cert_pem/,
      )
      t.equal((await handshake(port, { ca })).serial, serial)
      t.equal(out.trim().split('\n').length, 1)
    })

    t.test('a connection with an incomplete ClientHello times out', async t => {
      t.equal(await unfinished, '')
    })
  })
}
