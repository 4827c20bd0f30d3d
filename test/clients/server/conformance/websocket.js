import { once } from 'node:events'
import { turn, until } from '../../../kit/wait.js'
import {
  clientFrame,
  connect,
  Inbox,
  MAX_BUFFERED,
  pair,
  RawClient,
  rawPair,
  refusal,
  sockets,
  untilOverflow,
  upgradeRequest,
} from './rig.js'

/** Conformance of WebSockets that stay open. */
export function webSocketConformance(t, driver) {
  t.test('a request without an upgrade gets 400, an inexact path gets 404', async t => {
    const { url, port, recorder } = await sockets(t, driver)
    for (const method of ['GET', 'POST', 'HEAD'])
      t.equal((await fetch(`${url}/ws`, { method })).status, 400, method)
    t.equal((await fetch(`${url}/ws/`)).status, 404)
    t.equal(await refusal(port, '/ws/'), 404)
    t.equal(await refusal(port, '/'), 404)
    const client = await RawClient.connect(t, port)
    client.write(upgradeRequest('/ws').replace('dGhlIHNhbXBsZSBub25jZQ==', 'too short'))
    t.match(await client.until('\r\n\r\n'), /^HTTP\/1.1 400/)
    t.equal(recorder.count('open'), 0)
  })

  t.test('upgrade refuses with a status, or passes an object to open', async t => {
    const seen = new Inbox()
    const { port, logger, recorder } = await sockets(t, driver, {
      upgrade(exchange, protocol) {
        const { method, path, query } = exchange
        const [header, address] = [exchange.header('x-one'), exchange.remoteAddress()]
        seen.put('request', [method, path, query, header, address, protocol])
        if (query === 'throw') throw new Error('in upgrade')
        return query === '' ? { is: 'accepted' } : Number(query)
      },
    })
    t.equal(await refusal(port, '/ws?403'), 403)
    t.same(await seen.next('request'), ['GET', '/ws', '403', '', '127.0.0.1', ''])
    t.equal(await refusal(port, '/ws?503'), 503)
    t.equal(await refusal(port, '/ws?throw'), 500)
    t.equal((await logger.next('error')).err.message, 'in upgrade')
    t.equal(recorder.count('open'), 0)
    await RawClient.upgraded(t, port, '/ws', 'X-One: two\r\n')
    const { connection, accepted } = await recorder.next('open')
    t.same(accepted, { is: 'accepted' })
    t.equal(connection.session, null)
    connection.session = { belongs: 'to the transport' }
    t.same((await seen.take('request', 3))[2].slice(2), ['', 'two', '127.0.0.1', ''])
  })

  t.test('the first known subprotocol of the offer is selected', async t => {
    let chosen
    const { port } = await sockets(t, driver, {
      protocols: ['json', 'protobuf'],
      upgrade: (_exchange, protocol) => ({ accepted: (chosen = protocol) }),
    })
    for (const [header, expected] of [
      ['Sec-WebSocket-Protocol: json\r\n', 'json'],
      ['Sec-WebSocket-Protocol: protobuf, json\r\n', 'protobuf'],
      ['Sec-WebSocket-Protocol: other,json,protobuf\r\n', 'json'],
      ['Sec-WebSocket-Protocol: other\r\n', undefined],
      ['Sec-WebSocket-Protocol: \r\n', undefined],
      ['Sec-WebSocket-Protocol:\r\n', undefined],
      ['', undefined],
    ]) {
      const client = await RawClient.connect(t, port)
      client.write(upgradeRequest('/ws', header))
      const answer = await client.until('\r\n\r\n')
      t.match(answer, /^HTTP\/1\.1 101 /)
      t.equal(/^sec-websocket-protocol: *(.*)$/im.exec(answer)?.[1].trim(), expected, header)
      t.equal(chosen, expected ?? '')
    }
  })

  t.test('messages are received whole, as text or binary', async t => {
    const { recorder, client, connection } = await pair(t, driver)
    client.socket.send('tëxt')
    client.socket.send(Buffer.from([0, 255]))
    client.socket.send('')
    client.socket.send('in ', { fin: false })
    client.socket.send('pieces', { fin: true })
    const got = await recorder.take('message', 4)
    t.ok(got.every(message => message.connection === connection))
    t.same(
      got.map(({ data, binary }) => (binary ? [...data] : data.toString())),
      ['tëxt', [0, 255], '', 'in pieces'],
    )
  })

  t.test('a message of maxMessage bytes is accepted, a longer one closes with 1009', async t => {
    const { port, recorder } = await sockets(t, driver, { maxMessage: 70_000 })
    // Sizes of fragments.
    for (const sizes of [[70_001], [280_000], [60_000, 60_000], [70_000, 70_000, 70_000, 70_000]]) {
      const client = await connect(t, port)
      client.socket.send('x'.repeat(70_000))
      t.equal((await recorder.next('message')).data.length, 70_000)
      for (const [i, size] of sizes.entries())
        client.socket.send(Buffer.alloc(size), { fin: i === sizes.length - 1 })
      t.same(await client.next('close'), { code: 1009, reason: '' })
      t.match(await recorder.next('close'), { code: 1009, reason: '' })
    }
    t.equal(recorder.count('message'), 4)
  })

  t.test('the header of a message that is far too long ends the connection', async t => {
    const { client, recorder } = await rawPair(t, driver, { maxMessage: 70_000 })
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(280_001n, 2)
    client.write(head)
    // A close frame on node; uWebSockets.js cannot send one.
    await client.until('\x88').catch(() => {})
    client.socket.destroy()
    t.equal((await recorder.next('close')).code, 1009)
  })

  t.test('messages may have small fragments; node limits their number', async t => {
    const { client, recorder } = await rawPair(t, driver)
    const fragment = first => Buffer.concat([Buffer.from([first, 0x81, 0, 0, 0, 0]), Buffer.from('x')])
    const ping = clientFrame(9, 'in between')
    const pieces = Array.from({ length: 100 }, () => Buffer.concat([fragment(0x00), ping]))
    for (const piece of [fragment(0x01), ...pieces, fragment(0x80)]) {
      client.write(piece)
      await turn()
    }
    t.equal((await recorder.next('message')).data.toString(), 'x'.repeat(102))
    client.write(Buffer.concat([fragment(0x01), ...Array.from({ length: 1000 }, () => fragment(0x00))]))
    if (driver === 'node') {
      await client.until('\x88\x02\x03\xf0')
      client.socket.destroy()
      t.equal((await recorder.next('close')).code, 1008, 'ws would keep 200 bytes for each')
    } else {
      client.write(fragment(0x80))
      t.equal((await recorder.next('message')).data.length, 1002)
    }
  })

  t.test('text and bytes are sent unchanged', async t => {
    const { server, client, connection } = await pair(t, driver)
    server.subscribe(connection, 'topic')
    for (const size of [0, 1, 125, 126, 65_535, 65_536, 300_000]) {
      const text = 'ü'.repeat(size / 2) + 'x'.repeat(size % 2)
      server.send(connection, text, false)
      server.send(connection, Buffer.from(text), true)
      server.publish('topic', text, false)
      server.publish('topic', new Uint8Array(Buffer.from(text)), true)
      for (let i = 0; i < 2; i++) {
        t.ok((await client.next('message')) === text, `${size} bytes of text`)
        t.ok((await client.next('message')).equals(Buffer.from(text)), `${size} bytes`)
      }
    }
  })

  t.test('a publication reaches every subscriber', async t => {
    const { server, port, recorder, client, connection } = await pair(t, driver)
    const second = await connect(t, port)
    const other = await recorder.opened()
    server.subscribe(connection, 'topic')
    server.subscribe(connection, 'topic')
    server.subscribe(other, 'topic')
    server.publish('topic', 'one', false)
    server.unsubscribe(other, 'topic')
    server.unsubscribe(other, 'never joined')
    server.publish('topic', 'two', false)
    server.publish('nobody here', 'lost', false)
    server.subscribe(other, 'topic')
    server.publish('topic', 'three', false)
    server.send(other, 'end', false)
    t.same(await client.take('message', 3), ['one', 'two', 'three'])
    t.same(await second.take('message', 3), ['one', 'three', 'end'])
  })

  t.test('messages and publications arrive in order', async t => {
    const { server, client, connection } = await pair(t, driver)
    for (const topic of ['a', 'b', 'c']) server.subscribe(connection, topic)
    const expected = []
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 20; i++) {
        const text = `${expected.length} ${'x'.repeat((i * 7919) % 3000)}`
        expected.push(text)
        if (i % 4 === 3) server.send(connection, text, false)
        else server.publish('abc'[i % 4], text, false)
      }
      if (round % 3 === 0) await turn()
    }
    t.same(await client.take('message', expected.length), expected)
  })

  t.test('the caller may reuse data right after publish', async t => {
    const { server, client, connection } = await pair(t, driver)
    server.subscribe(connection, 'topic')
    const data = Buffer.from('first')
    server.publish('topic', data, true)
    data.write('xxxxx')
    t.equal(String(await client.next('message')), 'first')
  })

  t.test('messages within cork are sent in one write', async t => {
    const { server, client } = await rawPair(t, driver, {
      message: connection =>
        server.cork(connection, () => {
          for (let i = 0; i < 20; i++) server.send(connection, `message ${i}`, false)
        }),
    })
    client.write(clientFrame(1, 'go'))
    const [chunk] = await once(client.socket, 'data')
    t.ok(chunk.includes('message 0'))
    t.ok(chunk.includes('message 19'))
  })

  t.test('pings from both sides are answered', async t => {
    const { server, recorder, client, connection } = await pair(t, driver)
    client.socket.ping('are you there')
    t.equal(await client.next('pong'), 'are you there')
    server.ping(connection)
    await client.next('ping')
    t.equal((await recorder.next('pong')).connection, connection)
  })

  t.test('buffered counts unread bytes', async t => {
    const { server, recorder, client, connection } = await pair(t, driver, { maxBuffered: MAX_BUFFERED })
    t.equal(server.buffered(connection), 0)
    client.socket.pause()
    for (let i = 0; i < 100; i++) server.send(connection, Buffer.alloc(200_000), true)
    await turn()
    t.ok(server.buffered(connection) > 5_000_000, String(server.buffered(connection)))
    client.socket.resume()
    await client.take('message', 100)
    await until(() => server.buffered(connection) === 0)
    t.equal(recorder.count('overflow'), 0)
  })

  t.test('overflow is called only for the client that leaves too many publications unread', async t => {
    const { server, port, recorder, client, connection } = await pair(t, driver)
    const reader = await connect(t, port)
    const other = await recorder.opened()
    server.subscribe(connection, 'topic')
    server.subscribe(other, 'topic')
    client.socket.pause()
    const published = await untilOverflow(recorder, i =>
      server.publish('topic', `${i} ${'x'.repeat(50_000)}`, false),
    )
    t.equal((await recorder.next('overflow')).connection, connection)
    // No message was dropped before.
    t.ok(server.buffered(connection) > 1024 * 1024)
    server.close(connection, 3008, 'slow')
    for (let i = 0; i < published; i++) {
      if (!(await reader.next('message')).startsWith(`${i} `)) t.fail(`message ${i} is missing`)
    }
    client.socket.resume()
    t.same(await client.next('close'), { code: 3008, reason: 'slow' })
    t.equal(client.count('message'), published)
    t.equal((await recorder.next('close')).code, 3008)
  })

  t.test('overflow is called for a client that leaves too many messages or replies unread', async t => {
    const { server, port, recorder, client, connection } = await pair(t, driver, {
      message: sender => server.send(sender, 'y'.repeat(1000), false),
    })
    client.socket.pause()
    await untilOverflow(recorder, () => server.send(connection, 'x'.repeat(50_000), false))
    t.equal((await recorder.next('overflow')).connection, connection)
    server.terminate(connection)
    const sender = await RawClient.upgraded(t, port)
    sender.socket.pause()
    const flood = Buffer.concat(Array.from({ length: 100 }, () => clientFrame(1, 'more')))
    const overflowed = recorder.next('overflow')
    const pump = setInterval(() => sender.write(flood), 1)
    t.teardown(() => clearInterval(pump))
    t.equal((await overflowed).connection, await recorder.opened())
  })

  t.test('text that is not UTF-8 ends the connection', async t => {
    const { client, recorder } = await rawPair(t, driver)
    client.write(clientFrame(1, Buffer.from([0xff, 0xfe])))
    await client.end()
    await recorder.next('close')
    t.equal(recorder.count('message'), 0)
  })
}
