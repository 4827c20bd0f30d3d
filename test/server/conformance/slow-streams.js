import { once } from 'node:events'
import { post, RawClient, serve } from './rig.js'
import { dechunk, fill, get, left, open, StreamRecorder, streams, turn } from './streams-rig.js'

/** What the contract says of clients that are slow for seconds; side by side, because they wait. */
export function slowStreamConformance(t, driver) {
  t.jobs = 10

  t.test(
    'a slow reader gets every byte in order, in whole messages, and may then rest',
    { timeout: 60_000 },
    async t => {
      const rig = await streams(t, driver, { maxBuffered: 30_000_000 })
      const { client, stream } = await open(t, rig)
      client.socket.pause()
      const messages = []
      let written = 0
      // From a few bytes to more than any buffer of the library, in turns with one message and with many.
      for (let i = 0; written < 16_000_000; i++) {
        const size = i % 7 === 0 ? (i * 7919) % 90_000 : (i * 104_729) % 2000
        const message = `${i}:${'x'.repeat(size)}\n`
        messages.push(message)
        written += message.length
        rig.server.write(stream, i % 3 === 0 ? Buffer.from(message) : message)
        if (i % 4 === 0) await turn()
      }
      await new Promise(resolve => setTimeout(resolve, 3000))
      const chunks = dechunk(client)
      for (let i = 0; i < 10; i++) {
        client.socket.resume()
        await once(client.socket, 'data')
        client.socket.pause()
        rig.server.write(stream, `and ${i}\n`)
        messages.push(`and ${i}\n`)
        await new Promise(resolve => setTimeout(resolve, 20))
      }
      client.socket.resume()
      const total = Buffer.byteLength(messages.join(''))
      const received = () => chunks.sizes.reduce((sum, size) => sum + size, 0)
      while (received() < total) await once(client.socket, 'data')
      t.ok(chunks.text === messages.join(''))
      t.ok(
        chunks.body.every(chunk => chunk.at(-1) === 10),
        'no chunk ends within a message',
      )
      t.equal(rig.recorder.count('overflow') + rig.recorder.count('close'), 0)
      // The library's timeout for failed writes is 10 s.
      await new Promise(resolve => setTimeout(resolve, 13_000))
      t.equal(rig.recorder.count('close'), 0)
      rig.server.write(stream, 'still here')
      await once(client.socket, 'data')
      t.ok(chunks.text.endsWith('still here'))
    },
  )

  t.test('a client that reads nothing for long, but has not left too much, is not cut', async t => {
    const rig = await streams(t, driver, { maxBuffered: 30_000_000 })
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    for (let i = 0; i < 20_000; i++) {
      rig.server.write(stream, 'x'.repeat(1000))
      if (i % 10 === 0) await turn()
    }
    await new Promise(resolve => setTimeout(resolve, 14_000))
    t.equal(rig.recorder.count('close'), 0)
    const chunks = dechunk(client)
    client.socket.resume()
    rig.server.end(stream, 'end')
    while (!chunks.ended) await once(client.socket, 'data')
    t.equal(chunks.text.length, 20_000_003)
    t.equal(await rig.recorder.next('close'), stream)
  })

  t.test('a stream on which nothing happens stays, also one that began with a body', async t => {
    const recorder = new StreamRecorder()
    const { server, port } = await serve(t, driver, server => {
      server.route('POST', '/', exchange => {
        exchange.body(100, body => {
          const stream = exchange.stream(200, null, recorder.route)
          if (String(body) === 'written') server.write(stream, 'begun')
          recorder.put('stream', stream)
        })
      })
    })
    const clients = []
    for (const body of ['written', 'silent']) {
      const client = await RawClient.connect(t, port)
      client.write(post('/', body))
      clients.push({ client, stream: await recorder.next('stream') })
    }
    await new Promise(resolve => setTimeout(resolve, 13_000))
    t.equal(recorder.count('close'), 0)
    for (const { client, stream } of clients) {
      server.write(stream, 'still here')
      await client.until('still here')
    }
  })

  t.test('the end waits for a slow reader', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    const count = await fill(rig.server, stream, rig.recorder, i => `${i} ${'x'.repeat(40_000)}\n`)
    rig.server.write(stream, 'almost ')
    rig.server.end(stream, 'the end')
    await new Promise(resolve => setTimeout(resolve, 3000))
    t.equal(rig.recorder.count('close'), 0)
    const chunks = dechunk(client)
    client.socket.resume()
    while (!chunks.ended) await once(client.socket, 'data')
    t.ok(chunks.text.endsWith('\nalmost the end'))
    t.equal(chunks.text.split('\n').length, count + 1)
    t.equal(await rig.recorder.next('close'), stream)
    client.write(get('/stream'))
    rig.server.end(await rig.recorder.next('stream'), 'good for more')
    await once(client.socket, 'data')
    // The patience with the first is over; the connection is not.
    await new Promise(resolve => setTimeout(resolve, 4000))
    client.write(get('/stream'))
    rig.server.end(await rig.recorder.next('stream'), 'and more')
    await once(client.socket, 'data')
  })

  t.test('a client that does not read the end is cut off', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
    const start = performance.now()
    rig.server.end(stream, 'the end')
    t.equal(await rig.recorder.next('close'), stream)
    const waited = performance.now() - start
    t.ok(waited > 4500 && waited < 8000, `after ${Math.round(waited)} ms`)
    const chunks = dechunk(client)
    client.socket.resume()
    await left(client)
    t.notOk(chunks.ended)
    t.equal(rig.recorder.count('close'), 1)
  })

  t.test('a client that leaves with a backlog, also while its end waits, is told once', async t => {
    const rig = await streams(t, driver)
    for (const ending of [false, true]) {
      const { client, stream } = await open(t, rig)
      client.socket.pause()
      while (rig.recorder.count('overflow') === 0)
        await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
      if (ending) rig.server.end(stream, '')
      client.socket.destroy()
      t.equal(await rig.recorder.next('close'), stream)
      rig.server.write(stream, 'x')
    }
    await turn()
    t.equal(rig.recorder.count('close'), 2)
  })
}
