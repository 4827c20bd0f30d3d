// Many requests of one connection, sent without waiting for the answers (pipelined), on the `node` driver.

import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { NodeRequests } from '../../../src/clients/server/node-requests.js'
import { pause, until } from '../../kit/wait.js'
import { get, RawClient, serve, upgradeRequest } from './conformance/rig.js'

const fast = (server, handled = () => {}) =>
  server.route('GET', '/fast', exchange => {
    handled()
    exchange.reply(200, null, exchange.query)
  })

t.test('pipelined requests are all answered, in order', async t => {
  const { port } = await serve(t, 'node', server => fast(server))
  const client = await RawClient.connect(t, port)
  const names = Array.from({ length: 2000 }, (_, n) => `no-${n}.`)
  client.write(names.map(name => get(`/fast?${name}`)).join(''))
  t.same((await client.until('no-1999.')).match(/no-\d+\./g), names)
})

t.test('one turn of the event loop handles a limited number of requests', async t => {
  let turn = 0
  let last = -1
  let inTurn = 0
  let most = 0
  const { port } = await serve(t, 'node', server =>
    fast(server, () => {
      inTurn = turn === last ? inTurn + 1 : 1
      last = turn
      most = Math.max(most, inTurn)
    }),
  )
  let counting = true
  const count = () => {
    turn++
    if (counting) setImmediate(count)
  }
  count()
  const clients = await Promise.all(Array.from({ length: 3 }, () => RawClient.connect(t, port)))
  for (const client of clients) client.write(get('/fast?x').repeat(1500) + get('/fast?end-of-all'))
  await Promise.all(clients.map(client => client.until('end-of-all')))
  counting = false
  // Slices last 3 ms: their work depends on the speed of the machine.
  t.ok(most < 500, `at most ${most}`)
})

t.test('a client that reads nothing has one response in memory', async t => {
  let handled = 0
  const { port, server } = await serve(t, 'node', server => {
    server.route('GET', '/large', exchange => {
      handled++
      exchange.reply(200, null, Buffer.alloc(1_000_000))
    })
    fast(server)
  })
  const client = await RawClient.connect(t, port)
  client.socket.pause()
  client.write(get('/large').repeat(1000))
  const other = await RawClient.connect(t, port)
  // As many as the kernel buffers for the client, then one more.
  for (let before = -1, n = 0; before !== handled; n++) {
    before = handled
    other.write(get(`/fast?look-${n}.`).repeat(20))
    await other.until(`look-${n}.`)
    await pause(50)
  }
  t.ok(handled > 0 && handled < 20, `${handled} of 1000 responses`)
  t.equal(server.unanswered, 1000 - handled + 1, 'the others wait')
  client.socket.destroy()
  await until(() => server.unanswered === 0)
  t.ok(handled < 20, 'and are dropped when the client leaves')
})

t.test('a handshake behind an unanswered request ends the connection', async t => {
  const { port } = await serve(t, 'node', server => {
    server.route('GET', '/wait', () => {})
    server.websocket('/ws', {
      maxMessage: 100,
      maxBuffered: 100,
      compression: null,
      protocols: [],
      upgrade: () => t.fail('it overtakes the response'),
    })
  })
  const client = await RawClient.connect(t, port)
  client.write(get('/wait') + upgradeRequest('/ws'))
  await client.end()
  t.equal(client.received.length, 0)
})

t.test('queued requests of all connections are limited', async t => {
  const host = { unanswered: 0 }
  const begun = []
  const requests = new NodeRequests((_req, res) => begun.push(res), host, 100)
  const server = http.createServer((req, res) => requests.add(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const first = await RawClient.connect(t, port)
  first.write(get('/').repeat(61))
  await until(() => host.unanswered >= 60)
  const second = await RawClient.connect(t, port)
  second.write(get('/').repeat(61))
  await second.end()
  t.equal(host.unanswered, 100)
  for (const { socket } of begun) requests.done(socket)
  t.equal(host.unanswered, 59, 'those of the closed connection are dropped')
  first.socket.destroy()
})
