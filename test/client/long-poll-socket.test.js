import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { LongPollSocket } from 'halley-gateway/client'
import t from 'tap'
import { until } from '../kit/wait.js'
import { FakeEndpoint, isClose, isPoll, isSend } from './fake-endpoint.js'

/**
 * @param {LongPollSocket} socket
 * @param {string} type
 * @returns {Promise<any>} the next event of this type
 */
const next = async (socket, type) => (await once(socket, type))[0]

/**
 * @param {any} t
 * @param {FakeEndpoint} endpoint
 * @param {string | string[]} [protocols]
 */
async function opened(t, endpoint, protocols) {
  const socket = new LongPollSocket(endpoint.url, protocols)
  t.teardown(() => socket.close())
  await next(socket, 'open')
  return socket
}

t.test('compressed it has less than 4 KB, and it imports nothing', async t => {
  const source = await readFile(new URL('../../client/long-poll-socket.js', import.meta.url), 'utf8')
  const { length } = gzipSync(source)
  t.ok(length < 4000, `${length} bytes`)
  t.notMatch(source, /^import\b|\bimport\(|require\(/m)
})

t.test('it looks like a WebSocket', async t => {
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
  t.same(order, ['on open', 'open'], 'listeners hear of the end later')
  const event = await next(socket, 'close')
  t.match(event, { code: 4000, reason: 'enough', wasClean: true })
  t.equal(socket.readyState, 3)
  socket.close()
  socket.send('too late')
  t.same(order, ['on open', 'open', 'on close', 'close'])
})

t.test('ws becomes http, other schemes and query parameters stay', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = new LongPollSocket(new URL(`${endpoint.url.replace('ws', 'http')}?token=a%20b#part`))
  t.teardown(() => socket.close())
  await next(socket, 'open')
  const [poll] = await endpoint.some(isPoll)
  t.same(Object.fromEntries(poll.query), { token: 'a b', session: 'S', ack: '0', timeout: '25' })
  t.throws(() => new LongPollSocket('not a URL'))
})

t.test('what is sent in one go leaves in one POST, what comes meanwhile in the next', async t => {
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
  t.equal(second.headers['content-type'], 'text/plain;charset=UTF-8', 'browsers ask for no permission')
  second.reply(204)
  await until(() => socket.bufferedAmount === 0)
})

t.test('long messages leave in several POSTs', async t => {
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

t.test('a POST without an answer is repeated under its number, until it has one', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const socket = await opened(t, endpoint)
  let tries = 0
  endpoint.onSend = post => {
    tries++
    if (tries === 1) post.cut()
    else if (tries === 2) post.reply(502)
    else if (tries === 3) post.reply(200, {}, '<html>please log in</html>')
    else if (tries === 4) post.reply(429)
    else post.reply(204)
  }
  socket.send('1')
  const repeated = await endpoint.some(isSend, 5)
  for (const { query, body } of repeated) t.same([query.get('send'), String(body)], ['1', '1'])
  socket.send('2')
  const [last] = (await endpoint.some(isSend, 6)).slice(5)
  t.same([last.query.get('send'), String(last.body)], ['2', '2'])
})

t.test('a poll without an answer of the endpoint is repeated, and says what has arrived', async t => {
  const endpoint = await FakeEndpoint.start(t)
  let tries = 0
  endpoint.onPoll = post => {
    tries++
    if (tries === 1) post.reply(200, { 'Halley-Seq': '2' }, 'a\nb\n')
    else if (tries === 2) post.cut()
    else if (tries === 3) post.reply(200, {}, '<html>please log in</html>')
    else if (tries === 4) {
      // Cut within the body.
      post.response.writeHead(200, { 'Halley-Seq': '3', 'Content-Length': '100' })
      post.response.write('lost\n', () => post.cut())
    } else if (tries === 5) post.reply(200, { 'Halley-Seq': '3' }, 'c\n')
  }
  const socket = await opened(t, endpoint)
  t.equal((await next(socket, 'message')).data, 'a\nb')
  t.equal((await next(socket, 'message')).data, 'c')
  const polls = await endpoint.some(isPoll, 6)
  t.same(
    polls.map(({ query }) => query.get('ack')),
    ['0', '2', '2', '2', '2', '3'],
  )
})

t.test('an empty answer is no message', async t => {
  const endpoint = await FakeEndpoint.start(t)
  let tries = 0
  endpoint.onPoll = post => {
    tries++
    if (tries < 3) post.reply(200, { 'Halley-Seq': '0' })
    else if (tries === 3) post.reply(200, { 'Halley-Seq': '1' }, '{}\n')
  }
  const socket = await opened(t, endpoint)
  t.equal((await next(socket, 'message')).data, '{}')
})

t.test('the end that the server tells is the code and the reason of the close event', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = post =>
    post.reply(200, { 'Halley-Seq': '1', 'Halley-Close': '4501 100%25 %C3%BCber %F0%9F%8E%88' }, 'last\n')
  const socket = await opened(t, endpoint)
  const message = next(socket, 'message')
  const event = await next(socket, 'close')
  t.equal((await message).data, 'last')
  t.match(event, { code: 4501, reason: '100% über 🎈', wasClean: true })
  await new Promise(resolve => setTimeout(resolve, 50))
  t.same(endpoint.posts.filter(isClose), [], 'the server knows')
})

t.test('who closes on hearing the last message hears of the end from the server all the same', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onPoll = post => post.reply(200, { 'Halley-Seq': '1', 'Halley-Close': '3503 bye' }, 'last\n')
  const socket = await opened(t, endpoint)
  socket.onmessage = () => socket.close()
  t.match(await next(socket, 'close'), { code: 3503, reason: 'bye' })
})

t.test('a session that is gone is an abnormal end', async t => {
  for (const status of [404, 400, 403, 409]) {
    const endpoint = await FakeEndpoint.start(t)
    endpoint.onPoll = post => post.reply(status)
    const socket = await opened(t, endpoint)
    const error = next(socket, 'error')
    t.match(await next(socket, 'close'), { code: 1006, reason: '', wasClean: false })
    await error
  }
})

t.test('an endpoint that is not there, refuses or is another one fails the opening', async t => {
  const endpoint = await FakeEndpoint.start(t)
  const answers = [
    (/** @type {any} */ post) => post.cut(),
    (/** @type {any} */ post) => post.reply(503),
    (/** @type {any} */ post) => post.reply(404),
    (/** @type {any} */ post) => post.reply(200, {}, '<html>please log in</html>'),
  ]
  for (const answer of answers) {
    endpoint.onOpen = answer
    const socket = new LongPollSocket(endpoint.url)
    const error = next(socket, 'error')
    t.match(await next(socket, 'close'), { code: 1006, wasClean: false })
    await error
  }
  t.equal(endpoint.posts.length, 4, 'each was tried once')
})

t.test('closing tells the server, behind what was sent before', async t => {
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

t.test('closed while opening: error, 1006, and the server is told if it has opened', async t => {
  const endpoint = await FakeEndpoint.start(t)
  endpoint.onOpen = () => {}
  const socket = new LongPollSocket(endpoint.url)
  socket.onopen = () => t.fail('it has not opened')
  await endpoint.some(() => true)
  socket.close()
  t.match(await next(socket, 'close'), { code: 1006 })
})

t.test('messages that the server refuses for their length', async t => {
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
  t.same(taken, ['1:1', '2:2', '3:3', '4:4'], 'one by one they pass')
  socket.send('too long')
  t.match(await next(socket, 'close'), { code: 1009, reason: 'message size limit' })
  await endpoint.some(post => post.query.has('close'))
  const tries = endpoint.posts.filter(post => String(post.body) === 'too long')
  t.equal(tries.length, 1, 'it is not repeated, and the session is closed')
})

t.test('binary messages', async t => {
  const endpoint = await FakeEndpoint.start(t)
  let tries = 0
  endpoint.onPoll = post => {
    if (++tries < 3) post.reply(200, { 'Halley-Seq': `${tries}` }, Buffer.from([tries, 0, 255]))
  }
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
  t.same([...body], [1, 2, 9, 9, 4], 'as they were when they were sent')
})
