import { once } from 'node:events'
import { until } from '../../../kit/wait.js'
import {
  clientFrame,
  connect,
  Inbox,
  pair,
  RawClient,
  Recorder,
  refusal,
  serve,
  upgradeRequest,
} from './rig.js'

/** The contract's sentences about WebSockets that stay open. */
export function webSocketConformance(t, driver) {
  t.test('a request without an upgrade is answered with 400, a path that is not exact with 404', async t => {
    const recorder = new Recorder()
    const { url, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
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

  t.test('upgrade refuses with a status, or hands an object to open', async t => {
    const seen = new Inbox()
    const recorder = new Recorder({
      upgrade(exchange, protocol) {
        const { method, path, query } = exchange
        seen.put('request', [
          method,
          path,
          query,
          exchange.header('x-one'),
          exchange.remoteAddress(),
          protocol,
        ])
        if (query === 'throw') throw new Error('in upgrade')
        return query === '' ? { is: 'accepted' } : Number(query)
      },
    })
    const { port, logger } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
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

  t.test('the first subprotocol that is offered and known is chosen', async t => {
    const offered = []
    const recorder = new Recorder({
      protocols: ['json', 'protobuf'],
      upgrade(_exchange, protocol) {
        offered.push(protocol)
        return {}
      },
    })
    const { port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const rows = [
      ['Sec-WebSocket-Protocol: json\r\n', 'json'],
      ['Sec-WebSocket-Protocol: protobuf, json\r\n', 'protobuf'],
      ['Sec-WebSocket-Protocol: other,json,protobuf\r\n', 'json'],
      ['Sec-WebSocket-Protocol: other\r\n', ''],
      ['Sec-WebSocket-Protocol: \r\n', ''],
      ['Sec-WebSocket-Protocol:\r\n', ''],
      ['', ''],
    ]
    for (const [header, expected] of rows) {
      const client = await RawClient.connect(t, port)
      client.write(upgradeRequest('/ws', header))
      const answer = await client.until('\r\n\r\n')
      t.match(answer, /^HTTP\/1.1 101 /)
      t.equal(/^sec-websocket-protocol: *(.*)$/im.exec(answer)?.[1].trim() ?? '', expected, header)
      t.equal(/^sec-websocket-protocol/im.test(answer), expected !== '')
    }
    t.same(
      offered,
      rows.map(row => row[1]),
    )
  })

  t.test('messages come in whole, with their kind', async t => {
    const { recorder, client, connection } = await pair(t, driver)
    client.socket.send('tëxt')
    client.socket.send(Buffer.from([0, 255]))
    client.socket.send('')
    client.socket.send('in ', { fin: false })
    client.socket.send('pieces', { fin: true })
    const got = await recorder.take('message', 4)
    t.ok(got.every(message => message.connection === connection))
    t.same(
      got.map(({ data, binary }) => [binary, binary ? [...data] : data.toString()]),
      [
        [false, 'tëxt'],
        [true, [0, 255]],
        [false, ''],
        [false, 'in pieces'],
      ],
    )
  })

  t.test(
    'a message of maxMessage bytes passes, a longer one closes with 1009 and an empty reason',
    async t => {
      const { port, recorder } = await pair(t, driver, { maxMessage: 70_000 })
      for (const send of [
        socket => socket.send('x'.repeat(70_001)),
        socket => socket.send(Buffer.alloc(280_000)),
        socket => {
          socket.send(Buffer.alloc(60_000), { fin: false })
          socket.send(Buffer.alloc(60_000), { fin: true })
        },
        socket => {
          for (let i = 0; i < 4; i++) socket.send(Buffer.alloc(70_000), { fin: i === 3 })
        },
      ]) {
        const client = await connect(t, port)
        client.socket.send('x'.repeat(70_000))
        t.equal((await recorder.next('message')).data.length, 70_000)
        send(client.socket)
        t.same(await client.next('close'), { code: 1009, reason: '' })
        const { code, reason } = await recorder.next('close')
        t.same({ code, reason }, { code: 1009, reason: '' })
      }
      t.equal(recorder.count('message'), 4)
    },
  )

  t.test('a message announced as much too long ends the connection before it has come', async t => {
    const { port, recorder } = await pair(t, driver, { maxMessage: 70_000 })
    const client = await RawClient.upgraded(t, port)
    const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    head.writeBigUInt64BE(280_001n, 2)
    client.write(head)
    // A close frame on node; uWebSockets.js cannot send one.
    await client.until('\x88').catch(() => {})
    client.socket.destroy()
    t.equal((await recorder.next('close')).code, 1009)
  })

  t.test('a message in small pieces arrives, in very many it takes no memory', async t => {
    const { port, recorder } = await pair(t, driver)
    const client = await RawClient.upgraded(t, port)
    const fragment = (/** @type {number} */ first) =>
      Buffer.concat([Buffer.from([first, 0x81, 0, 0, 0, 0]), Buffer.from('x')])
    const ping = clientFrame(9, 'in between')
    const pieces = Array.from({ length: 100 }, () => Buffer.concat([fragment(0x00), ping]))
    for (const piece of [fragment(0x01), ...pieces, fragment(0x80)]) {
      client.write(piece)
      await new Promise(setImmediate)
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

  t.test('text and bytes go out as they are', async t => {
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

  t.test('what is published reaches every subscriber, until he leaves', async t => {
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

  t.test('everything arrives in the order it was sent and published in', async t => {
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
      if (round % 3 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    t.same(await client.take('message', expected.length), expected)
  })

  t.test('data may be reused by the caller right after publish', async t => {
    const { server, client, connection } = await pair(t, driver)
    server.subscribe(connection, 'topic')
    const data = Buffer.from('first')
    server.publish('topic', data, true)
    data.write('xxxxx')
    t.equal(String(await client.next('message')), 'first')
  })

  t.test('what is sent within cork leaves in one write', async t => {
    const recorder = new Recorder()
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const client = await RawClient.upgraded(t, port)
    const connection = await recorder.opened()
    server.cork(connection, () => {
      for (let i = 0; i < 20; i++) server.send(connection, `message ${i}`, false)
    })
    const [chunk] = await once(client.socket, 'data')
    t.ok(chunk.includes('message 0'))
    t.ok(chunk.includes('message 19'))
  })

  t.test('pings of both sides are answered', async t => {
    const { server, recorder, client, connection } = await pair(t, driver)
    client.socket.ping('are you there')
    t.equal(await client.next('pong'), 'are you there')
    server.ping(connection)
    await client.next('ping')
    t.equal((await recorder.next('pong')).connection, connection)
  })

  t.test('buffered counts what a peer leaves unread', async t => {
    const { server, recorder, client, connection } = await pair(t, driver, { maxBuffered: 100_000_000 })
    t.equal(server.buffered(connection), 0)
    client.socket.pause()
    for (let i = 0; i < 100; i++) server.send(connection, Buffer.alloc(200_000), true)
    await new Promise(resolve => setImmediate(resolve))
    t.ok(server.buffered(connection) > 5_000_000, String(server.buffered(connection)))
    client.socket.resume()
    await client.take('message', 100)
    await until(() => server.buffered(connection) === 0)
    t.equal(recorder.count('overflow'), 0)
  })

  t.test('whoever leaves too much of what is published unread overflows, and nobody else', async t => {
    const { server, port, recorder, client, connection } = await pair(t, driver)
    const reader = await connect(t, port)
    const other = await recorder.opened()
    server.subscribe(connection, 'topic')
    server.subscribe(other, 'topic')
    client.socket.pause()
    let published = 0
    const overflows = () => {
      if (recorder.count('overflow') > 0) return true
      server.publish('topic', `${published++} ${'x'.repeat(50_000)}`, false)
      return false
    }
    await until(overflows, 'overflow', { everyTurn: true })
    t.equal((await recorder.next('overflow')).connection, connection)
    // On the overflow, not after a dropped message: what the peer has not read is still complete.
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

  t.test('the same for what is sent to it, or asked for', async t => {
    const { server, port, recorder, client, connection } = await pair(t, driver, {
      message: asking => server.send(asking, 'y'.repeat(1000), false),
    })
    client.socket.pause()
    const overflows = () => {
      if (recorder.count('overflow') > 0) return true
      server.send(connection, 'x'.repeat(50_000), false)
      return false
    }
    await until(overflows, 'overflow', { everyTurn: true })
    t.equal((await recorder.next('overflow')).connection, connection)
    server.terminate(connection)
    const asker = await RawClient.upgraded(t, port)
    asker.socket.pause()
    const flood = Buffer.concat(Array.from({ length: 100 }, () => clientFrame(1, 'more')))
    const overflowed = recorder.next('overflow')
    const pump = setInterval(() => asker.write(flood), 1)
    t.teardown(() => clearInterval(pump))
    t.equal((await overflowed).connection, await recorder.opened())
  })

  t.test('text that is not UTF-8 ends the connection', async t => {
    const recorder = new Recorder()
    const { port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const client = await RawClient.upgraded(t, port)
    client.write(clientFrame(1, Buffer.from([0xff, 0xfe])))
    await once(client.socket, 'end')
    client.socket.end()
    await recorder.next('close')
    t.equal(recorder.count('message'), 0)
  })
}
