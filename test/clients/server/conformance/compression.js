import { randomBytes } from 'node:crypto'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { turn, until } from '../../../kit/wait.js'
import {
  clientFrame,
  connect,
  pair,
  RawClient,
  rawPair,
  sockets,
  untilOverflow,
  upgradeRequest,
} from './rig.js'

const compression = { level: 1, minSize: 100 }
const RSV1 = 0x40

const deflated = data => deflateRawSync(data, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
const inflated = data =>
  inflateRawSync(Buffer.concat([data, Buffer.from([0, 0, 0xff, 0xff])]), {
    finishFlush: constants.Z_SYNC_FLUSH,
  })

/** A masked frame of any size. */
function frame(first, data) {
  const head = Buffer.from([first, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeUInt32BE(data.length, 6)
  return Buffer.concat([head, data])
}

/** The next frame of the server. */
const nextFrame = client =>
  until(() => {
    const bytes = client.received
    const start = bytes[1] < 126 ? 2 : 4
    const end = start + (start === 2 ? bytes[1] : bytes.readUInt16BE(2))
    if (!(bytes.length >= end)) return null
    client.received = bytes.subarray(end)
    return { first: bytes[0], data: bytes.subarray(start, end) }
  }, 'a whole frame')

const offer = (text = 'permessage-deflate') => `Sec-WebSocket-Extensions: ${text}\r\n`

/** Conformance of permessage-deflate. */
export function compressionConformance(t, driver) {
  t.test('supported offers are accepted, others ignored', async t => {
    const { port } = await sockets(t, driver, { compression })
    for (const [offers, accepted] of /** @type {[string, boolean][]} */ ([
      ['permessage-deflate', true],
      ['permessage-deflate; client_max_window_bits', true],
      ['permessage-deflate; client_max_window_bits=10; client_no_context_takeover', true],
      ['permessage-deflate; client_max_window_bits="12"', true],
      ['permessage-deflate;server_no_context_takeover', true],
      ['permessage-deflate; server_max_window_bits=15', true],
      ['permessage-deflate; server_max_window_bits=9', false],
      ['permessage-deflate; server_max_window_bits=9, permessage-deflate', true],
      ['something-else, permessage-deflate', true],
      ['permessage-deflate; unheard_of', false],
      ['permessage-deflate; client_max_window_bits=200', false],
      ['permessage-deflate; client_max_window_bits; client_max_window_bits', false],
      ['permessage-deflate; server_no_context_takeover=1', false],
      ['x-webkit-deflate-frame', false],
      [';=,"', false],
      ['', false],
    ])) {
      const client = await RawClient.connect(t, port)
      client.write(upgradeRequest('/ws', offer(offers)))
      const answer = await client.until('\r\n\r\n')
      t.match(answer, /^HTTP\/1\.1 101 /)
      const extensions = /^sec-websocket-extensions: *(.*)$/im.exec(answer)?.[1].trim() ?? ''
      const both = 'client_no_context_takeover; permessage-deflate; server_no_context_takeover'
      t.equal(extensions.split('; ').sort().join('; '), accepted ? both : '', offers)
    }
  })

  t.test('without compression in the route, nothing is negotiated', async t => {
    for (const none of [null, undefined]) {
      const rig = await rawPair(t, driver, { compression: none }, offer())
      const { server, client, connection, recorder } = rig
      t.notMatch(client.head, /extensions/i)
      server.send(connection, 'x'.repeat(1000), false)
      t.same((await nextFrame(client)).first, 0x81)
      client.write(frame(0xc1, deflated('x'.repeat(1000))))
      await client.end()
      t.equal(recorder.count('message'), 0)
    }
  })

  t.test('messages of minSize or more are compressed, each separately', async t => {
    const { server, client, connection } = await rawPair(t, driver, { compression }, offer())
    server.subscribe(connection, 'topic')
    const text = 'a long tëxt '.repeat(20)
    for (const [send, first] of /** @type {any[][]} */ ([
      [data => server.send(connection, data, false), 0x81],
      [data => server.publish('topic', data, false), 0x81],
      [data => server.send(connection, Buffer.from(data), true), 0x82],
      [data => server.publish('topic', Buffer.from(data), true), 0x82],
    ])) {
      for (const data of [text, text, 'x'.repeat(100)]) {
        send(data)
        const got = await nextFrame(client)
        t.equal(got.first, first | RSV1)
        t.ok(got.data.length < data.length)
        t.equal(inflated(got.data).toString(), data)
      }
      for (const data of ['', 'x'.repeat(99)]) {
        send(data)
        const got = await nextFrame(client)
        t.equal(got.first, first)
        t.equal(got.data.toString(), data)
      }
    }
    server.ping(connection)
    t.same(await nextFrame(client), { first: 0x89, data: Buffer.alloc(0) })
    server.close(connection, 3000, '')
    t.equal((await nextFrame(client)).first, 0x88)
  })

  t.test('publications reach clients in order, with and without compression', async t => {
    const { server, port, recorder } = await sockets(t, driver, { compression })
    const clients = []
    for (const perMessageDeflate of [true, false, { threshold: 0 }, false]) {
      const client = await connect(t, port, '/ws', [], { perMessageDeflate })
      t.equal(client.socket.extensions !== '', perMessageDeflate !== false)
      server.subscribe(await recorder.opened(), 'topic')
      clients.push(client)
    }
    const sent = []
    for (let i = 0; i < 200; i++) {
      const size = [20, 99, 100, 700, 5000, 70_000][i % 6]
      // Some of them cannot be compressed.
      const text =
        i % 5 === 0 ? randomBytes(size).toString('latin1') : `${i} ${'words and words '.repeat(size / 16)}`
      sent.push(text)
      server.publish('topic', text, false)
      if (i % 9 === 0) await turn()
    }
    for (const client of clients) {
      const got = await client.take('message', sent.length)
      t.ok(got.every((text, i) => text === sent[i]))
    }
  })

  t.test('the caller may reuse data right after publish', async t => {
    const { server, client, connection } = await pair(t, driver, { compression })
    server.subscribe(connection, 'topic')
    const data = Buffer.alloc(1000, 'first ')
    server.publish('topic', data, true)
    data.fill('x')
    t.ok(String(await client.next('message')).startsWith('first first '))
  })

  t.test('compressed messages are received whole, as text or binary', async t => {
    const { client, recorder } = await rawPair(t, driver, { compression }, offer())
    const text = 'somé text, '.repeat(300)
    const half = deflated(text)
    client.write(
      Buffer.concat([
        frame(0xc1, half),
        clientFrame(1, 'plain'),
        frame(0xc2, deflated(Buffer.alloc(5000, 7))),
        frame(0x41, half.subarray(0, 10)),
        clientFrame(9, 'ping'),
        frame(0x80, half.subarray(10)),
        frame(0xc1, Buffer.from([0])),
        clientFrame(1, 'last'),
      ]),
    )
    const got = await recorder.take('message', 6)
    t.same(
      got.map(({ data, binary }) => (binary ? data.length : data.toString())),
      [text, 'plain', 5000, text, '', 'last'],
    )
  })

  t.test('maxMessage limits the decompressed size', async t => {
    const { port, recorder } = await sockets(t, driver, { compression, maxMessage: 70_000 })
    const client = await connect(t, port, '/ws', [], { perMessageDeflate: { threshold: 0 } })
    client.socket.send('x'.repeat(70_000))
    t.equal((await recorder.next('message')).data.length, 70_000)
    client.socket.send('x'.repeat(70_001))
    t.same(await client.next('close'), { code: 1009, reason: '' })
    t.equal((await recorder.next('close')).code, 1009)
    t.equal(recorder.count('message'), 1)
  })

  t.test('a decompression bomb only ends its own connection', async t => {
    const { port, recorder } = await sockets(t, driver, { compression })
    const other = await connect(t, port)
    const bomb = frame(0xc2, deflated(Buffer.alloc(60_000_000)))
    t.ok(bomb.length < 65_536, 'within maxMessage')
    const before = process.memoryUsage().rss
    for (let i = 0; i < 10; i++) {
      const client = await RawClient.upgraded(t, port, '/ws', offer())
      client.write(bomb)
      await client.end()
      // uWebSockets.js cuts the connection if a message is several times too long.
      t.equal((await recorder.next('close')).code, driver === 'uws' ? 1006 : 1009)
    }
    t.ok(process.memoryUsage().rss - before < 50_000_000)
    other.socket.send('still here')
    t.equal(String((await recorder.next('message')).data), 'still here')
  })

  t.test('invalid deflate data only ends its own connection', async t => {
    const { port, recorder } = await sockets(t, driver, { compression })
    const other = await connect(t, port)
    // Random bytes are valid deflate once in some hundred times; a block of the reserved type (binary 11) never is.
    const reserved = randomBytes(1000)
    reserved[0] |= 0b110
    for (const data of [Buffer.from('no deflate at all'), reserved, Buffer.alloc(100, 0xff)]) {
      const client = await RawClient.upgraded(t, port, '/ws', offer())
      client.write(frame(0xc1, data))
      await client.end()
      await recorder.next('close')
    }
    t.equal(recorder.count('message'), 0)
    other.socket.send('still here')
    t.equal(String((await recorder.next('message')).data), 'still here')
  })

  t.test('overflow counts compressed bytes', async t => {
    const { server, client, connection, recorder } = await pair(t, driver, { compression })
    server.subscribe(connection, 'topic')
    client.socket.pause()
    await untilOverflow(recorder, i => {
      server.publish('topic', randomBytes(50_000), true)
      if (i % 2) server.publish('topic', 'easily compressed '.repeat(1000), false)
    })
    t.equal((await recorder.next('overflow')).connection, connection)
    t.ok(server.buffered(connection) > 1024 * 1024)
  })
}
