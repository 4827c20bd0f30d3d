import { once } from 'node:events'
import http from 'node:http'
import { turn } from '../../../kit/wait.js'
import { dechunk, get, open, post, RawClient, StreamRecorder, serve, streams } from './rig.js'

/** Conformance of streams; their slow readers are in slow-streams.js. */
export function streamConformance(t, driver) {
  t.test('a stream has status, headers and session, and stays open until `end`', async t => {
    const recorder = new StreamRecorder()
    const { server, port } = await serve(t, driver, server => {
      server.route('GET', '/made', exchange => {
        const headers = { 'X-A': 'b', 'Content-Type': 'text/event-stream' }
        const stream = exchange.stream(201, headers, recorder.route)
        t.equal(stream.session, null)
        stream.session = { belongs: 'to the transport' }
        t.ok(exchange.gone, 'later replies are ignored')
        exchange.reply(500, null, 'no')
        t.equal(exchange.stream(200, null, recorder.route), null)
        server.write(stream, 'one ')
        recorder.put('stream', stream)
      })
    })
    const request = http.get({ port, host: '127.0.0.1', path: '/made' })
    const [response] = await once(request, 'response')
    t.equal(response.statusCode, 201)
    const head = { 'x-a': 'b', 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }
    t.match(response.headers, head)
    const stream = await recorder.next('stream')
    response.setEncoding('utf8')
    t.equal((await once(response, 'data'))[0], 'one ')
    for (const data of [Buffer.from('two '), 'thrée']) {
      server.write(stream, data)
      t.equal((await once(response, 'data'))[0], data.toString())
    }
    t.equal(recorder.count('close'), 0)
    const ended = once(response, 'end')
    server.end(stream, ' end')
    t.equal((await once(response, 'data'))[0], ' end')
    await ended
    t.equal(await recorder.next('close'), stream)
    t.same(stream.session, { belongs: 'to the transport' })
  })

  t.test('flush sends pending writes as a separate chunk', async t => {
    const rig = await streams(t, driver, {}, (stream, server) => {
      server.write(stream, 'first ')
      server.write(stream, 'things ')
      server.flush(stream)
      server.flush(stream)
      server.write(stream, 'then ')
      server.write(stream, 'the rest')
    })
    const { client } = await open(t, rig)
    await client.until('the rest')
    t.same(dechunk(client).body.map(String), ['first things ', 'then the rest'])
  })

  t.test('a stream may start after the handler has returned, and after a request body', async t => {
    const recorder = new StreamRecorder()
    const { url } = await serve(t, driver, server => {
      server.route('POST', '/now', exchange => {
        exchange.body(100, body => {
          server.end(exchange.stream(200, null, recorder.route), `got ${body}`)
        })
      })
      server.route('GET', '/later', exchange => {
        setImmediate(() => {
          const stream = exchange.stream(200, null, recorder.route)
          server.write(stream, 'much ')
          setImmediate(() => server.end(stream, 'later'))
        })
      })
    })
    t.equal(await (await fetch(`${url}/now`, { method: 'POST', body: 'this' })).text(), 'got this')
    t.equal(await (await fetch(`${url}/later`)).text(), 'much later')
    await recorder.take('close', 2)
  })

  t.test('the writes of one turn of the event loop are one chunk', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    rig.server.write(stream, 'one')
    rig.server.write(stream, Buffer.from('two'))
    rig.server.write(stream, '')
    rig.server.write(stream, 'dreï')
    await client.until('dre')
    rig.server.write(stream, 'four')
    rig.server.write(stream, 'five')
    await client.until('five')
    t.same(dechunk(client).body.map(String), ['onetwodreï', 'fourfive'])
  })

  t.test('writes after end are ignored, and the connection can have other streams', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    rig.server.write(stream, 'first words, ')
    await client.until('first words')
    rig.server.write(stream, 'last')
    rig.server.end(stream, ' words')
    rig.server.write(stream, 'too late')
    rig.server.end(stream, 'too late')
    await client.until('\r\n0\r\n\r\n')
    t.equal(await rig.recorder.next('close'), stream)
    rig.server.write(stream, 'too late')
    rig.server.end(stream, 'too late')
    rig.server.cut(stream)
    t.equal(dechunk(client).text, 'first words, last words')
    client.write(get('/stream'))
    const next = await rig.recorder.next('stream')
    rig.server.end(next, '')
    t.equal(await rig.recorder.next('close'), next, 'a stream without a body')
    client.write(get('/stream'))
    rig.server.end(await rig.recorder.next('stream'), 'again')
    await rig.recorder.next('close')
    t.equal(rig.recorder.count('close'), 3)
  })

  t.test('close is called once, and never inside write, end or cut', async t => {
    let calling = false
    const rig = await streams(t, driver, {
      close: stream => {
        t.notOk(calling)
        rig.recorder.put('close', stream)
      },
    })
    const { recorder } = rig
    for (const act of [
      stream => rig.server.end(stream, ''),
      stream => rig.server.end(stream, 'bye'),
      stream => rig.server.cut(stream),
      stream => {
        rig.server.end(stream, 'bye')
        rig.server.cut(stream)
      },
      stream => {
        rig.server.cut(stream)
        rig.server.end(stream, 'bye')
        rig.server.cut(stream)
      },
    ]) {
      const { stream } = await open(t, rig)
      calling = true
      rig.server.write(stream, 'something')
      act(stream)
      calling = false
      t.equal(await recorder.next('close'), stream)
    }
    const { client, stream } = await open(t, rig)
    client.socket.destroy()
    t.equal(await recorder.next('close'), stream, 'the client has disconnected')
    rig.server.write(stream, 'too late')
    rig.server.end(stream, 'too late')
    rig.server.cut(stream)
    await turn()
    await turn()
    t.equal(recorder.count('close'), 6)
  })

  t.test('cut ends the connection immediately and drops unsent bytes', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    rig.server.write(stream, 'received')
    await client.until('received')
    rig.server.write(stream, 'unsent')
    rig.server.cut(stream)
    await client.end()
    t.notMatch(client.text, 'unsent')
    t.notMatch(client.text, '\r\n0\r\n', 'no final chunk: the client sees that the response is incomplete')
    t.equal(await rig.recorder.next('close'), stream)
  })

  t.test('shutdown closes all streams', async t => {
    const rig = await streams(t, driver)
    const one = await open(t, rig)
    const two = await open(t, rig)
    rig.server.write(one.stream, 'one')
    await one.client.until('one')
    rig.server.write(one.stream, 'pending')
    rig.server.shutdown()
    t.same(new Set(await rig.recorder.take('close', 2)), new Set([one.stream, two.stream]))
    rig.server.write(two.stream, 'too late')
    await turn()
    await turn()
    t.equal(rig.recorder.count('close'), 2)
  })

  t.test('messages to many streams and to one stream do not interfere', async t => {
    const rig = await streams(t, driver)
    const all = []
    for (let i = 0; i < 20; i++) all.push(await open(t, rig))
    const bytes = Buffer.from('bytes ')
    for (const [i, { stream }] of all.entries()) {
      if (i % 3 === 0) rig.server.write(stream, `own ${i} `)
      rig.server.write(stream, 'téxt ')
      if (i % 2 === 0) rig.server.write(stream, bytes)
      if (i % 5 === 0) rig.server.write(stream, 'last ')
    }
    await turn()
    for (const { stream } of all) rig.server.end(stream, 'end')
    for (const [i, { client }] of all.entries()) {
      await client.until('\r\n0\r\n')
      const expected = `${i % 3 ? '' : `own ${i} `}téxt ${i % 2 ? '' : 'bytes '}${i % 5 ? '' : 'last '}end`
      t.equal(dechunk(client).text, expected)
    }
  })

  t.test('a HEAD request gets only the header of the stream', async t => {
    const rig = await streams(t, driver)
    const client = await RawClient.connect(t, rig.port)
    client.write(get('/stream').replace('GET', 'HEAD'))
    t.equal(await rig.recorder.next('stream'), null)
    t.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 200 OK\r\n/)
    client.write(get('/stream'))
    rig.server.end(await rig.recorder.next('stream'), 'a body')
    t.match(await client.until('a body'), /\r\n\r\nHTTP\/1\.1 200 OK/)
  })

  t.test('an HTTP/1.0 client gets no chunks, or is refused', async t => {
    const rig = await streams(t, driver, {}, (stream, server) => server.end(stream, 'plain'))
    const client = await RawClient.connect(t, rig.port)
    client.write('GET /stream HTTP/1.0\r\n\r\n')
    await client.end()
    t.notMatch(client.text, /chunked/i)
    t.ok(client.text.endsWith('\r\n\r\nplain') || /^HTTP\/1\.1 505/.test(client.text), client.text)
  })

  t.test('a pipelined request behind a stream does not affect other streams', async t => {
    const rig = await streams(t, driver)
    const other = await open(t, rig)
    const { client, stream } = await open(t, rig)
    rig.server.write(stream, 'first')
    await client.until('first')
    client.write(get('/stream') + get('/stream'))
    if (driver === 'uws') {
      t.equal(await rig.recorder.next('close'), stream, 'uws closes the connection')
    } else {
      await turn()
      t.equal(rig.recorder.count('stream'), 2, 'node starts it when the stream has ended')
      rig.server.end(stream, '')
      const second = await rig.recorder.next('stream')
      rig.server.end(second, 'second')
      await client.until('second')
      const third = await rig.recorder.next('stream')
      rig.server.write(third, 'third')
      await client.until('third')
      client.socket.destroy()
      t.same(await rig.recorder.take('close', 3), [stream, second, third])
    }
    rig.server.end(other.stream, 'undisturbed')
    await other.client.until('undisturbed')
  })

  t.test('requests pipelined behind a stream are dropped when the client leaves', async t => {
    const rig = await streams(t, driver)
    const { client, stream } = await open(t, rig)
    client.write(get('/stream').repeat(15))
    // uws has closed the connection.
    if (driver === 'node') client.socket.destroy()
    t.equal(await rig.recorder.next('close'), stream)
    rig.server.end(stream, 'too late')
    await turn()
    t.equal(rig.recorder.count('stream'), 1)
    t.equal(rig.recorder.count('close'), 1)
    t.equal(rig.server.unanswered, 0)
  })

  t.test('an error thrown after the start of a stream is logged, and the stream continues', async t => {
    const recorder = new StreamRecorder()
    const { port, logger, server } = await serve(t, driver, server => {
      server.route('POST', '/', exchange => {
        exchange.body(100, () => {
          const stream = exchange.stream(200, null, recorder.route)
          server.write(stream, 'before')
          recorder.put('stream', stream)
          throw new Error('behind')
        })
      })
    })
    const client = await RawClient.connect(t, port)
    client.write(post('/', 'x'))
    t.equal((await logger.next('error')).err.message, 'behind')
    await client.until('before')
    server.end(await recorder.next('stream'), 'after')
    await client.until('after')
    await recorder.next('close')
  })
}
