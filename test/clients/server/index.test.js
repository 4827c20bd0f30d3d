import { once } from 'node:events'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import t from 'tap'
import { createServer } from '../../../src/clients/server/index.js'
import { Servers } from '../../../src/processes/worker/listen.js'
import { CERT, EXPIRED, KEY, OTHER_KEY } from '../../config/certificates.js'
import { skipDriver } from '../../kit/drivers.js'
import { freePort } from '../../kit/ports.js'
import { Log } from './conformance/rig.js'

const load = async () => {
  throw new Error('a long story about platforms\n\nno binary for this Node.js')
}

t.test('auto takes uWebSockets.js where it loads', { skip: skipDriver('uws') }, async t => {
  const logger = new Log()
  const server = await createServer({ driver: 'auto', logger })
  t.equal(server.name, 'uws')
  t.equal(server.fallback, '')
  t.equal(logger.count('warn'), 0)
})

t.test('auto falls back to node, and says so once, in one line', async t => {
  const logger = new Log()
  const server = await createServer({ driver: 'auto', logger, load })
  t.equal(server.name, 'node')
  t.equal(server.fallback, 'uWebSockets.js does not load: no binary for this Node.js')
  t.equal(logger.count('warn'), 1)
  t.match(await logger.next('warn'), /^uWebSockets\.js does not load, .*no binary for this Node\.js$/)
})

t.test('uws is refused with a clear error where it does not load', async t => {
  await t.rejects(createServer({ driver: 'uws', load }), {
    message: 'http_server.driver is uws, but uWebSockets.js does not load: no binary for this Node.js',
  })
})

t.test('node does not try', async t => {
  const server = await createServer({ driver: 'node', load: async () => t.fail('tried') })
  t.equal(server.name, 'node')
  t.equal(server.fallback, '')
})

t.test('TLS: both speak it; what requires client certificates is the node server', async t => {
  const tls = { cert_pem: CERT, key_pem: KEY, client_ca_pem: '' }
  t.equal((await createServer({ driver: 'auto', tls: { ...tls, client_ca_pem: CERT } })).name, 'node')
  for (const driver of /** @type {('uws' | 'node')[]} */ (skipDriver('uws') ? ['node'] : ['uws', 'node'])) {
    const server = await createServer({ driver, tls })
    server.route('GET', '/', exchange => exchange.reply(200, null, driver))
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    t.teardown(() => server.shutdown())
    const response = await new Promise((resolve, reject) =>
      https.get({ port, host: '127.0.0.1', ca: CERT, agent: false }, resolve).on('error', reject),
    )
    t.equal(await text(response), driver)
    t.throws(() => server.prepareTls({ ...tls, key_pem: OTHER_KEY }), 'another pair must fit')
    server.prepareTls(tls)()
  }
})

/**
 * A request over TLS, whatever the certificate.
 * @param {number} port @param {string} [upgrade] name of a protocol
 * @returns {Promise<{status: string, validTo: string}>} first line of the answer, and the end of the certificate
 */
async function ask(port, upgrade = '') {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  const more = upgrade === '' ? '' : `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`
  socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`)
  const [data] = await once(socket, 'data')
  const { valid_to: validTo } = socket.getPeerCertificate()
  socket.destroy()
  return { status: String(data).split('\r\n')[0], validTo }
}

t.test('TLS: an upgrade that nobody serves is an ordinary request', async t => {
  for (const driver of /** @type {('uws' | 'node')[]} */ (skipDriver('uws') ? ['node'] : ['uws', 'node'])) {
    const server = await createServer({ driver, tls: { cert_pem: CERT, key_pem: KEY, client_ca_pem: '' } })
    server.route('GET', '/', exchange => exchange.reply(200, null, driver))
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    t.teardown(() => server.shutdown())
    for (const protocol of ['h2c', 'websocket'])
      t.equal((await ask(port, protocol)).status, 'HTTP/1.1 200 OK', `${driver}, ${protocol}`)
  }
})

t.test('TLS: a worker that was starting when a reload was prepared renews its certificate, too', async t => {
  const pair = { cert_pem: CERT, key_pem: KEY, client_ca_pem: '' }
  const other = { enabled: false, cert_pem: '', key_pem: '', client_ca_pem: '' }
  const options = { driver: 'node', internal_port: 0, tls: { enabled: true, ...pair }, internal_tls: other }
  const renewed = { ...options, tls: { ...options.tls, cert_pem: EXPIRED } }
  const servers = await Servers.create(/** @type {any} */ (options), /** @type {any} */ (new Log()))
  const { server } = servers
  server.route('GET', '/', exchange => exchange.reply(200, null, ''))
  const port = await freePort()
  await server.listen('127.0.0.1', port)
  t.teardown(() => server.shutdown())
  const { validTo } = await ask(port)
  servers.prepare(/** @type {any} */ (renewed))
  servers.commit(/** @type {any} */ (options))
  t.equal((await ask(port)).validTo, validTo, 'not committed')
  servers.commit(/** @type {any} */ (renewed))
  t.not((await ask(port)).validTo, validTo)
})
