import net from 'node:net'
import { buffer } from 'node:stream/consumers'
import { UpgradeRefusal } from '../../../../src/clients/server/contract.js'
import { turn, until } from '../../../kit/wait.js'
import {
  connect,
  dechunk,
  get,
  Inbox,
  open,
  pair,
  RawClient,
  Recorder,
  refusal,
  StreamRecorder,
  serve,
  slowPair,
  sockets,
  streams,
} from './rig.js'

/** One byte in Latin-1, two to four in UTF-8, half a pair, the end of a C string. */
const HALF = '\ud83d'
const CHARACTERS = ['é', 'ÿ', '€', '漢', '😀', HALF, '\0']
/** Alone, between others, and longer than the text that is encoded in place. */
const TEXTS = CHARACTERS.flatMap(one => [one, `a${one}b`, `${one}x`.repeat(3000)])
/** As it arrives: half a pair has no UTF-8. */
const arrives = text => Buffer.from(text).toString()
/** With a character for each byte. */
const inBytes = text => Buffer.from(text).toString('latin1')
const show = text => JSON.stringify(text.slice(0, 5))

/** A whole response, as bytes. */
async function ask(t, port, request) {
  const socket = net.connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.end(Buffer.from(request, 'latin1'))
  const answer = await buffer(socket)
  const end = answer.indexOf('\r\n\r\n')
  return { head: answer.toString('latin1', 0, end), body: answer.subarray(end + 4) }
}

/** Conformance of all text that is passed to a library or comes from it. */
export function textConformance(t, driver) {
  t.test('the text of a response is sent as UTF-8', async t => {
    let text = ''
    const { url } = await serve(t, driver, server => {
      server.route('*', '/now', exchange => exchange.reply(200, null, text))
      server.route('POST', '/later', exchange => {
        exchange.body(10, () => setImmediate(() => exchange.reply(404, null, text)))
      })
    })
    for (text of TEXTS) {
      const bytes = Buffer.from(text)
      const now = await fetch(`${url}/now`)
      t.ok(Buffer.from(await now.arrayBuffer()).equals(bytes), show(text))
      t.equal(now.headers.get('content-length'), String(bytes.length))
      const head = await fetch(`${url}/now`, { method: 'HEAD' })
      t.equal(head.headers.get('content-length'), String(bytes.length), `HEAD, ${show(text)}`)
      const later = await fetch(`${url}/later`, { method: 'POST' })
      t.ok(Buffer.from(await later.arrayBuffer()).equals(bytes), `later, ${show(text)}`)
    }
  })

  t.test('the text of streams is sent as UTF-8', async t => {
    const rig = await streams(t, driver)
    const { server } = rig
    const clients = [await open(t, rig), await open(t, rig)]
    const [one, other] = clients.map(({ stream }) => stream)
    const received = clients.map(({ client }) => dechunk(client))
    let expected = ''
    for (const [i, text] of TEXTS.entries()) {
      expected += arrives(text)
      // A text for one stream and a text for several are converted in different places.
      server.write(one, text)
      if (i % 2 === 0) server.flush(one)
      server.write(other, text)
      await turn()
    }
    for (const stream of [one, other]) server.end(stream, 'Ende, für €')
    for (const stream of received) await until(() => stream.ended)
    for (const { text } of received) t.ok(text === `${expected}Ende, für €`)
  })

  t.test('the text of messages is sent as UTF-8, on topics of any name', async t => {
    for (const compression of [null, { level: 1, minSize: 1000 }]) {
      const { server, client, connection } = await pair(t, driver, { compression })
      for (const text of TEXTS) {
        server.subscribe(connection, text)
        server.send(connection, text, false)
        server.publish(text, text, false)
        server.publish(text, Buffer.from(text), false)
        for (let i = 0; i < 3; i++) t.ok((await client.next('message')) === arrives(text), show(text))
        server.unsubscribe(connection, text)
        server.publish(text, 'not for you', false)
      }
      server.send(connection, 'end', false)
      t.equal(await client.next('message'), 'end')
    }
  })

  t.test('topics with similar encodings are different', async t => {
    const { server, client, connection } = await pair(t, driver)
    // The second has the lowest byte of the first, the third is the UTF-8 of the first read as Latin-1.
    const topics = ['é', '仩', 'Ã©', 'e', 'é'.repeat(200), 'é'.repeat(201)]
    for (const topic of topics.slice(1)) server.subscribe(connection, topic)
    server.publish('é', 'wrong', false)
    for (const topic of topics.slice(1)) server.publish(topic, topic, false)
    t.same(await client.take('message', topics.length - 1), topics.slice(1))
  })

  t.test('closing a connection with unread messages leaves its topics, whatever their names', async t => {
    const { server, client, connection } = await slowPair(t, driver)
    for (const topic of CHARACTERS) server.subscribe(connection, topic)
    server.close(connection, 3008, 'slow')
    for (const topic of CHARACTERS) server.publish(topic, 'not for you', false)
    client.socket.resume()
    t.same(await client.next('close'), { code: 3008, reason: 'slow' })
    t.equal(client.count('message'), 50)
  })

  t.test('a close reason is sent as UTF-8, cut to 123 bytes between characters', async t => {
    const { server, port, recorder } = await sockets(t, driver)
    for (const one of CHARACTERS) {
      for (const text of [one, `a${one}b`, one.repeat(200), `xx${one.repeat(200)}`]) {
        // Half a pair at the end is cut, too.
        if (one === HALF && text.length > 3) continue
        const client = await connect(t, port)
        server.close(await recorder.opened(), 4000, text)
        const most = Math.floor((123 - Buffer.byteLength(text.replaceAll(one, ''))) / Buffer.byteLength(one))
        const expected = text.length > 100 ? text.slice(0, text.indexOf(one)) + one.repeat(most) : text
        t.same(await client.next('close'), { code: 4000, reason: arrives(expected) }, show(text))
        await recorder.next('close')
      }
    }
    const slow = await slowPair(t, driver)
    slow.server.close(slow.connection, 4000, '€'.repeat(100))
    slow.client.socket.resume()
    t.same(await slow.client.next('close'), { code: 4000, reason: '€'.repeat(41) }, 'with unread messages')
  })

  t.test('the text of header values is sent as UTF-8', async t => {
    let value = ''
    const { port } = await serve(t, driver, server => {
      server.route('GET', '/now', exchange => exchange.reply(200, { 'X-Text': value }, ''))
      server.route('GET', '/stream', exchange => {
        const stream = exchange.stream(200, { 'X-Text': value }, new StreamRecorder().route)
        if (stream !== null) server.end(stream, 'end')
      })
    })
    for (value of ['é', 'aÿb', '€', '漢x', '😀', 'a\tb', 'é'.repeat(300)]) {
      for (const path of ['/now', '/stream']) {
        const { head } = await ask(t, port, get(path, 'Connection: close\r\n'))
        t.equal(/^X-Text: (.*)$/m.exec(head)?.[1], inBytes(value), `${path} ${show(value)}`)
      }
    }
  })

  t.test('an invalid response header gives 500 and is logged', async t => {
    let headers = {}
    const upgrade = () => new UpgradeRefusal(403, /** @type {any} */ (headers), 'no')
    const { port, url, logger } = await serve(t, driver, server => {
      server.route('*', '/now', exchange => exchange.reply(200, headers, 'secret'))
      server.route('POST', '/later', exchange => {
        exchange.body(10, () => setImmediate(() => exchange.reply(200, headers, 'secret')))
      })
      server.route('GET', '/stream', exchange => {
        const stream = exchange.stream(200, headers, new StreamRecorder().route)
        if (stream !== null) server.end(stream, 'secret')
      })
      server.websocket('/ws', new Recorder({ upgrade }).route)
    })
    for (headers of [
      { 'X-Text': 'a\r\nX-Other: b' },
      { 'X-Text': 'a\nb' },
      { 'X-Text': 'a\0b' },
      { 'X-Text': '\x7f' },
      { 'X Text': 'a' },
      { 'X-Text\r\nX-Other': 'a' },
      { 'X-Été': 'a' },
      { '': 'a' },
    ]) {
      const before = logger.count('error')
      for (const [method, path] of [
        ['GET', '/now'],
        ['HEAD', '/now'],
        ['POST', '/later'],
        ['GET', '/stream'],
      ]) {
        const length = method === 'POST' ? 'Content-Length: 0\r\n' : ''
        const request = `${method} ${path} HTTP/1.1\r\nHost: here\r\n${length}Connection: close\r\n\r\n`
        const { head, body } = await ask(t, port, request)
        t.match(head, /^HTTP\/1\.1 500 /, `${method} ${path} ${JSON.stringify(headers)}`)
        t.notMatch(head, /x-/i)
        t.equal(body.length, 0)
      }
      t.equal(await refusal(port, '/ws'), 500)
      t.equal(logger.count('error') - before, 5)
    }
    headers = { 'X-Text': 'well' }
    t.equal((await fetch(`${url}/now`)).headers.get('x-text'), 'well')
  })

  t.test('values of request headers have one character per byte', async t => {
    const seen = new Inbox()
    const { port } = await serve(t, driver, server => {
      server.route('GET', '/', exchange => {
        const lines = exchange.headers()
        const values = lines.filter((_, i) => i % 2 === 1 && lines[i - 1] === 'x-text')
        seen.put('header', [exchange.header('x-text'), ...values])
        exchange.reply(200, null, '')
      })
    })
    const rows = CHARACTERS.filter(one => one !== '\0').map(one => inBytes(`a${one}b`))
    // uws drops bytes at both ends.
    const ends = driver === 'uws' ? [] : [inBytes('José')]
    for (const value of [...rows, 'a\xe9\xffb', 'a\x80b', ...ends]) {
      await ask(t, port, get('/', `X-Text: ${value}\r\nConnection: close\r\n`))
      t.same(await seen.next('header'), [value, value])
    }
    for (const second of rows) {
      await ask(t, port, get('/', `X-Text: first\r\nX-Text: ${second}\r\nConnection: close\r\n`))
      t.same((await seen.next('header')).slice(1), ['first', second], 'repeated')
    }
    const client = await RawClient.connect(t, port)
    client.write(get('/', 'X-Text: a\0b\r\n'))
    await turn()
    const before = seen.count('header')
    await ask(t, port, get('/', 'X-Text: end\r\nConnection: close\r\n'))
    t.same((await seen.next('header'))[0], 'end')
    t.equal(seen.count('header'), before + 1, 'NUL is refused')
  })

  t.test('a request target with non-ASCII bytes is refused or read as UTF-8', async t => {
    const seen = new Inbox()
    const { port } = await serve(t, driver, server => {
      server.route('GET', '/dir/*', exchange => {
        seen.put('target', [exchange.path, exchange.query])
        exchange.reply(200, null, '')
      })
    })
    for (const one of CHARACTERS.filter(one => one !== '\0')) {
      const target = inBytes(`/dir/${one}?a=${one}`)
      const { head } = await ask(t, port, get(target, 'Connection: close\r\n'))
      if (driver === 'node') t.match(head, /^HTTP\/1\.1 400 /)
      else t.same(await seen.next('target'), [`/dir/${arrives(one)}`, `a=${arrives(one)}`])
    }
    await ask(t, port, get('/dir/%C3%A9?%E2%82%AC', 'Connection: close\r\n'))
    t.same(await seen.next('target'), ['/dir/%C3%A9', '%E2%82%AC'], 'escapes are not decoded')
  })

  t.test('bodies, messages and close reasons of clients are bytes; text is UTF-8', async t => {
    const recorder = new Recorder()
    const { port, url } = await serve(t, driver, server => {
      server.websocket('/ws', recorder.route)
      server.route('POST', '/echo', exchange =>
        exchange.body(100_000, body => exchange.reply(200, null, body ?? '')),
      )
    })
    const client = await connect(t, port)
    for (const text of TEXTS) {
      const echo = await fetch(`${url}/echo`, { method: 'POST', body: text })
      t.ok((await echo.text()) === arrives(text), show(text))
      client.socket.send(Buffer.from(text), { binary: false })
      const { data } = await recorder.next('message')
      t.ok(data.equals(Buffer.from(text)), `message ${show(text)}`)
    }
    for (const one of CHARACTERS) {
      const closing = await connect(t, port)
      closing.socket.close(4000, Buffer.from(`a${one}b`))
      t.equal((await recorder.next('close')).reason, arrives(`a${one}b`))
    }
  })
}
