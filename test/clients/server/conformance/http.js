import { once } from 'node:events'
import http from 'node:http'
import { until } from '../../../kit/wait.js'
import { Inbox, post, RawClient, serve } from './rig.js'

/** The contract's sentences about HTTP. */
export function httpConformance(t, driver) {
  t.test('a handler reads method, path, query, headers and address', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/look', exchange => {
        const { method, path, query } = exchange
        const seen = [
          method,
          path,
          query,
          exchange.header('x-one'),
          exchange.header('x-none'),
          exchange.remoteAddress(),
        ]
        exchange.reply(200, { 'Content-Type': 'application/json' }, JSON.stringify(seen))
      })
    })
    const response = await fetch(`${url}/look?a=%20b&c`, { headers: { 'X-One': 'Two' } })
    t.equal(response.headers.get('content-type'), 'application/json')
    t.same(await response.json(), ['GET', '/look', 'a=%20b&c', 'Two', '', '127.0.0.1'])
    t.same((await (await fetch(`${url}/look`)).json())[2], '')
  })

  t.test('the most specific path wins, and on it an exact method over *', async t => {
    const { url } = await serve(t, driver, server => {
      const say = word => exchange => exchange.reply(200, null, `${word} ${exchange.method} ${exchange.path}`)
      server.route('GET', '/*', say('all'))
      server.route('*', '/api', say('any'))
      server.route('POST', '/api', say('post'))
      server.route('GET', '/dir/*', say('dir'))
      server.route('GET', '/dir/file', say('file'))
    })
    const ask = async (method, path) => (await fetch(url + path, { method })).text()
    t.equal(await ask('POST', '/api'), 'post POST /api')
    t.equal(await ask('GET', '/api'), 'any GET /api', 'an exact path, although GET /* has the exact method')
    t.equal(await ask('PUT', '/api'), 'any PUT /api')
    t.equal(await ask('PROPFIND', '/api'), 'any PROPFIND /api', 'a method nobody has heard of')
    t.equal(await ask('GET', '/api/'), 'all GET /api/')
    t.equal(await ask('GET', '/dir/file'), 'file GET /dir/file')
    t.equal(await ask('GET', '/dir/file/'), 'dir GET /dir/file/')
    t.equal(await ask('GET', '/dir/'), 'dir GET /dir/')
    t.equal(await ask('GET', '/dir'), 'all GET /dir')
    t.equal(await ask('GET', '/'), 'all GET /')
  })

  t.test('a path nobody serves is answered with 404, also for another method', async t => {
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

  t.test('an answer carries status, headers, body and Content-Length', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/text', exchange => exchange.reply(418, { 'X-A': 'b', 'X-C': 'd' }, 'für'))
      server.route('GET', '/bytes', exchange => exchange.reply(200, null, new Uint8Array([0, 255])))
      server.route('*', '/head', exchange => exchange.reply(200, null, 'four'))
      server.route('*', '/nothing', exchange => exchange.reply(204, { 'X-A': 'b' }, ''))
    })
    const text = await fetch(`${url}/text`)
    t.equal(text.status, 418)
    t.equal(text.headers.get('x-a'), 'b')
    t.equal(text.headers.get('x-c'), 'd')
    t.equal(text.headers.get('content-length'), '4')
    t.equal(await text.text(), 'für')
    t.same([...new Uint8Array(await (await fetch(`${url}/bytes`)).arrayBuffer())], [0, 255])
    const head = await fetch(`${url}/head`, { method: 'HEAD' })
    t.equal(head.headers.get('content-length'), '4')
    t.equal(await head.text(), '')
    const nothing = await fetch(`${url}/nothing`)
    t.equal(nothing.status, 204)
    t.equal(nothing.headers.get('x-a'), 'b')
  })

  t.test('a big answer arrives whole', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/big', exchange => exchange.reply(200, null, Buffer.alloc(8_000_000, 'b')))
    })
    t.equal((await (await fetch(`${url}/big`)).arrayBuffer()).byteLength, 8_000_000)
  })

  t.test('an answer may come later, and only the first counts', async t => {
    const { url } = await serve(t, driver, server => {
      server.route('GET', '/later', exchange => {
        setImmediate(() => {
          exchange.reply(200, { 'X-A': 'b' }, 'first')
          exchange.reply(500, null, 'second')
          exchange.body(10, () => t.fail('a body after the answer'))
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

  t.test('a body is collected, however it comes', async t => {
    const { url, port } = await serve(t, driver, echo)
    const ask = async body => (await fetch(`${url}/echo`, { method: 'POST', body })).text()
    t.equal(await ask('hällo'), 'hällo')
    t.equal(await ask(undefined), '', 'none')
    t.equal((await ask('x'.repeat(100_000))).length, 100_000, 'just not too long')
    const client = await RawClient.connect(t, port)
    client.write(post('/echo', 'abc').slice(0, -2))
    await new Promise(resolve => setImmediate(resolve))
    client.write('bc')
    t.match(await client.until('abc'), /200 OK/, 'in pieces')
    client.write('POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n')
    await new Promise(resolve => setImmediate(resolve))
    client.write('2\r\ngh\r\n0\r\n\r\n')
    t.match(await client.until('defgh'), /200 OK/, 'in chunks, on the same connection')
    t.equal(await (await fetch(`${url}/late`, { method: 'POST', body: 'late' })).text(), 'late')
  })

  t.test(
    'a body that is too long gives null, and the 413 reaches a client that is still sending',
    async t => {
      const { port } = await serve(t, driver, echo)
      const request = http.request({ port, host: '127.0.0.1', path: '/echo', method: 'POST' })
      request.write(Buffer.alloc(200_000))
      const [response] = await once(request, 'response')
      t.equal(response.statusCode, 413)
      request.end(Buffer.alloc(3_000_000))
      response.setEncoding('utf8')
      t.equal((await response.toArray()).join(''), 'too long')
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => agent.destroy())
      for (const size of [500_000, 10, 500_000]) {
        const request = http.request({ port, host: '127.0.0.1', path: '/echo', method: 'POST', agent })
        request.end(Buffer.alloc(size))
        const [response] = await once(request, 'response')
        t.equal(response.statusCode, size > 100_000 ? 413 : 200, 'the connection is good for more')
        response.resume()
        await once(response, 'end')
      }
    },
  )

  t.test('requests sent in one go are answered in order', async t => {
    const { port } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    client.write(post('/echo', 'one!') + post('/echo', 'two!') + post('/echo', 'three!'))
    const text = await client.until('three!')
    t.ok(text.indexOf('one!') < text.indexOf('two!') && text.indexOf('two!') < text.indexOf('three!'))
  })

  t.test('when the client leaves, the exchange is gone, and its methods do nothing', async t => {
    const inbox = new Inbox()
    const { port } = await serve(t, driver, server => {
      server.route('POST', '/wait', exchange => {
        exchange.body(100, () => t.fail('half a body is none'))
        inbox.put('exchange', exchange)
      })
      server.route('GET', '/wait', exchange => inbox.put('exchange', exchange))
    })
    for (const request of [post('/wait', 'abc').slice(0, -1), 'GET /wait HTTP/1.1\r\nHost: here\r\n\r\n']) {
      const client = await RawClient.connect(t, port)
      client.write(request)
      const exchange = await inbox.next('exchange')
      t.notOk(exchange.gone)
      client.socket.destroy()
      await until(() => exchange.gone)
      exchange.reply(200, null, 'nobody hears this')
      exchange.body(100, () => t.fail('nobody sends this'))
      t.type(exchange.remoteAddress(), 'string')
    }
  })

  t.test('whoever waits for the answer is told once when the client leaves without it', async t => {
    const inbox = new Inbox()
    class Waiter {
      constructor(name) {
        this.name = name
      }

      abandoned() {
        inbox.put('abandoned', this.name)
      }
    }
    const { port } = await serve(t, driver, server => {
      server.route('*', '/wait', exchange => {
        exchange.waiter = new Waiter(exchange.query)
        inbox.put('exchange', exchange)
      })
      server.route('POST', '/body', exchange => {
        exchange.body(100, () => {
          exchange.waiter = new Waiter('body')
          inbox.put('exchange', exchange)
        })
      })
    })
    const ask = async request => {
      const client = await RawClient.connect(t, port)
      client.write(request)
      return { client, exchange: await inbox.next('exchange') }
    }
    const get = query => `GET /wait?${query} HTTP/1.1\r\nHost: here\r\n\r\n`
    const left = await ask(get('left'))
    const body = await ask(post('/body', 'abc'))
    const replaced = await ask(get('replaced'))
    replaced.exchange.waiter = new Waiter('second')
    const relieved = await ask(get('relieved'))
    relieved.exchange.waiter = null
    const answered = await ask(get('answered'))
    answered.exchange.reply(200, null, 'the answer')
    await answered.client.until('the answer')
    for (const { client } of [relieved, answered, left, body, replaced]) client.socket.destroy()
    t.same((await inbox.take('abandoned', 3)).sort(), ['body', 'left', 'second'])
    for (const { exchange } of [left, body, replaced, relieved, answered]) {
      t.ok(exchange.gone)
      exchange.reply(200, null, 'too late')
    }
    await ask(get('last'))
    t.equal(inbox.count('abandoned'), 3)
  })

  t.test('a handler that throws is answered with 500 and logged, and nothing else happens', async t => {
    const { url, logger } = await serve(t, driver, server => {
      server.route('GET', '/throw', () => {
        throw new Error('at once')
      })
      server.route('POST', '/throw', exchange => {
        exchange.body(100, () => {
          throw new Error('with the body')
        })
      })
      server.route('GET', '/well', exchange => exchange.reply(200, null, 'well'))
    })
    t.equal((await fetch(`${url}/throw`)).status, 500)
    t.equal((await logger.next('error')).err.message, 'at once')
    t.equal((await fetch(`${url}/throw`, { method: 'POST', body: 'x' })).status, 500)
    t.equal((await logger.next('error')).err.message, 'with the body')
    t.equal(await (await fetch(`${url}/well`)).text(), 'well')
  })

  t.test('an offer to upgrade to something else is ignored', async t => {
    const { port } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    client.write(post('/echo', 'abc', offer).slice(0, -2))
    await new Promise(resolve => setImmediate(resolve))
    client.write('bc')
    t.match(await client.until('abc'), /200 OK/)
    client.write(`GET /none HTTP/1.1\r\nHost: here\r\n${offer}\r\n${post('/echo', 'again')}`)
    t.match(await client.until('again'), /404 Not Found.*200 OK/s)
    client.write(post('/echo', 'last'))
    t.match(await client.until('last'), /200 OK/)
  })

  t.test('what is no HTTP ends the connection, and only that', async t => {
    const { port, url } = await serve(t, driver, echo)
    const client = await RawClient.connect(t, port)
    client.write('\x16\x03\x01 this is TLS, or worse\r\n\r\n')
    await once(client.socket, 'end')
    t.equal(await (await fetch(`${url}/echo`, { method: 'POST', body: 'fine' })).text(), 'fine')
  })
}
