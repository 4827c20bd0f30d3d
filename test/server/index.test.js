import https from 'node:https'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createServer } from '../../src/server/index.js'
import { CERT, KEY, OTHER_KEY } from '../config/certificates.js'
import { freePort } from '../ports.js'
import { Log } from './conformance/rig.js'

const load = async () => {
  throw new Error('a long story about platforms\n\nno binary for this Node.js')
}

t.test('auto takes uWebSockets.js where it loads', async t => {
  const logger = new Log()
  t.equal((await createServer({ driver: 'auto', logger })).name, 'uws')
  t.equal(logger.count('warn'), 0)
})

t.test('auto falls back to node, and says so once, in one line', async t => {
  const logger = new Log()
  t.equal((await createServer({ driver: 'auto', logger, load })).name, 'node')
  t.equal(logger.count('warn'), 1)
  t.match(await logger.next('warn'), /^uWebSockets\.js does not load, .*no binary for this Node\.js$/)
})

t.test('uws is refused with a clear error where it does not load', async t => {
  await t.rejects(createServer({ driver: 'uws', load }), {
    message: 'http_server.driver is uws, but uWebSockets.js does not load: no binary for this Node.js',
  })
})

t.test('node does not try', async t => {
  t.equal((await createServer({ driver: 'node', load: () => t.fail('tried') })).name, 'node')
})

t.test('TLS: both speak it; what requires client certificates is the node server', async t => {
  const tls = { cert_pem: CERT, key_pem: KEY, client_ca_pem: '' }
  t.equal((await createServer({ driver: 'auto', tls: { ...tls, client_ca_pem: CERT } })).name, 'node')
  for (const driver of /** @type {const} */ (['uws', 'node'])) {
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
