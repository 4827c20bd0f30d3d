import { turn } from '../../../kit/wait.js'
import { clientFrame, MAX_BUFFERED, pair, RawClient, rawPair, slowPair, sockets } from './rig.js'

/** Conformance tests for closing WebSockets. */
export function closingConformance(t, driver) {
  t.test('a close by the client is reported and echoed with its code and reason', async t => {
    const { recorder, client, connection } = await pair(t, driver)
    client.socket.close(4000, 'jüst so')
    t.strictSame(await recorder.next('close'), { connection, code: 4000, reason: 'jüst so' })
    t.same(await client.next('close'), { code: 4000, reason: 'jüst so' })
    t.equal(recorder.count('close'), 1)
  })

  for (const [end, code] of /** @type {const} */ ([
    ['close', 1005],
    ['terminate', 1006],
  ]))
    t.test(`a ${end} by the client is reported with code ${code}`, async t => {
      const { recorder, client } = await pair(t, driver)
      client.socket[end]()
      t.equal((await recorder.next('close')).code, code)
    })

  t.test('a close by the server follows earlier messages, and is reported once', async t => {
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

  t.test('a connection may be closed in the open, message and pong handlers', async t => {
    let closeIn = 'open'
    const close = event => connection => {
      if (closeIn === event) server.close(connection, 3500, event)
    }
    const { server, port, recorder } = await sockets(t, driver, {
      open: close('open'),
      message: close('message'),
      pong: close('pong'),
    })
    for (const [event, frames] of /** @type {[string, Buffer[]][]} */ ([
      ['open', []],
      ['message', [clientFrame(1, 'one'), clientFrame(1, 'two')]],
      ['pong', [clientFrame(10, '')]],
    ])) {
      closeIn = event
      const client = await RawClient.upgraded(t, port)
      client.write(Buffer.concat(frames))
      const text = await client.until(event)
      t.ok(text.endsWith(`\x88${String.fromCharCode(2 + event.length)}\x0d\xac${event}`), event)
      client.write(clientFrame(8, Buffer.from([0x0d, 0xac])))
      await client.end()
      t.equal((await recorder.next('close')).code, 3500)
    }
  })

  t.test('after close, nothing is sent and only the close is reported', async t => {
    const { server, recorder, client, connection } = await rawPair(t, driver)
    const useAll = () => {
      server.send(connection, 'sent', false)
      server.publish('topic', 'published', false)
      server.subscribe(connection, 'topic')
      server.publish('topic', 'published', false)
      server.ping(connection)
      server.cork(connection, () => server.send(connection, 'corked', false))
      server.unsubscribe(connection, 'topic')
    }
    server.subscribe(connection, 'topic')
    server.close(connection, 3000, 'x')
    useAll()
    client.write(clientFrame(1, 'too late'))
    client.write(clientFrame(10, ''))
    client.write(clientFrame(8, Buffer.from([0x0b, 0xb8])))
    await client.end()
    await recorder.next('close')
    t.same(client.received, Buffer.from([0x88, 3, 0x0b, 0xb8, 0x78]))
    t.equal(recorder.count('message') + recorder.count('pong') + recorder.count('close'), 1)
    useAll()
    t.equal(server.buffered(connection), 0)
  })

  t.test('close sends buffered messages first', async t => {
    const { server, recorder, client, connection } = await pair(t, driver, { maxBuffered: MAX_BUFFERED })
    server.subscribe(connection, 'a')
    server.subscribe(connection, 'b')
    client.socket.pause()
    for (let i = 0; i < 50; i++) server.send(connection, `${i} ${'x'.repeat(200_000)}`, false)
    await turn()
    t.ok(server.buffered(connection) > 0)
    for (let i = 50; i < 100; i++) server.publish('ab'[i % 2], `${i} `, false)
    server.close(connection, 3008, 'slow')
    for (let i = 0; i < 100; i++) server.publish('ab'[i % 2], 'not for you', false)
    client.socket.resume()
    t.same(await client.next('close'), { code: 3008, reason: 'slow' })
    const got = await client.take('message', client.count('message'))
    const numbers = got.map(text => Number(text.split(' ')[0]))
    t.same(numbers, [...Array(100).keys()])
    t.equal((await recorder.next('close')).code, 3008)
  })

  t.test('a peer that disconnects during a close is reported once, with the code of the server', async t => {
    const { server, recorder, client, connection } = await slowPair(t, driver)
    server.close(connection, 3008, 'slow')
    client.socket.terminate()
    t.strictSame(await recorder.next('close'), { connection, code: 3008, reason: 'slow' })
    t.equal(server.buffered(connection), 0)
  })

  t.test('terminate disconnects without a close frame', async t => {
    const { server, recorder, client, connection } = await rawPair(t, driver)
    server.terminate(connection)
    await client.end()
    t.equal(client.text, '')
    t.equal((await recorder.next('close')).code, 1006)
  })
}
