import { once } from 'node:events'
import { turn, until } from '../../../kit/wait.js'
import { dechunk, fill, get, kernelBuffers, open, streams, untilOverflow } from './rig.js'

/** Conformance of streams whose clients read slowly: overflow, order, and the end of a stream with a backlog. */
export function slowStreamConformance(t, driver) {
  t.test('overflow is called only for the client that reads nothing', async t => {
    let writing = false
    const rig = await streams(t, driver, {
      overflow: stream => {
        t.notOk(writing, 'never inside write')
        rig.recorder.put('overflow', stream)
      },
    })
    const { recorder } = rig
    const slow = await open(t, rig)
    const reader = await open(t, rig)
    slow.client.socket.pause()
    const read = dechunk(reader.client)
    const written = await untilOverflow(recorder, i => {
      writing = true
      const message = `${i} ${'x'.repeat(i % 2 ? 500 : 20_000)}\n`
      rig.server.write(slow.stream, message)
      rig.server.write(reader.stream, message)
      writing = false
    })
    t.equal(await recorder.next('overflow'), slow.stream)
    // The unread bytes are complete, up to the message that caused the overflow.
    rig.server.end(slow.stream, 'slow\n')
    rig.server.end(reader.stream, 'fine\n')
    const unread = dechunk(slow.client)
    slow.client.socket.resume()
    await until(() => unread.ended && read.ended)
    for (const [chunks, last] of /** @type {any[][]} */ ([
      [read, 'fine'],
      [unread, 'slow'],
    ])) {
      const lines = chunks.text.split('\n')
      t.same(lines.splice(-2), [last, ''])
      t.equal(lines.length, written)
      t.ok(lines.every((line, i) => line.startsWith(`${i} x`)))
    }
    await recorder.take('close', 2)
    t.equal(recorder.count('overflow'), 1)
  })

  t.test('overflow is called at maxBuffered unread bytes', async t => {
    const maxBuffered = 3_000_000
    const rig = await streams(t, driver, { maxBuffered })
    const { client, stream } = await open(t, rig)
    const kernel = await kernelBuffers(t)
    client.socket.pause()
    const written = 1000 * (await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(1000)))
    t.ok(written > maxBuffered, `${written} bytes`)
    // The buffers of the kernel vary by 500 KB.
    t.ok(written < maxBuffered + kernel + 500_000, `${written} bytes, ${kernel} of them in the kernel`)
    rig.server.cut(stream)
    await rig.recorder.next('close')
    t.equal(rig.recorder.count('overflow'), 1)
  })

  t.test('overflow is also called for writes within one turn', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    await turn()
    for (let i = 0; i < 20_000; i++) rig.server.write(stream, 'x'.repeat(1000))
    t.equal(await rig.recorder.next('overflow'), stream)
    rig.server.cut(stream)
    await rig.recorder.next('close')
  })

  t.test('a slow reader gets every byte in order, in complete messages', async t => {
    const rig = await streams(t, driver, { maxBuffered: 30_000_000 })
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    const messages = []
    let written = 0
    // Sizes up to more than any buffer of uWebSockets.js, four messages in a turn of the event loop.
    for (let i = 0; written < 16_000_000; i++) {
      const size = i % 7 === 0 ? (i * 7919) % 90_000 : (i * 104_729) % 2000
      const message = `${i}:${'x'.repeat(size)}\n`
      messages.push(message)
      written += message.length
      rig.server.write(stream, i % 3 === 0 ? Buffer.from(message) : message)
      if (i % 4 === 0) await turn()
    }
    const chunks = dechunk(client)
    for (let i = 0; i < 10; i++) {
      client.socket.resume()
      await once(client.socket, 'data')
      client.socket.pause()
      rig.server.write(stream, `and ${i}\n`)
      messages.push(`and ${i}\n`)
    }
    rig.server.end(stream, 'the end\n')
    messages.push('the end\n')
    client.socket.resume()
    await until(() => chunks.ended)
    t.ok(chunks.text === messages.join(''))
    t.ok(
      chunks.body.every(chunk => chunk.at(-1) === 10),
      'no chunk ends within a message',
    )
    t.equal(await rig.recorder.next('close'), stream)
    t.equal(rig.recorder.count('overflow'), 0)
  })

  t.test('end waits for a slow reader, then the connection can have another stream', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.socket.pause()
    const count = await fill(rig.server, stream, rig.recorder, i => `${i} ${'x'.repeat(40_000)}\n`)
    rig.server.write(stream, 'almost ')
    rig.server.end(stream, 'the end')
    const other = await open(t, rig)
    rig.server.end(other.stream, 'of another')
    t.equal(await rig.recorder.next('close'), other.stream, 'the slow client is not closed yet')
    const chunks = dechunk(client)
    client.socket.resume()
    await until(() => chunks.ended)
    t.ok(chunks.text.endsWith('\nalmost the end'))
    t.equal(chunks.text.split('\n').length, count + 1)
    t.equal(await rig.recorder.next('close'), stream)
    client.write(get('/stream'))
    rig.server.end(await rig.recorder.next('stream'), 'good for more')
    await once(client.socket, 'data')
  })

  t.test('close is called once when a client leaves with a backlog, also after end', async t => {
    const rig = await streams(t, driver)
    for (const ending of [false, true]) {
      const { client, stream } = await open(t, rig)
      client.socket.pause()
      await fill(rig.server, stream, rig.recorder, () => 'x'.repeat(40_000))
      if (ending) rig.server.end(stream, '')
      client.socket.destroy()
      t.equal(await rig.recorder.next('close'), stream)
      rig.server.write(stream, 'x')
    }
    await turn()
    t.equal(rig.recorder.count('close'), 2)
    t.equal(rig.recorder.count('overflow'), 2, 'each had a backlog')
  })
}
