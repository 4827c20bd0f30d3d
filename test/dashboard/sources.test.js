import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { HttpSource, Lines, SocketSource } from '../../dashboard/source.js'
import { SCHEMA_VERSION } from '../../src/metrics/schema.js'
import { tempDir } from '../kit/folders.js'
import { until } from '../kit/wait.js'
import { mockSnapshots } from '../metrics/mock.js'
import { MockGateway } from './mock-gateway.js'

/** @import { IncomingMessage, ServerResponse } from 'node:http' */
/** @import { Source } from '../../dashboard/source.js' */

const snapshots = mockSnapshots({ workers: 2, seconds: 5 })
const [{ node }] = snapshots
const hello = { type: 'hello', schema: SCHEMA_VERSION, node, history: snapshots, events: [] }

/** The events of a source, in order. */
class Events {
  /** @type {any[]} */
  events = []

  /** @param {import('tap').Test} t @param {Source} source started here, closed with the test */
  constructor(t, source) {
    t.teardown(() => source.close())
    source.start(event => void this.events.push(event))
  }

  /** @param {(event: any) => boolean} matches @returns {Promise<any>} the next such event; those before it are dropped */
  next(matches) {
    return until(
      () => {
        const at = this.events.findIndex(matches)
        return at >= 0 && this.events.splice(0, at + 1).at(-1)
      },
      () => `an event where ${matches}; got ${JSON.stringify(this.events).slice(0, 1000)}`,
    )
  }

  /** @param {string} state */
  link(state) {
    return this.next(event => event.type === 'link' && event.state === state)
  }

  /** @param {string} type */
  message(type) {
    return this.next(event => event.message?.type === type)
  }
}

/** A local gateway and its source. @param {import('tap').Test} t @param {object | null} [hello] see MockGateway */
async function local(t, hello = {}) {
  const there = await new MockGateway(join(tempDir(t), 'stats.sock'), snapshots, hello).listen()
  t.teardown(() => there.close())
  const source = new SocketSource(there.path)
  return { there, source, seen: new Events(t, source) }
}

t.test('lines are assembled from chunks of any size', async t => {
  const text = Buffer.from('{"a":"äöü"}\n\n{"b":1}\n{"c"')
  for (let length = 1; length <= text.length; length++) {
    const lines = new Lines()
    /** @type {string[]} */
    const taken = []
    for (let at = 0; at < text.length; at += length) {
      lines.push(text.subarray(at, at + length), line => taken.push(line))
    }
    t.same(taken, ['{"a":"äöü"}', '{"b":1}'], `${length} bytes each`)
  }
})

t.test('the length of an unterminated line is limited', async t => {
  const lines = new Lines(10)
  lines.push(Buffer.from('123456789'), () => {})
  t.throws(() => lines.push(Buffer.from('01'), () => {}), /a line is too long/)
})

t.test('over a Unix socket: hello, snapshots, commands and their replies', async t => {
  const { there, source, seen } = await local(t)
  await seen.link('connecting')
  await seen.link('open')
  t.equal((await seen.message('hello')).message.history.length, 5)
  there.send(snapshots[4])
  t.equal((await seen.message('snapshot')).message.snapshot.seq, 5)
  source.send({ type: 'gc', worker: 1 })
  t.same((await seen.message('done')).message, { type: 'done', command: 'gc', error: null })
  t.same(there.commands, [{ type: 'gc', worker: 1 }])
})

t.test('reconnects when the gateway is back', async t => {
  const { there, source, seen } = await local(t)
  await seen.message('hello')
  await there.close()
  t.equal((await seen.link('lost')).text, 'the gateway closed the connection')
  t.equal((await seen.link('lost')).text, 'no gateway is listening', 'it retries')
  source.send({ type: 'gc', worker: null })
  t.match((await seen.message('done')).message, { command: 'gc', error: /not connected/ })
  const again = await new MockGateway(there.path, snapshots).listen()
  t.teardown(() => again.close())
  await seen.link('open')
  await seen.message('hello')
})

t.test('reports a socket that is not a stats stream, and retries', async t => {
  for (const [line, text] of /** @type {[string, RegExp][]} */ ([
    ['HTTP/1.1 400 Bad Request\r\n', /a line is not JSON/],
    ['17\n', /a line is not a message/],
    ['{"type":"hello","schema":"x"}\n', /invalid hello/],
    [`${JSON.stringify(hello)}\n{"type":"snapshot","snapshot":{"time":1}}\n`, /invalid snapshot/],
  ])) {
    const { there, seen } = await local(t, null)
    await there.until(({ connections }) => connections === 1)
    there.say(line)
    t.match((await seen.link('lost')).text, text)
    await there.until(({ connections }) => connections === 1)
  }
})

t.test('ignores unknown message types', async t => {
  const { there, seen } = await local(t)
  await seen.message('hello')
  there.say('{"type":"weather","text":"rain"}\n{"type":"constructor"}\n')
  there.send(snapshots[4])
  await seen.message('snapshot')
  t.same(seen.events, [])
})

t.test('refuses a newer schema version with a message', async t => {
  const { seen } = await local(t, { schema: SCHEMA_VERSION + 1 })
  const text = `stats version ${SCHEMA_VERSION + 1} is not supported (expected ${SCHEMA_VERSION})`
  t.match((await seen.link('refused')).text, text)
  t.notOk(seen.events.some(({ type }) => type === 'message'))
})

t.test('a closed source emits nothing and does not reconnect', async t => {
  const { there, source, seen } = await local(t)
  await seen.message('hello')
  there.send(snapshots[4])
  source.close()
  await there.until(({ connections }) => connections === 0)
  t.same(seen.events, [])
})

/**
 * The admin endpoints that a dashboard uses.
 * @param {import('tap').Test} t
 * @param {(request: IncomingMessage, response: ServerResponse, body: any) => void} answer
 */
async function admin(t, answer) {
  const server = createHttpServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    answer(request, response, text === '' ? null : JSON.parse(text))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { server, url: `http://127.0.0.1:${port}` }
}

t.test('over HTTP: login, stream, commands', async t => {
  /** @type {string[]} */
  const requests = []
  const { url } = await admin(t, (request, response, body) => {
    const { method, url, headers } = request
    requests.push(`${method} ${url} ${headers.authorization ?? '-'} ${JSON.stringify(body)}`)
    if (request.url === '/admin/api/login') response.end('{"token":"abc"}')
    else if (request.url === '/admin/api/command')
      response.end(`{"error":${body.type === 'gc' ? null : '"not from here"'}}`)
    else
      response.write(
        `${JSON.stringify(hello)}\n${JSON.stringify({ type: 'snapshot', snapshot: snapshots[4] })}\n`,
      )
  })
  const source = new HttpSource(url, 'secret')
  const seen = new Events(t, source)
  await seen.link('open')
  await seen.message('snapshot')
  source.send({ type: 'gc', worker: null })
  t.same((await seen.message('done')).message, { type: 'done', command: 'gc', error: null })
  source.send({ type: 'log', on: true })
  t.same((await seen.message('done')).message, { type: 'done', command: 'log', error: 'not from here' })
  t.same(requests, [
    'POST /admin/api/login - {"password":"secret"}',
    'GET /admin/api/stream Bearer abc null',
    'POST /admin/api/command Bearer abc {"type":"gc","worker":null}',
    'POST /admin/api/command Bearer abc {"type":"log","on":true}',
  ])
})

t.test('the path of a URL is the prefix of the admin endpoints', async t => {
  t.equal(new HttpSource('https://gateway.example.com', 'k').name, 'https://gateway.example.com/admin')
  t.equal(new HttpSource('http://gateway:8000/', 'k').name, 'http://gateway:8000/admin')
  t.equal(new HttpSource('http://gateway:8000/ops/admin/', 'k').name, 'http://gateway:8000/ops/admin')
})

t.test('a wrong key, too many attempts and missing admin endpoints have messages', async t => {
  for (const [status, text] of /** @type {[number, RegExp][]} */ ([
    [401, /rejected the admin key/],
    [429, /too many failed logins: the gateway accepts no login for 17 s/],
    [404, /no admin endpoints at this URL/],
  ])) {
    const { url } = await admin(t, (_, response) => {
      response.writeHead(status, status === 429 ? { 'retry-after': '17' } : {}).end('{"error":"no"}')
    })
    t.match((await new Events(t, new HttpSource(url, 'wrong')).link('refused')).text, text)
  }
})

t.test('an expired session leads to a new login', async t => {
  let logins = 0
  const { url } = await admin(t, (request, response) => {
    if (request.url === '/admin/api/login') response.end(`{"token":"${++logins}"}`)
    else if (request.headers.authorization !== 'Bearer 2') response.writeHead(401).end()
    else response.write(`${JSON.stringify(hello)}\n`)
  })
  const seen = new Events(t, new HttpSource(url, 'secret'))
  t.match((await seen.link('lost')).text, 'the session has expired')
  await seen.link('open')
  t.equal(logins, 2)
})

t.test('reconnects to a remote gateway', async t => {
  let served = 0
  const { url, server } = await admin(t, (request, response) => {
    if (request.url === '/admin/api/login') response.end('{"token":"abc"}')
    else {
      served++
      response.write(`${JSON.stringify(hello)}\n`)
    }
  })
  const seen = new Events(t, new HttpSource(url, 'secret'))
  await seen.link('open')
  server.closeAllConnections()
  await seen.link('lost')
  await seen.link('open')
  t.equal(served, 2)
})

t.test('retries a host that is down or does not speak HTTP', async t => {
  const server = createServer(socket => socket.end('220 mail ready\r\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const seen = new Events(t, new HttpSource(`http://127.0.0.1:${port}`, 'k'))
  t.equal((await seen.link('lost')).text, 'not an HTTP server')
  const secure = new Events(t, new HttpSource(`https://127.0.0.1:${port}`, 'k'))
  t.match((await secure.link('lost')).text, /^no TLS on this port: use http|^the gateway closed/)
  server.close()
  t.ok(await seen.next(({ text }) => text === 'no gateway is listening'))
})
