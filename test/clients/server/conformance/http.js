import { once } from 'node:events'
import http from 'node:http'
import { text } from 'node:stream/consumers'
import { turn, until } from '../../../kit/wait.js'
import { get, Inbox, post, RawClient, serve } from './rig.js'

/** Conformance of HTTP. */
export function httpConformance(t, driver) {
  t.test('a handler reads method, path, query, headers and address', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/look', exchange => {
        const { method, path, query } = exchange
        const headers = ['x-one', 'x-none'].map(name => exchange.header(name))
        const seen = [method, path, query, ...headers, exchange.remoteAddress()]
        exchange.reply(200, { 'Content-Type': 'application/json' }, JSON.stringify(seen))
      })
    })
    const response = await fetch(`${url}/look?a=%20b&c`, { headers: { 'X-One': 'Two' } })
    t.equal(response.headers.get('content-type'), 'application/json')
    t.same(await response.json(), ['GET', '/look', 'a=%20b&c', 'Two', '', '127.0.0.1'])
    t.same((await (await fetch(`${url}/look`)).json())[2], '')
  })

  t.test('the most specific path wins; on the same path, a method wins over *', async t => {
    const { url } = await serve(t, driver, server => {
      const say = word => exchange => exchange.reply(200, null, `${word} ${exchange.method} ${exchange.path}`)
      server.route('GET', '/*', say('all'))
      server.route('*', '/api', say('any'))
      server.route('POST', '/api', say('post'))
      server.route('GET', '/dir/*', say('dir'))
      server.route('GET', '/dir/file', say('file'))
    })
    for (const [request, handler] of [
      ['POST /api', 'post'],
      ['GET /api', 'any'],
      ['PUT /api', 'any'],
      ['PROPFIND /api', 'any'],
      ['GET /api/', 'all'],
      ['GET /dir/file', 'file'],
      ['GET /dir/file/', 'dir'],
      ['GET /dir/', 'dir'],
      ['GET /dir', 'all'],
      ['GET /', 'all'],
    ]) {
      const [method, path] = request.split(' ')
      t.equal(await (await fetch(url + path, { method })).text(), `${handler} ${request}`)
    }
  })

  t.test('a request without a route gets 404', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('POST', '/api', exchange => exchange.reply(200, null, ''))
    })
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/api'],
      ['POST', '/api/'],
      ['PROPFIND', '/api'],
    ]) {
      t.equal((await fetch(url + path, { method })).status, 404, `${method} ${path}`)
    }
  })

  t.test('a response has status, headers, body and Content-Length', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/text', exchange => exchange.reply(418, { 'X-A': 'b', 'X-C': 'd' }, 'für'))
      server.route('GET', '/bytes', exchange => exchange.reply(200, null, new Uint8Array([0, 255])))
      server.route('*', '/head', exchange => exchange.reply(200, null, 'four'))
      server.route('*', '/nothing', exchange => exchange.reply(204, { 'X-A': 'b' }, ''))
    })
    const response = await fetch(`${url}/text`)
    t.equal(response.status, 418)
    const headers = ['x-a', 'x-c', 'content-length'].map(name => response.headers.get(name))
    t.same(headers, ['b', 'd', '4'])
    t.equal(await response.text(), 'für')
    t.same([...new Uint8Array(await (await fetch(`${url}/bytes`)).arrayBuffer())], [0, 255])
    const head = await fetch(`${url}/head`, { method: 'HEAD' })
    t.equal(head.headers.get('content-length'), '4')
    t.equal(await head.text(), '')
    const nothing = await fetch(`${url}/nothing`)
    t.equal(nothing.status, 204)
    t.equal(nothing.headers.get('x-a'), 'b')
  })

  t.test('a large response arrives completely', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/big', exchange => exchange.reply(200, null, Buffer.alloc(8_000_000, 'b')))
    })
    t.equal((await (await fetch(`${url}/big`)).arrayBuffer()).byteLength, 8_000_000)
  })

  t.test('a response may be sent later; only the first one counts', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/later', exchange => {
        setImmediate(() => {
          exchange.reply(200, { 'X-A': 'b' }, 'first')
          exchange.reply(500, null, 'second')
          exchange.body(10, () => t.fail('a body after the response'))
          t.ok(exchange.gone)
        })
      })
    })
    const response = await fetch(`${url}/later`)
    t.equal(response.status, 200)
    t.equal(response.headers.get('x-a'), 'b')
    t.equal(await response.text(), 'first')
  })

  const echo = server => {
    server.route('POST', '/echo', exchange => {
      exchange.body(100_000, body => exchange.reply(body === null ? 413 : 200, null, body ?? 'too long'))
    })
    server.route('POST', '/late', exchange => {
      exchange.body(100, body => {
        const copy = String(body)
        setImmediate(() => exchange.reply(200, null, copy))
      })
    })
  }

  t.test('a body is collected from several packets and chunks', async t => {
    const { url, port } = await serve(t, driver, echo)
    const ask = async body => (await fetch(`${url}/echo`, { method: 'POST', body })).text()
    for (const body of ['hällo', '', 'x'.repeat(100_000)]) t.equal(await ask(body), body)
    const client = await RawClient.connect(t, port)
    client.write(post('/echo', 'abc').slice(0, -2))
    await turn()
    client.write('bc')
    t.match(await client.until('abc'), /200 OK/, 'in pieces')
    client.write('POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n')
    await turn()
    client.write('2\r\ngh\r\n0\r\n\r\n')
    t.match(await client.until('defgh'), /200 OK/, 'in chunks, on the same connection')
    t.equal(await (await fetch(`${url}/late`, { method: 'POST', body: 'late' })).text(), 'late')
  })

  t.test('an overlong body is null, and 413 reaches a client that is still sending', async t => {
    const { port } = await serve(t, driver, echo)
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const options = { port, host: '127.0.0.1', path: '/echo', method: 'POST', agent }
    const request = http.request(options)
    request.write(Buffer.alloc(200_000))
    const [response] = await once(request, 'response')
    t.equal(response.statusCode, 413)
    request.end(Buffer.alloc(3_000_000))
    t.equal(await text(response), 'too long')
    for (const size of [500_000, 10, 500_000]) {
      const request = http.request(options)
      request.end(Buffer.alloc(size))
      const [response] = await once(request, 'response')
      t.equal(response.statusCode, size > 100_000 ? 413 : 200, 'the connection stays usable')
      await text(response)
    }
  })

  t.test('pipelined requests are answered in order', async t => {
    const { port } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    client.write(post('/echo', 'one!') + post('/echo', 'two!') + post('/echo', 'three!'))
    t.match(await client.until('three!'), /one!.*two!.*three!/s)
  })

  t.test('after the client leaves, methods of the exchange do nothing', async t => {
    const inbox = new Inbox()
    const { port } = await serve(t, driver, server => {
      server.route('POST', '/wait', exchange => {
        exchange.body(100, () => t.fail('half a body'))
        inbox.put('exchange', exchange)
      })
      server.route('GET', '/wait', exchange => inbox.put('exchange', exchange))
    })
    for (const request of [post('/wait', 'abc').slice(0, -1), get('/wait')]) {
      const client = await RawClient.connect(t, port)
      client.write(request)
      const exchange = await inbox.next('exchange')
      t.notOk(exchange.gone)
      client.socket.destroy()
      await until(() => exchange.gone)
      exchange.reply(200, null, 'too late')
      exchange.body(100, () => t.fail('a body without a client'))
      t.type(exchange.remoteAddress(), 'string')
    }
  })

  t.test('the abandon callback is called once when the client leaves before the response', async t => {
    const inbox = new Inbox()
    const waiter = name => ({ abandoned: () => inbox.put('abandoned', name) })
    const { port } = await serve(t, driver, server => {
      server.route('*', '/wait', exchange => {
        exchange.waiter = waiter(exchange.query)
        inbox.put('exchange', exchange)
      })
      server.route('POST', '/body', exchange => {
        exchange.body(100, () => {
          exchange.waiter = waiter('body')
          inbox.put('exchange', exchange)
        })
      })
    })
    const ask = async request => {
      const client = await RawClient.connect(t, port)
      client.write(request)
      return { client, exchange: await inbox.next('exchange') }
    }
    const left = await ask(get('/wait?left'))
    const body = await ask(post('/body', 'abc'))
    const replaced = await ask(get('/wait?replaced'))
    replaced.exchange.waiter = waiter('second')
    const relieved = await ask(get('/wait?relieved'))
    relieved.exchange.waiter = null
    const answered = await ask(get('/wait?answered'))
    answered.exchange.reply(200, null, 'the answer')
    await answered.client.until('the answer')
    for (const { client } of [relieved, answered, left, body, replaced]) client.socket.destroy()
    t.same((await inbox.take('abandoned', 3)).sort(), ['body', 'left', 'second'])
    for (const { exchange } of [left, body, replaced, relieved, answered]) {
      t.ok(exchange.gone)
      exchange.reply(200, null, 'too late')
    }
    await ask(get('/wait?last'))
    t.equal(inbox.count('abandoned'), 3)
  })

  t.test('an exception in a handler gives 500 and is logged', async t => {
    const fail = message => {
      throw new Error(message)
    }
    const { url, logger } = await serve(t, driver, server => {
      server.route('GET', '/throw', () => fail('at once'))
      server.route('POST', '/throw', exchange => exchange.body(100, () => fail('with the body')))
      server.route('GET', '/well', exchange => exchange.reply(200, null, 'well'))
    })
    t.equal((await fetch(`${url}/throw`)).status, 500)
    t.equal((await logger.next('error')).err.message, 'at once')
    t.equal((await fetch(`${url}/throw`, { method: 'POST', body: 'x' })).status, 500)
    t.equal((await logger.next('error')).err.message, 'with the body')
    t.equal(await (await fetch(`${url}/well`)).text(), 'well')
  })

  t.test('an upgrade to another protocol is ignored', async t => {
    const { port } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    client.write(post('/echo', 'abc', offer).slice(0, -2))
    await turn()
    client.write('bc')
    t.match(await client.until('abc'), /200 OK/)
    client.write(get('/none', offer) + post('/echo', 'again'))
    t.match(await client.until('again'), /404 Not Found.*200 OK/s)
    client.write(post('/echo', 'last'))
    t.match(await client.until('last'), /200 OK/)
  })

  t.test('bytes that are not HTTP only end their own connection', async t => {
    const { port, url } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    client.write('\x16\x03\x01 this is TLS, or worse\r\n\r\n')
    await client.end()
    t.equal(await (await fetch(`${url}/echo`, { method: 'POST', body: 'fine' })).text(), 'fine')
  })
}
