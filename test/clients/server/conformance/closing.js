import { once } from 'node:events'
import { clientFrame, pair, RawClient, Recorder, serve } from './rig.js'

/** The contract's sentences about the ends of WebSockets. */
export function closingConformance(t, driver) {
  t.test('a close of the client is told with its code and reason', async t => {
    const { recorder, client, connection } = await pair(t, driver)
    client.socket.close(4000, 'jüst so')
    t.strictSame(await recorder.next('close'), { connection, code: 4000, reason: 'jüst so' })
    t.same(await client.next('close'), { code: 4000, reason: 'jüst so' }, 'echoed')
    t.equal(recorder.count('close'), 1)
  })

  t.test('a close without a code is 1005, a connection that breaks 1006', async t => {
    const { recorder, client } = await pair(t, driver)
    client.socket.close()
    t.equal((await recorder.next('close')).code, 1005)
    const second = await pair(t, driver)
    second.client.socket.terminate()
    t.equal((await second.recorder.next('close')).code, 1006)
  })

  t.test('a close of the server reaches the client, and is told once', async t => {
    const { server, recorder, client, connection } = await pair(t, driver)
    server.subscribe(connection, 'topic')
    server.publish('topic', 'before', false)
    server.send(connection, 'last', false)
    server.close(connection, 3001, 'shutdown')
    server.close(connection, 3002, 'again')
    t.same(await client.next('close'), { code: 3001, reason: 'shutdown' })
    t.same(await client.take('message', 2), ['before', 'last'])
    t.strictSame(await recorder.next('close'), { connection, code: 3001, reason: 'shutdown' })
    server.close(connection, 3003, 'and again')
    server.terminate(connection)
    t.equal(recorder.count('close'), 1)
  })

  t.test('a connection may be closed within open, message and pong', async t => {
    const parting = new Recorder({
      open: connection => {
        if (closeIn === 'open') server.close(connection, 3500, 'open')
      },
      message: connection => server.close(connection, 3500, 'message'),
      pong: connection => server.close(connection, 3500, 'pong'),
    })
    let closeIn = 'open'
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', parting.route))
    for (const [when, frame] of /** @type {any[][]} */ ([
      ['open', []],
      ['message', [clientFrame(1, 'one'), clientFrame(1, 'two')]],
      ['pong', [clientFrame(10, '')]],
    ])) {
      closeIn = when
      const client = await RawClient.upgraded(t, port)
      if (frame.length > 0) client.write(Buffer.concat(frame))
      t.ok(
        (await client.until(when)).endsWith(`\x88${String.fromCharCode(2 + when.length)}\x0d\xac${when}`),
        when,
      )
      client.write(clientFrame(8, Buffer.from([0x0d, 0xac])))
      await once(client.socket, 'end')
      client.socket.end()
      t.equal((await parting.next('close')).code, 3500)
    }
  })

  t.test('after close nothing more is sent, and nothing more is heard of it', async t => {
    const recorder = new Recorder()
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const client = await RawClient.upgraded(t, port)
    const connection = await recorder.opened()
    server.subscribe(connection, 'topic')
    server.close(connection, 3000, 'x')
    server.send(connection, 'sent', false)
    server.publish('topic', 'published', false)
    server.subscribe(connection, 'topic')
    server.publish('topic', 'published', false)
    server.ping(connection)
    server.cork(connection, () => server.send(connection, 'corked', false))
    server.unsubscribe(connection, 'topic')
    client.write(clientFrame(1, 'too late'))
    client.write(clientFrame(10, ''))
    client.write(clientFrame(8, Buffer.from([0x0b, 0xb8])))
    await once(client.socket, 'end')
    client.socket.end()
    await recorder.next('close')
    t.same(client.received, Buffer.from([0x88, 3, 0x0b, 0xb8, 0x78]))
    t.equal(recorder.count('message') + recorder.count('pong') + recorder.count('close'), 1)
    // And also when there is nothing left of it.
    server.send(connection, 'sent', false)
    server.ping(connection)
    server.subscribe(connection, 'topic')
    server.unsubscribe(connection, 'topic')
    server.publish('topic', 'published', false)
    server.cork(connection, () => server.send(connection, 'corked', false))
    t.equal(server.buffered(connection), 0)
  })

  t.test('close sends what is buffered first', async t => {
    const { server, recorder, client, connection } = await pair(t, driver, { maxBuffered: 100_000_000 })
    server.subscribe(connection, 'a')
    server.subscribe(connection, 'b')
    client.socket.pause()
    for (let i = 0; i < 50; i++) server.send(connection, `${i} ${'x'.repeat(200_000)}`, false)
    await new Promise(resolve => setImmediate(resolve))
    t.ok(server.buffered(connection) > 0)
    for (let i = 50; i < 100; i++) server.publish('ab'[i % 2], `${i} `, false)
    server.close(connection, 3008, 'slow')
    for (let i = 0; i < 100; i++) server.publish('ab'[i % 2], 'not for you', false)
    client.socket.resume()
    t.same(await client.next('close'), { code: 3008, reason: 'slow' })
    const got = await client.take('message', client.count('message'))
    t.same(
      got.map(text => Number(text.split(' ')[0])),
      Array.from({ length: 100 }, (_, i) => i),
    )
    t.equal((await recorder.next('close')).code, 3008)
  })

  t.test('a peer that leaves while it is being closed is told once, with the code asked for', async t => {
    const { server, recorder, client, connection } = await pair(t, driver, { maxBuffered: 100_000_000 })
    client.socket.pause()
    for (let i = 0; i < 50; i++) server.send(connection, Buffer.alloc(200_000), true)
    await new Promise(resolve => setImmediate(resolve))
    server.close(connection, 3008, 'slow')
    client.socket.terminate()
    t.strictSame(await recorder.next('close'), { connection, code: 3008, reason: 'slow' })
    t.equal(server.buffered(connection), 0)
  })

  t.test('terminate cuts without a close frame', async t => {
    const recorder = new Recorder()
    const { server, port } = await serve(t, driver, server => server.websocket('/ws', recorder.route))
    const client = await RawClient.upgraded(t, port)
    server.terminate(await recorder.opened())
    await once(client.socket, 'end')
    t.equal(client.text, '')
    t.equal((await recorder.next('close')).code, 1006)
  })
}
