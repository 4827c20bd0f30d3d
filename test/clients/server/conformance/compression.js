import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { until } from '../../../kit/wait.js'
import { clientFrame, connect, pair, RawClient, Recorder, serve, upgradeRequest } from './rig.js'

const compression = { level: 1, minSize: 100 }
const RSV1 = 0x40

/** The data of a message, compressed by itself. */
const deflated = data => deflateRawSync(data, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
const inflated = data =>
  inflateRawSync(Buffer.concat([data, Buffer.from([0, 0, 0xff, 0xff])]), {
    finishFlush: constants.Z_SYNC_FLUSH,
  })

/** A masked frame of any size, with its first byte given. */
function frame(first, data) {
  const head = Buffer.from([first, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  head.writeUInt32BE(data.length, 6)
  return Buffer.concat([head, data])
}

/** The first frame of what the server has sent: {first, data}, or null. */
function unframe(bytes) {
  const short = bytes[1] < 126
  if (bytes.length < (short ? 2 : 4)) return null
  const length = short ? bytes[1] : bytes.readUInt16BE(2)
  const start = short ? 2 : 4
  if (bytes.length < start + length) return null
  return { first: bytes[0], data: bytes.subarray(start, start + length) }
}

async function nextFrame(client) {
  const found = await until(() => unframe(client.received), 'a whole frame')
  client.received = client.received.subarray(found.data.length + (found.data.length < 126 ? 2 : 4))
  return found
}

const offer = text => `Sec-WebSocket-Extensions: ${text}\r\n`

async function listening(t, driver, options = {}) {
  const recorder = new Recorder({ compression, ...options })
  const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
  return { server, port, recorder }
}

/** The contract's sentences about permessage-deflate. */
export function compressionConformance(t, driver) {
  t.test('what a client offers is accepted where it fits, and else ignored', async t => {
    const { port } = await listening(t, driver)
    for (const [offers, accepted] of [
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
    ]) {
      const client = await RawClient.connect(t, port)
      client.write(upgradeRequest('/ws', offer(offers)))
      const answer = await client.until('\r\n\r\n')
      t.match(answer, /^HTTP\/1\.1 101 /, offers)
      const extensions = /^sec-websocket-extensions: *(.*)$/im.exec(answer)?.[1].trim() ?? ''
      t.same(
        extensions.split('; ').sort(),
        accepted ? ['client_no_context_takeover', 'permessage-deflate', 'server_no_context_takeover'] : [''],
      )
    }
  })

  t.test('without compression in the route, nothing is negotiated', async t => {
    for (const none of [{ compression: null }, { compression: undefined }]) {
      const { server, port, recorder } = await listening(t, driver, none)
      const client = await RawClient.connect(t, port)
      client.write(upgradeRequest('/ws', offer('permessage-deflate')))
      t.notMatch(await client.until('\r\n\r\n'), /extensions/i)
      client.received = Buffer.alloc(0)
      server.send(await recorder.opened(), 'x'.repeat(1000), false)
      t.same((await nextFrame(client)).first, 0x81)
      client.write(frame(0xc1, deflated('x'.repeat(1000))))
      await once(client.socket, 'end')
      client.socket.end()
      t.equal(recorder.count('message'), 0)
    }
  })

  t.test('messages from minSize on go out compressed, each by itself', async t => {
    const { server, port, recorder } = await listening(t, driver)
    const client = await RawClient.upgraded(t, port, '/ws', offer('permessage-deflate'))
    const connection = await recorder.opened()
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

  t.test('each gets what it understands, in order', async t => {
    const { server, port, recorder } = await listening(t, driver)
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
      // What does not get shorter, too.
      const text =
        i % 5 === 0 ? randomBytes(size).toString('latin1') : `${i} ${'words and words '.repeat(size / 16)}`
      sent.push(text)
      server.publish('topic', text, false)
      if (i % 9 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    for (const client of clients) {
      const got = await client.take('message', sent.length)
      t.ok(got.every((text, i) => text === sent[i]))
    }
  })

  t.test('data may be reused by the caller right after publish', async t => {
    const { server, client, connection } = await pair(t, driver, { compression })
    server.subscribe(connection, 'topic')
    const data = Buffer.alloc(1000, 'first ')
    server.publish('topic', data, true)
    data.fill('x')
    t.ok(String(await client.next('message')).startsWith('first first '))
  })

  t.test('compressed messages come in whole, with their kind', async t => {
    const { port, recorder } = await listening(t, driver)
    const client = await RawClient.upgraded(t, port, '/ws', offer('permessage-deflate'))
    await recorder.opened()
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

  t.test('the limit of a message is that of its decompressed form', async t => {
    const { port, recorder } = await listening(t, driver, { maxMessage: 70_000 })
    const client = await connect(t, port, '/ws', [], { perMessageDeflate: { threshold: 0 } })
    client.socket.send('x'.repeat(70_000))
    t.equal((await recorder.next('message')).data.length, 70_000)
    client.socket.send('x'.repeat(70_001))
    t.same(await client.next('close'), { code: 1009, reason: '' })
    t.equal((await recorder.next('close')).code, 1009)
    t.equal(recorder.count('message'), 1)
  })

  t.test('a bomb ends its connection, takes no memory and disturbs nobody', async t => {
    const { port, recorder } = await listening(t, driver)
    const other = await connect(t, port)
    const bomb = frame(0xc2, deflated(Buffer.alloc(60_000_000)))
    t.ok(bomb.length < 65_536, 'as allowed as any message')
    const before = process.memoryUsage().rss
    for (let i = 0; i < 10; i++) {
      const client = await RawClient.upgraded(t, port, '/ws', offer('permessage-deflate'))
      client.write(bomb)
      await once(client.socket, 'end')
      client.socket.end()
      const { code } = await recorder.next('close')
      // uWebSockets.js cuts what is much too long.
      t.equal(code, driver === 'uws' ? 1006 : 1009)
    }
    t.ok(process.memoryUsage().rss - before < 50_000_000)
    other.socket.send('still here')
    t.equal(String((await recorder.next('message')).data), 'still here')
  })

  t.test('what is no deflate ends its connection, and only that', async t => {
    const { port, recorder } = await listening(t, driver)
    const other = await connect(t, port)
    // Random bytes are valid deflate once in some hundred times; a block of the reserved type (binary 11) never is.
    const reserved = randomBytes(1000)
    reserved[0] |= 0b110
    for (const data of [Buffer.from('no deflate at all'), reserved, Buffer.alloc(100, 0xff)]) {
      const client = await RawClient.upgraded(t, port, '/ws', offer('permessage-deflate'))
      client.write(frame(0xc1, data))
      await once(client.socket, 'end')
      client.socket.end()
      await recorder.next('close')
    }
    t.equal(recorder.count('message'), 0)
    other.socket.send('still here')
    t.equal(String((await recorder.next('message')).data), 'still here')
  })

  t.test('who leaves too much unread overflows, counted as it is sent', async t => {
    const { server, client, connection, recorder } = await pair(t, driver, { compression })
    server.subscribe(connection, 'topic')
    client.socket.pause()
    let published = 0
    const overflows = () => {
      server.publish('topic', randomBytes(50_000), true)
      if (published++ % 2) server.publish('topic', 'easily compressed '.repeat(1000), false)
      return recorder.count('overflow') > 0
    }
    await until(overflows, 'overflow', { everyTurn: true })
    t.equal((await recorder.next('overflow')).connection, connection)
    t.ok(server.buffered(connection) > 1024 * 1024)
  })
}
