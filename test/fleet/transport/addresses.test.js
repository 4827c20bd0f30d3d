// Source addresses of connections, as seen by the server.

import { createServer } from 'node:net'
import t from 'tap'
import { parseAddresses, Sources } from '../../../fleet/drone/transport/addresses.js'
import { freePort } from '../../kit/ports.js'
import { frame, rawServer, request, SWITCHING, start } from './support.js'

/** A server that records the addresses of its clients. @param {any} t @param {string} [host] */
async function target(t, host) {
  /** @type {string[]} */
  const from = []
  const server = await rawServer(
    t,
    async socket => {
      from.push(`${socket.remoteAddress} ${socket.remotePort}`)
      await request(socket)
      socket.write(Buffer.concat([Buffer.from(SWITCHING), frame('{"id":1,"connect":{}}')]))
    },
    host,
  )
  return { from, server }
}

/** @param {import('./support.js').Received} received @param {number} count */
const open = (received, count) =>
  received.until(() => received.messages.length + received.ends.length >= count)

/** Number of consecutive ports that no other test uses. */
const RANGE = 11
let ports = [await freePort()]
while (ports.length < RANGE) {
  const port = await freePort()
  ports = port === Number(ports.at(-1)) + 1 ? [...ports, port] : [port]
}
const [FIRST] = ports

t.test('ranges of addresses are expanded', async t => {
  for (const [ranges, addresses] of /** @type {[string[], string][]} */ ([
    [['127.0.1.254-127.0.2.1', '10.0.0.7'], '127.0.1.254 127.0.1.255 127.0.2.0 127.0.2.1 10.0.0.7'],
    [['127.0.1.1-127.0.1.2,10.0.0.7, ::1', ''], '127.0.1.1 127.0.1.2 10.0.0.7 ::1'],
  ]))
    t.equal(parseAddresses(ranges).join(' '), addresses)
  t.equal(parseAddresses(['10.0.0.0-10.0.255.255']).length, 65_536)
  const invalid = 'x 1.2.3 1.2.3.4- 1.2.3.4-1.2.3.3 1.2.3.4-5 1.2.3.256 ::1-::5 1.2.3.4-1.2.3.5-1.2.3.6'
  for (const range of invalid.split(' '))
    t.throws(() => parseAddresses([range]), { message: `"${range}" is not a range of addresses` })
  t.throws(() => parseAddresses(['10.0.0.0-10.1.0.0']), { message: 'more than 65536 addresses' })
})

t.test('ranges of ports are checked', async t => {
  t.match(new Sources([], '1024-65535'), { first: 1024, size: 64_512 })
  t.match(new Sources(['a', 'b'], '5000-5000'), { first: 5000, size: 2 })
  t.match(new Sources([], ''), { first: 0, size: 1 })
  for (const range of ['0-10', '10', '20-10', '1-65536', 'a-b', '1-2-3'])
    t.throws(() => new Sources([], range), { message: `"${range}" is not a range of ports` })
})

t.test('connections alternate between addresses; a pair is reused after its release', async t => {
  const sources = new Sources(['a', 'b'], '10-12')
  sources.begin(8)
  const take = () => {
    const pair = sources.take(0)
    const { localAddress, localPort } = sources.at(pair)
    return pair < 0 ? '' : `${localAddress} ${localPort}`
  }
  t.same(
    [take(), take(), take(), take(), take(), take(), take()],
    ['a 11', 'b 11', 'a 12', 'b 12', 'a 10', 'b 10', ''],
  )
  sources.release(5)
  t.equal(take(), 'b 12')
  t.equal(take(), '')
})

t.test('connections come from the given addresses and ports', async t => {
  const { from, server } = await target(t)
  const { dialer, received } = start({
    targets: [server.url],
    addresses: ['127.0.1.1-127.0.1.2', '127.0.1.9'],
    ports: `${FIRST}-${FIRST + 3}`,
  })
  const connections = Array.from({ length: 14 }, (_, i) => dialer.dial(i, i, {}))
  await open(received, 14)
  const expected = [0, 1, 2, 3].flatMap(i => ['1.1', '1.2', '1.9'].map(part => `127.0.${part} ${FIRST + i}`))
  t.same([...from].sort(), expected.sort())
  t.same(
    received.ends.map(({ reason }) => reason),
    ['no free source port', 'no free source port'],
  )
  // Closed by the server: no TIME_WAIT on the client's side.
  for (const socket of server.sockets) if (socket.remotePort === FIRST + 1) socket.destroy()
  await received.until(() => received.ends.length === 5)
  dialer.dial(20, 20, {})
  await open(received, 13 + 5)
  t.match(from[12], new RegExp(`^127\\.0\\.1\\.[129] ${FIRST + 1}$`), 'a released pair is reused')
  for (const connection of connections) connection.reset()
})

t.test('pairs in use by other processes are skipped, up to a limit', async t => {
  const { from, server } = await target(t)
  const blocker = createServer()
  await new Promise(resolve => blocker.listen(FIRST + 5, '127.0.1.3', () => resolve(undefined)))
  t.teardown(() => blocker.close())
  const one = start({ targets: [server.url], addresses: ['127.0.1.3'], ports: `${FIRST + 5}-${FIRST + 7}` })
  one.dialer.dial(0, 0, {})
  one.dialer.dial(1, 1, {})
  await open(one.received, 2)
  t.same(from, [`127.0.1.3 ${FIRST + 6}`, `127.0.1.3 ${FIRST + 7}`])
  // For `two`, the connections of `one` are like those of another process.
  const two = start({ targets: [server.url], addresses: ['127.0.1.3'], ports: `${FIRST + 5}-${FIRST + 8}` })
  two.dialer.dial(0, 0, {})
  await open(two.received, 1)
  t.equal(from[2], `127.0.1.3 ${FIRST + 8}`)
  two.dialer.dial(1, 1, {})
  await two.received.until(() => two.received.ends.length === 1)
  t.match(two.received.ends[0].reason, /^EADDR/, 'the last error, if all pairs are in use')
})

t.test('addresses work without ports and ports without addresses; foreign addresses fail', async t => {
  const { from, server } = await target(t)
  const some = start({ targets: [server.url], addresses: ['127.0.1.4-127.0.1.5'] })
  for (let i = 0; i < 4; i++) some.dialer.dial(i, i, {})
  await open(some.received, 4)
  t.same(from.map(text => text.split(' ')[0]).sort(), ['127.0.1.4', '127.0.1.4', '127.0.1.5', '127.0.1.5'])
  const ports = start({ targets: [server.url], ports: `${FIRST + 10}-${FIRST + 10}` })
  ports.dialer.dial(0, 0, {})
  await open(ports.received, 1)
  t.equal(from[4], `127.0.0.1 ${FIRST + 10}`)
  const away = start({ targets: [server.url], addresses: ['192.0.2.1'] })
  t.same(await away.received.end(away.dialer.dial(0, 0, {})), { code: 0, reason: 'EADDRNOTAVAIL 192.0.2.1' })
})

t.test('IPv6 addresses can be used', async t => {
  const { from, server } = await target(t, '::1')
  const { dialer, received } = start({
    targets: [server.url],
    allow: [`[::1]:${server.port}`],
    addresses: ['::1'],
  })
  dialer.dial(0, 0, {})
  await open(received, 1)
  t.match(from[0], /^::1 /)
})

t.test('only allowed targets are accepted', async t => {
  const { server } = await target(t)
  const { port, url } = server
  for (const allow of [[], ['127.0.0.2'], [`127.0.0.1:${port + 1}`], ['localhost'], ['127.0.0.1:'], ['']])
    t.throws(() => start({ targets: [url], allow }), {
      message: `target ${url} is not allowed; allowed: ${allow.join(', ') || 'none'}`,
    })
  t.throws(
    () => start({ targets: [url, 'http://example.com'], allow: ['127.0.0.1'] }),
    /example\.com is not allowed/,
  )
  for (const allow of [['127.0.0.1'], ['a', `127.0.0.1:${port}`]]) start({ targets: [url], allow })
  start({ targets: ['https://Example.com/x'], allow: ['example.COM:443'] })
  t.equal(server.count, 0, 'no connection was opened')
  for (const bad of ['x', 'ftp://127.0.0.1', 'http://', '127.0.0.1:80'])
    t.throws(() => start({ targets: [bad] }), {
      message: `target "${bad}" is not a URL like http://127.0.0.1:8000`,
    })
  t.throws(() => start({ targets: [] }), { message: 'targets is empty: at least one is required' })
  for (const transport of /** @type {any[]} */ (['x', 'toString']))
    t.throws(() => start({ targets: [url], transport }), {
      message: `unknown transport "${transport}"`,
    })
})

t.test('host names are resolved once; connections to an unknown name fail', async t => {
  const { from, server } = await target(t)
  const { dialer, received } = start({ targets: [`http://localhost:${server.port}`], allow: ['localhost'] })
  for (let i = 0; i < 3; i++) dialer.dial(i, i, {})
  const gone = dialer.dial(3, 3, {})
  gone.close()
  await open(received, 4)
  t.equal(from.length, 3)
  t.match(await received.end(gone), { reason: 'closed' })
  const none = start({ targets: ['http://no-such-host.invalid'], allow: ['no-such-host.invalid'] })
  for (let i = 0; i < 2; i++)
    t.match(await none.received.end(none.dialer.dial(i, i, {})), { code: 0, reason: /^E/ })
})

t.test('connections are assigned to targets round-robin, by connection number', async t => {
  const a = await target(t)
  const b = await target(t)
  const { dialer, received } = start({ targets: [a.server.url, b.server.url] })
  for (const number of [0, 2, 4, 7]) dialer.dial(number, number, {})
  await open(received, 4)
  t.same([a.from.length, b.from.length], [3, 1])
})

t.test('a target that refuses connections ends them with ECONNREFUSED', async t => {
  const { server } = await target(t)
  for (const transport of /** @type {const} */ (['websocket', 'http_stream', 'sse', 'long_poll'])) {
    const { dialer, received } = start({ targets: [server.url.replace(/\d+$/, '1')], transport })
    t.same(await received.end(dialer.dial(0, 0, {})), { code: 0, reason: 'ECONNREFUSED' })
  }
})
