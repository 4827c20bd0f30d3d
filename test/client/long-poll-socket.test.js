import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { LongPollSocket } from 'halley-gateway/client'
import t from 'tap'
import { pause, until } from '../kit/wait.js'
import { FakeEndpoint, inTurn, isClose, isPoll, isSend } from './fake-endpoint.js'

/** A response of a proxy instead of the gateway. */
const LOGIN = '<html>please log in</html>'

/** @param {LongPollSocket} socket @param {string} type @returns {Promise<any>} the next event of this type */
const next = async (socket, type) => (await once(socket, type))[0]

/** @param {any} t @param {FakeEndpoint} endpoint */
async function opened(t, endpoint) {
  const socket = new LongPollSocket(endpoint.url)
  t.teardown(() => socket.close())
  await next(socket, 'open')
  return socket
}

/** The connection is lost: `error`, then `close`. @param {any} t @param {LongPollSocket} socket */
async function assertLost(t, socket) {
  const error = next(socket, 'error')
  t.match(await next(socket, 'close'), { code: 1006, reason: '', wasClean: false })
  await error
}

t.test('the file has less than 4 KB compressed, and no imports', async t => {
  const source = await readFile(new URL('../../client/long-poll-socket.js', import.meta.url), 'utf8')
  const { length } = gzipSync(source)
  t.ok(length < 4000, `${length} bytes`)
  t.notMatch(source, /^import\b|\bimport\(|require\(/m)
})

t.test('it has the interface of a WebSocket', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const { CONNECTING, OPEN, CLOSING, CLOSED } = /** @type {any} */ (LongPollSocket)
  t.same([CONNECTING, OPEN, CLOSING, CLOSED], [0, 1, 2, 3])
  const socket = new LongPollSocket(endpoint.url)
  t.match(socket, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 })
  t.match(socket, { url: endpoint.url, readyState: 0, protocol: '', extensions: '', binaryType: 'blob' })
  t.equal(socket.bufferedAmount, 0)
  /** @type {string[]} */
  const order = []
  for (const type of ['open', 'message', 'error', 'close']) {
    const handler = `on${type}`
    t.equal(/** @type {any} */ (socket)[handler], null)
    /** @type {any} */
    socket[handler] = (/** @type {Event} */ event) => order.push(`on ${event.type}`)
    socket.addEventListener(type, () => order.push(type))
  }
  t.throws(() => socket.send('too early'), { name: 'InvalidStateError' })
  await next(socket, 'open')
  t.equal(socket.readyState, 1)
  socket.send('x')
  t.equal(socket.bufferedAmount, 1)
  t.throws(() => socket.close(1001), { name: 'InvalidAccessError' })
  t.throws(() => socket.close(5000), { name: 'InvalidAccessError' })
  socket.close(4000, 'enough')
  t.equal(socket.readyState, 2)
  t.same(order, ['on open', 'open'], 'the close event comes later')
  const event = await next(socket, 'close')
  t.match(event, { code: 4000, reason: 'enough', wasClean: true })
  t.equal(socket.readyState, 3)
  socket.close()
  socket.send('too late')
  t.same(order, ['on open', 'open', 'on close', 'close'])
})

t.test('ws becomes http; other schemes and query parameters are kept', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = new LongPollSocket(new URL(`${endpoint.url.replace('ws', 'http')}?token=a%20b#part`))
  t.teardown(() => socket.close())
  await next(socket, 'open')
  const [poll] = await endpoint.some(isPoll)
  t.same(Object.fromEntries(poll.query), { token: 'a b', session: 'S', ack: '0', timeout: '25' })
  t.throws(() => new LongPollSocket('not a URL'))
})

t.test('messages of one turn are sent in one POST, later ones in the next', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  endpoint.onSend = () => {}
  socket.send('1')
  socket.send('2')
  const [first] = await endpoint.some(isSend)
  t.same([first.query.get('send'), String(first.body)], ['1', '1\n2'])
  for (const text of ['3', 'é', '5']) socket.send(text)
  t.equal(socket.bufferedAmount, 6)
  first.reply(204)
  const [, second] = await endpoint.some(isSend, 2)
  t.same([second.query.get('send'), String(second.body)], ['2', '3\né\n5'])
  t.equal(second.headers['content-type'], 'text/plain;charset=UTF-8', 'no preflight')
  second.reply(204)
  await until(() => socket.bufferedAmount === 0)
})

t.test('long messages are split over several POSTs', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  const long = 'x'.repeat(15_000)
  for (const text of ['1', '2', long, long, '3', long]) socket.send(text)
  const sends = await endpoint.some(isSend, 3)
  t.same(
    sends.map(({ body }) => String(body).replaceAll(long, 'long')),
    ['1\n2\nlong', 'long\n3', 'long'],
  )
})

t.test('a POST is retried with the same number until it gets a response', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  endpoint.onSend = inTurn(
    post => post.cut(),
    post => post.reply(502),
    post => post.reply(200, {}, LOGIN),
    post => post.reply(429),
    post => post.reply(204),
  )
  socket.send('1')
  const repeated = await endpoint.some(isSend, 5)
  for (const { query, body } of repeated) t.same([query.get('send'), String(body)], ['1', '1'])
  socket.send('2')
  const [last] = (await endpoint.some(isSend, 6)).slice(5)
  t.same([last.query.get('send'), String(last.body)], ['2', '2'])
})

t.test('a poll without a response is retried, and acknowledges received messages', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = inTurn(
    post => post.reply(200, { 'Halley-Seq': '2' }, 'a\nb\n'),
    post => post.cut(),
    post => post.reply(200, {}, LOGIN),
    post => {
      // Cut within the body.
      post.response.writeHead(200, { 'Halley-Seq': '3', 'Content-Length': '100' })
      post.response.write('lost\n', () => post.cut())
    },
    post => post.reply(200, { 'Halley-Seq': '3' }, 'c\n'),
    () => {},
  )
  const socket = await opened(t, endpoint)
  t.equal((await next(socket, 'message')).data, 'a\nb')
  t.equal((await next(socket, 'message')).data, 'c')
  const polls = await endpoint.some(isPoll, 6)
  t.same(
    polls.map(({ query }) => query.get('ack')),
    ['0', '2', '2', '2', '2', '3'],
  )
})

t.test('an empty response is not a message', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = inTurn(
    post => post.reply(200, { 'Halley-Seq': '0' }),
    post => post.reply(200, { 'Halley-Seq': '0' }),
    post => post.reply(200, { 'Halley-Seq': '1' }, '{}\n'),
    () => {},
  )
  const socket = await opened(t, endpoint)
  t.equal((await next(socket, 'message')).data, '{}')
})

t.test('code and reason of Halley-Close are in the close event', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = post =>
    post.reply(200, { 'Halley-Seq': '1', 'Halley-Close': '4501 100%25 %C3%BCber %F0%9F%8E%88' }, 'last\n')
  const socket = await opened(t, endpoint)
  const message = next(socket, 'message')
  const event = await next(socket, 'close')
  t.equal((await message).data, 'last')
  t.match(event, { code: 4501, reason: '100% über 🎈', wasClean: true })
  await pause(50)
  t.same(endpoint.posts.filter(isClose), [], 'no close request')
})

t.test('a close call in the last message event keeps the code of the server', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = post => post.reply(200, { 'Halley-Seq': '1', 'Halley-Close': '3503 bye' }, 'last\n')
  const socket = await opened(t, endpoint)
  socket.onmessage = () => socket.close()
  t.match(await next(socket, 'close'), { code: 3503, reason: 'bye' })
})

t.test('a poll of an unknown session fails the connection', async t => {
  for (const status of [404, 400, 403, 409]) {
    const endpoint = await FakeEndpoint.start(t)
    endpoint.onPoll = post => post.reply(status)
    await assertLost(t, await opened(t, endpoint))
  }
})

t.test('opening fails if the endpoint does not respond, refuses or is a different one', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onOpen = inTurn(
    post => post.cut(),
    post => post.reply(503),
    post => post.reply(404),
    post => post.reply(200, {}, LOGIN),
  )
  for (let i = 0; i < 4; i++) await assertLost(t, new LongPollSocket(endpoint.url))
  t.equal(endpoint.posts.length, 4, 'each was tried once')
})

t.test('close is sent after earlier messages', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  endpoint.onSend = post => setTimeout(() => post.reply(204), 20)
  socket.send('1')
  await endpoint.some(isSend)
  socket.send('2')
  socket.close()
  t.match(await next(socket, 'close'), { code: 1005, reason: '' })
  await endpoint.some(isClose)
  t.same(
    endpoint.posts.filter(post => !isPoll(post)).map(({ query, body }) => [query.get('send'), String(body)]),
    [
      [null, ''],
      ['1', '1'],
      ['2', '2'],
      [null, ''],
    ],
  )
})

t.test('a socket closed while opening reports 1006', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onOpen = () => {}
  const socket = new LongPollSocket(endpoint.url)
  socket.onopen = () => t.fail('it has not opened')
  await endpoint.some(() => true)
  socket.close()
  t.match(await next(socket, 'close'), { code: 1006 })
})

t.test('messages that are too long for the server end the connection', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  /** @type {string[]} */
  const taken = []
  endpoint.onSend = post => {
    if (post.body.length > 5) return post.reply(413)
    taken.push(`${post.query.get('send')}:${post.body}`)
    post.reply(204)
  }
  for (const text of ['1', '2', '3', '4']) socket.send(text)
  await endpoint.some(post => String(post.body) === '4')
  t.same(taken, ['1:1', '2:2', '3:3', '4:4'], 'one POST for each message')
  socket.send('too long')
  t.match(await next(socket, 'close'), { code: 1009, reason: 'message size limit' })
  await endpoint.some(post => post.query.has('close'))
  const tries = endpoint.posts.filter(post => String(post.body) === 'too long')
  t.equal(tries.length, 1, 'it is not repeated, and the session is closed')
})

t.test('binary messages are received and sent', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = inTurn(
    post => post.reply(200, { 'Halley-Seq': '1' }, Buffer.from([1, 0, 255])),
    post => post.reply(200, { 'Halley-Seq': '2' }, Buffer.from([2, 0, 255])),
    () => {},
  )
  const socket = new LongPollSocket(endpoint.url, ['centrifuge-json', 'centrifuge-protobuf'])
  t.teardown(() => socket.close())
  socket.binaryType = 'arraybuffer'
  await next(socket, 'open')
  t.equal(socket.protocol, 'centrifuge-protobuf')
  t.equal(endpoint.posts[0].headers['content-type'], 'application/octet-stream')
  const { data } = await next(socket, 'message')
  t.ok(data instanceof ArrayBuffer)
  t.same([...new Uint8Array(data)], [1, 0, 255])
  socket.binaryType = 'blob'
  const blob = (await next(socket, 'message')).data
  t.same([...new Uint8Array(await blob.arrayBuffer())], [2, 0, 255])
  const bytes = new Uint8Array([1, 2])
  socket.send(bytes)
  bytes.fill(9)
  socket.send(bytes.buffer)
  socket.send(new Blob([new Uint8Array([4])]))
  const [{ body }] = await endpoint.some(isSend)
  t.same([...body], [1, 2, 9, 9, 4], 'copied by send')
})
