import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { turn, until } from '../../../kit/wait.js'
import {
  clientFrame,
  dechunk,
  fill,
  get,
  open,
  post,
  RawClient,
  rawPair,
  StreamRecorder,
  serve,
  slowPair,
  streams,
} from './rig.js'

/** uWebSockets.js closes a response after 10 s of failed writes, and looks every 4 s. */
const LIBRARY_TIMEOUT = 14_000

/** Conformance for clients that are slow for seconds. Its tests run side by side, because they wait. */
export function slowClientConformance(t, driver) {
  t.jobs = 10

  t.test('a slow reader that has caught up is not disconnected', async t => {
    const rig = await streams(t, driver, { maxBuffered: 3_000_000 })
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    const count = await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
    await sleep(3000)
    const chunks = dechunk(client)
    client.socket.resume()
    await until(() => chunks.received >= 40_000 * count)
    await sleep(LIBRARY_TIMEOUT)
    t.equal(rig.recorder.count('close'), 0)
    rig.server.write(stream, 'still here')
    await once(client.socket, 'data')
    t.ok(chunks.text.endsWith('still here'))
  })

  t.test('a client that reads nothing is not disconnected below maxBuffered', async t => {
    const rig = await streams(t, driver, { maxBuffered: 30_000_000 })
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    for (let i = 0; i < 20_000; i++) {
      rig.server.write(stream, 'x'.repeat(1000))
      if (i % 10 === 0) await turn()
    }
    await sleep(LIBRARY_TIMEOUT)
    t.equal(rig.recorder.count('close'), 0)
    const chunks = dechunk(client)
    client.socket.resume()
    rig.server.end(stream, 'end')
    await until(() => chunks.ended)
    t.equal(chunks.text.length, 20_000_003)
    t.equal(await rig.recorder.next('close'), stream)
  })

  t.test('one message may exceed maxBuffered; the next ones count', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    await turn()
    const long = 'x'.repeat(12_000_000)
    rig.server.write(stream, long)
    for (let i = 0; i < 10; i++) {
      await turn()
      rig.server.write(stream, 'y'.repeat(1000))
    }
    const chunks = dechunk(client)
    client.socket.resume()
    await until(() => chunks.received >= long.length + 10_000)
    t.equal(rig.recorder.count('overflow'), 0)
    client.socket.pause()
    rig.server.write(stream, long)
    await turn()
    t.equal(rig.recorder.count('overflow'), 0)
    const count = await fill(rig.server, stream, rig.recorder, () => 'z'.repeat(20_000))
    t.ok(count * 20_000 > 1_000_000, `${count} messages`)
    rig.server.cut(stream)
    await rig.recorder.next('close')
  })

  t.test('a slow client gets its response; one that reads nothing is disconnected', async t => {
    const SIZE = 30_000_000
    const { port } = await serve(t, driver, server => {
      server.route('GET', '/large', exchange => exchange.reply(200, null, Buffer.alloc(SIZE)))
    })
    const received = [0, 0]
    const [idle, slow] = [await RawClient.connect(t, port), await RawClient.connect(t, port)]
    for (const [i, { socket }] of [idle, slow].entries()) {
      socket.removeAllListeners('data')
      socket.on('data', data => {
        received[i] += data.length
      })
      socket.write(get('/large'))
    }
    idle.socket.pause()
    for (let second = 0; second < 18; second++) {
      slow.socket.pause()
      await sleep(1000)
      slow.socket.resume()
      await turn()
    }
    idle.socket.resume()
    await idle.end()
    t.ok(received[0] < SIZE, `${received[0]} bytes were in the kernel`)
    await until(() => received[1] >= SIZE)
  })

  t.test('an idle stream stays open, also after a request body', async t => {
    const recorder = new StreamRecorder()
    const { server, port } = await serve(t, driver, server => {
      server.route('POST', '/', exchange => {
        exchange.body(100, body => {
          const stream = exchange.stream(200, null, recorder.route)
          if (String(body) === 'written') server.write(stream, 'started')
          recorder.put('stream', stream)
        })
      })
    })
    const clients = []
    for (const body of ['written', 'empty']) {
      const client = await RawClient.connect(t, port)
      client.write(post('/', body))
      clients.push({ client, stream: await recorder.next('stream') })
    }
    await sleep(LIBRARY_TIMEOUT)
    t.equal(recorder.count('close'), 0)
    for (const { client, stream } of clients) {
      server.write(stream, 'still here')
      await client.until('still here')
    }
  })

  t.test('a stream end that is read slowly but in time keeps the connection', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
    rig.server.end(stream, 'the end')
    // Of five seconds: a busy machine may wake this up late.
    await sleep(2000)
    t.equal(rig.recorder.count('close'), 0)
    const chunks = dechunk(client)
    client.socket.resume()
    await until(() => chunks.ended)
    t.equal(await rig.recorder.next('close'), stream)
    client.write(get('/stream'))
    const next = await rig.recorder.next('stream')
    await sleep(5000)
    rig.server.end(next, 'and more')
    await once(client.socket, 'data')
    t.equal(await rig.recorder.next('close'), next)
  })

  t.test('a client that does not read the end of a stream is disconnected', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
    const start = performance.now()
    rig.server.end(stream, 'the end')
    t.equal(await rig.recorder.next('close'), stream)
    const waited = performance.now() - start
    t.ok(waited > 4500, `after ${Math.round(waited)} ms`)
    const chunks = dechunk(client)
    client.socket.resume()
    await client.end()
    t.notOk(chunks.ended)
    t.equal(rig.recorder.count('close'), 1)
  })

  t.test('a peer that reads nothing is disconnected', async t => {
    const { server, recorder, client, connection } = await slowPair(t, driver)
    const start = performance.now()
    server.close(connection, 3008, 'slow')
    const { code } = await recorder.next('close')
    t.equal(code, 3008)
    const waited = performance.now() - start
    t.ok(waited > 4500, `after ${Math.round(waited)} ms`)
    client.socket.resume()
    t.equal((await client.next('close')).code, 1006)
    t.equal(recorder.count('close'), 1)
  })

  t.test('a peer that does not answer the close is disconnected', async t => {
    const { server, recorder, client, connection } = await rawPair(t, driver)
    server.close(connection, 3000, 'x')
    await client.until('\x88\x03\x0b\xb8x')
    // Data is refused when the server has closed the descriptor.
    const pump = setInterval(() => client.write(clientFrame(1, 'hello?')), 100)
    t.teardown(() => clearInterval(pump))
    await client.gone()
    t.equal((await recorder.next('close')).code, 3000)
    t.equal(recorder.count('message'), 0)
  })
}
