// Emulated transports: POSTs in order over few connections, and polls that outlive their connections.

import { createServer } from 'node:http'
import t from 'tap'
import { startGateway } from '../../kit/gateway.js'
import { TcpProxy } from '../../kit/tcp-proxy.js'
import { until } from '../../kit/wait.js'
import { start } from './support.js'

/**
 * A server of http_stream that keeps what is posted to it.
 * @param {any} t
 * @param {(body: any, answer: import('node:http').ServerResponse) => void} onPost
 */
async function emulation(t, onPost) {
  /** @type {Set<any>} */
  const lines = new Set()
  let streams = 0
  const server = createServer(async (asked, answer) => {
    let body = ''
    for await (const part of asked) body += part
    if (asked.url === '/deep/connection/http_stream') {
      const [connect] = body.split('\n').map(line => JSON.parse(line))
      answer.write(
        `${JSON.stringify({ id: 1, connect: { session: `s${streams++}`, node: 'n', at: connect.connect } })}\n`,
      )
      return
    }
    lines.add(asked.socket)
    t.equal(asked.url, '/deep/emulation')
    t.equal(asked.headers['content-type'], 'application/json')
    onPost(JSON.parse(body), answer)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { url: `http://127.0.0.1:${port}/deep/`, lines }
}

t.test('commands of many connections are sent in order over few sockets', async t => {
  const COUNT = 200
  /** @type {Map<string, string>} */
  const got = new Map()
  let under = 0
  let most = 0
  /** @type {() => void} */
  let all
  const complete = new Promise(resolve => {
    all = () => resolve(undefined)
  })
  const busy = new Set()
  const { url, lines } = await emulation(t, ({ session, node, data }, answer) => {
    if (node !== 'n' || busy.has(session)) t.fail('one POST of a session at a time')
    busy.add(session)
    most = Math.max(most, ++under)
    setImmediate(() => {
      under--
      busy.delete(session)
      got.set(session, (got.has(session) ? `${got.get(session)}\n` : '') + data)
      answer.writeHead(204).end()
      if (got.size === COUNT && [...got.values()].every(text => text.split('\n').length === 5)) all()
    })
  })
  const { dialer, received } = start({ targets: [url], transport: 'http_stream' })
  const connections = Array.from({ length: COUNT }, (_, i) => dialer.dial(i, i, { name: `ü${i}` }))
  await received.until(() => received.messages.length === COUNT)
  t.ok(
    received.messages.every(
      ({ connection, text }) => JSON.parse(text).connect.at.name === `ü${connection.slot}`,
    ),
  )
  for (let n = 0; n < 5; n++) {
    for (const connection of connections) connection.send(`{"n":"${n}"}`)
    await new Promise(resolve => setImmediate(resolve))
  }
  await complete
  const expected = Array.from({ length: 5 }, (_, n) => `{"n":"${n}"}`).join('\n')
  t.ok([...got.values()].every(text => text === expected))
  t.ok(lines.size > 1 && lines.size <= 64, `${lines.size} connections`)
  for (const connection of connections) connection.close()
  await received.until(() => received.ends.length === COUNT)
})

t.test('large batches are split over several POSTs', async t => {
  /** @type {string[]} */
  const bodies = []
  const { url } = await emulation(t, ({ data }, answer) => {
    bodies.push(data)
    answer.writeHead(200, { 'Content-Length': 2 }).end('ok')
  })
  const { dialer, received } = start({ targets: [url], transport: 'http_stream' })
  const connection = dialer.dial(0, 0, {})
  await received.until(() => received.messages.length === 1)
  const texts = Array.from({ length: 500 }, (_, n) => `{"id":${n},"p":"${'x'.repeat(200)}"}`)
  for (const text of texts) connection.send(text)
  await until(() => bodies.join('\n').length >= texts.join('\n').length)
  t.equal(bodies.join('\n'), texts.join('\n'))
  t.ok(bodies.every(text => JSON.stringify(text).length < 65_000))
  connection.reset()
  await received.end(connection)
})

t.test('a refused or cut POST ends its connection', async t => {
  for (const [reason, act] of /** @type {const} */ ([
    ['send: HTTP 404', answer => answer.writeHead(404).end('no such node')],
    ['send: HTTP 413', answer => answer.writeHead(413, { Connection: 'close' }).end()],
    ['send: ECONNRESET', answer => answer.socket.resetAndDestroy()],
    ['send: closed by target', answer => answer.socket.destroy()],
  ])) {
    const { url } = await emulation(t, (_body, answer) => act(answer))
    const { dialer, received } = start({ targets: [url], transport: 'http_stream' })
    const connection = dialer.dial(0, 0, {})
    await received.until(() => received.messages.length === 1)
    connection.send('{"id":2}')
    t.same(await received.end(connection), { code: 0, reason })
  }
})

t.test('long_poll: a session outlives its connections without loss or duplicates', async t => {
  const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
  const gateway = await startGateway(t, {
    workers: 1,
    client: { allow_anonymous_connect_without_token: true },
    poll: { enabled: true },
    channel: {
      without_namespace: { ...open, allow_publish_for_client: true, allow_publish_for_anonymous: true },
    },
  })
  const proxy = await TcpProxy.start(t, gateway.port)
  const { dialer, received } = start({ targets: [`http://127.0.0.1:${proxy.port}`], transport: 'long_poll' })
  const connection = dialer.dial(0, 0, {})
  connection.send('{"id":2,"subscribe":{"channel":"a"}}')
  await received.message1(connection, text => text.startsWith('{"id":2'))
  const there = n => received.until(() => received.open(connection).published.includes(n))
  const TOTAL = 40
  for (let n = 0; n < TOTAL; n++) {
    // Commands are not lost, either.
    if (n % 10 === 5) {
      connection.send(`{"id":${100 + n},"publish":{"channel":"a","data":${n}}}`)
      await there(n)
    } else await gateway.api('publish', { channel: 'a', data: n })
    if (n % 8 === 3) {
      await there(n)
      proxy.cut()
    }
  }
  await there(TOTAL - 1)
  t.same(
    received.open(connection).published,
    Array.from({ length: TOTAL }, (_, n) => n),
  )
  t.ok(proxy.cuts > 4, `${proxy.cuts} cuts`)
  t.same(received.ends, [])
  proxy.refuses = true
  proxy.cut()
  connection.close()
  t.same(await received.end(connection), { code: 0, reason: 'closed' })
})
