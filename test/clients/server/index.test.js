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
const tls = { cert_pem: CERT, key_pem: KEY, client_ca_pem: '' }
const tlsDrivers = /** @type {('uws' | 'node')[]} */ (skipDriver('uws') ? ['node'] : ['uws', 'node'])

/** A listening server that answers with its driver. @returns {Promise<number>} port */
async function listening(t, server) {
  server.route('GET', '/', exchange => exchange.reply(200, null, server.name))
  const port = await freePort()
  await server.listen('127.0.0.1', port)
  t.teardown(() => server.shutdown())
  return port
}

t.test('auto selects uws if uWebSockets.js loads', { skip: skipDriver('uws') }, async t => {
  const logger = new Log()
  t.match(await createServer({ driver: 'auto', logger }), { name: 'uws', fallback: '' })
  t.equal(logger.count('warn'), 0)
})

t.test('auto falls back to node with one warning', async t => {
  const logger = new Log()
  const fallback = 'uWebSockets.js does not load: no binary for this Node.js'
  t.match(await createServer({ driver: 'auto', logger, load }), { name: 'node', fallback })
  t.equal(logger.count('warn'), 1)
  t.match(await logger.next('warn'), /^uWebSockets\.js does not load, .*no binary for this Node\.js$/)
})

t.test('uws is an error if uWebSockets.js does not load', async t => {
  await t.rejects(createServer({ driver: 'uws', load }), {
    message: 'http_server.driver is uws, but uWebSockets.js does not load: no binary for this Node.js',
  })
})

t.test('node does not load uWebSockets.js', async t => {
  const server = await createServer({ driver: 'node', load: async () => t.fail('loaded') })
  t.match(server, { name: 'node', fallback: '' })
})

t.test('both drivers serve TLS; client certificates select node', async t => {
  t.equal((await createServer({ driver: 'auto', tls: { ...tls, client_ca_pem: CERT } })).name, 'node')
  for (const driver of tlsDrivers) {
    const server = await createServer({ driver, tls })
    const port = await listening(t, server)
    const response = await new Promise((resolve, reject) =>
      https.get({ port, host: '127.0.0.1', ca: CERT, agent: false }, resolve).on('error', reject),
    )
    t.equal(await text(response), driver)
    t.throws(() => server.prepareTls({ ...tls, key_pem: OTHER_KEY }), 'a key of another certificate')
    server.prepareTls(tls)()
  }
})

/** A request over TLS. @returns {Promise<{status: string, validTo: string}>} status line, and end of the certificate */
async function ask(port, upgrade = '') {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  const more = upgrade === '' ? '' : `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`
  socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`)
  const [data] = await once(socket, 'data')
  const { valid_to: validTo } = socket.getPeerCertificate()
  socket.destroy()
  return { status: String(data).split('\r\n')[0], validTo }
}

t.test('with TLS, an upgrade without a route is an ordinary request', async t => {
  for (const driver of tlsDrivers) {
    const port = await listening(t, await createServer({ driver, tls }))
    for (const protocol of ['h2c', 'websocket'])
      t.equal((await ask(port, protocol)).status, 'HTTP/1.1 200 OK', `${driver}, ${protocol}`)
  }
})

t.test('a renewed certificate is used after prepare and commit', async t => {
  const other = { enabled: false, cert_pem: '', key_pem: '', client_ca_pem: '' }
  const options = { driver: 'node', internal_port: 0, tls: { enabled: true, ...tls }, internal_tls: other }
  const renewed = { ...options, tls: { ...options.tls, cert_pem: EXPIRED } }
  const servers = await Servers.create(/** @type {any} */ (options), /** @type {any} */ (new Log()))
  const port = await listening(t, servers.server)
  const { validTo } = await ask(port)
  servers.prepare(/** @type {any} */ (renewed))
  servers.commit(/** @type {any} */ (options))
  t.equal((await ask(port)).validTo, validTo, 'not committed')
  servers.commit(/** @type {any} */ (renewed))
  t.not((await ask(port)).validTo, validTo)
})
