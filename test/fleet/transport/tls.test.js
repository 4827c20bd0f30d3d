// Targets with TLS: the same messages, and a verified certificate.

import { createServer } from 'node:tls'
import t from 'tap'
import { makeAuthority } from '../../channels/broker/redis/certificates.js'
import { frame, request, SWITCHING, start } from './support.js'

t.test('https and wss targets work', async t => {
  const certificate = makeAuthority(t.testdir(), 'authority').sign('server', 'IP:127.0.0.1')
  const big = `{"p":"${'x'.repeat(300_000)}"}`
  /** @type {string[]} */
  const heads = []
  const server = createServer({ key: certificate.key, cert: certificate.pem }, async socket => {
    socket.on('error', () => {})
    const head = await request(/** @type {any} */ (socket))
    heads.push(head)
    if (!head.includes('websocket')) {
      socket.write('HTTP/1.1 200 OK\r\n\r\n{"id":1,"connect":{}}\n')
      return socket.write(`${big}\n`)
    }
    socket.write(SWITCHING)
    for (const text of ['{"id":1,"connect":{}}', big, '{}']) socket.write(frame(text))
    socket.on('data', data => data.includes(0x88) && socket.end())
  })
  server.on('tlsClientError', () => {})
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())

  for (const [scheme, transport, count] of /** @type {const} */ ([
    ['wss', 'websocket', 3],
    ['https', 'http_stream', 2],
  ])) {
    const target = `${scheme}://127.0.0.1:${port}`
    // As in all Node.js programs.
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    const { dialer, received } = start({
      targets: [target],
      transport,
      addresses: ['127.0.1.7'],
    })
    const connections = [0, 1].map(i => dialer.dial(i, i, {}))
    await received.until(() => received.messages.length === 2 * count)
    for (const connection of connections) t.equal(received.of(connection)[1], big)
    connections[0].close()
    connections[1].reset()
    t.same(await received.end(connections[0]), { code: 0, reason: 'closed' })
    t.same(await received.end(connections[1]), { code: 0, reason: 'reset' })
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    const strict = start({ targets: [target], transport })
    t.match(await strict.received.end(strict.dialer.dial(0, 0, {})), {
      code: 0,
      reason: /CERT|SIGNATURE|ISSUER/,
    })
  }
  t.match(heads[0], `Host: 127.0.0.1:${port}\r\n`)
  t.notMatch(heads.join(''), /origin/i)
})
