import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Disconnect, ReplyError } from '../../../src/base/errors.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { bytesPayload, NO_PAYLOAD, textPayload } from '../../../src/clients/protocol/payload.js'
import { freePort } from '../../kit/ports.js'
import { until } from '../../kit/wait.js'
import { Backend, json, result } from './backend.js'
import { event, fails, startHandlers } from './proxy-rig.js'

const backend = await Backend.start(t)

/** @param {import('tap').Test} t @param {object} [proxy] options of the rpc proxy @param {any} [base] */
function start(t, proxy = {}, base = {}) {
  // Longer than a machine may be blocked.
  const options = { endpoint: `${backend.url}/rpc?x=1`, timeout: '20s', ...proxy }
  backend.requests.length = 0
  const rpc = { proxy: options, without_namespace: { proxy_enabled: true }, ...base.rpc }
  return startHandlers(t, { ...base, rpc })
}

/** @param {string} text */
const zipped = text => ({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(text) })

/** @param {import('node:http').ServerResponse} response @param {string} [body] whose end does not come */
function cut(response, body) {
  if (body === undefined) response.destroy()
  else response.writeHead(200, { 'content-length': '100' }).write(body, () => response.destroy())
  return null
}

/** A connect proxy with two retries. */
const RETRYING = {
  client: {
    proxy: { connect: { enabled: true, endpoint: `${backend.url}/connect`, timeout: '20s', retries: 2 } },
  },
}

t.test('the request: fields in order, unchanged texts, headers', async t => {
  backend.answer = () => result({ data: { a: 1 } })
  const { rpc } = start(t, {
    include_connection_meta: true,
    http_headers: ['Cookie', 'X-Both', 'Upgrade', 'Proxy-Status'],
    emulated_headers: ['X-Both', 'X-Emulated', 'X-Broken'],
    http: {
      static_headers: { 'X-Static': 's', 'X-Both': 's', 'x-emulated': 's', 'Content-Type': 'text/plain' },
    },
  })
  const answer = await rpc.call(
    event({
      headerLines: 'cookie a=1 x-other o cookie b=2 x-both real upgrade websocket proxy-status p'.split(' '),
      emulatedHeaders: {
        'X-both': 'emulated',
        'x-Emulated': 'ä and €',
        'x-broken': 'a\r\nb: c',
        cookie: 'no',
      },
    }),
  )
  t.strictSame(answer.data, textPayload('{"a":1}'))
  const [request] = backend.requests
  t.equal(request.method, 'POST')
  t.equal(request.path, '/rpc?x=1')
  t.equal(
    request.body,
    '{"client":"c1","transport":"websocket","protocol":"json","encoding":"json","user":"u1","method":"m",' +
      '"data":{ "n" : 1.50, "n": 12345678901234567890},"meta":{"m":1.50}}',
  )
  t.match(request.headers, {
    'content-type': 'application/json',
    'accept-encoding': 'gzip',
    'content-length': String(Buffer.byteLength(request.body)),
    'user-agent': /^Halley\/\d/,
    cookie: 'a=1; b=2',
    'x-static': 's',
    'x-both': 'real',
    'x-emulated': Buffer.from('ä and €').toString('latin1'),
  })
  for (const name of ['x-other', 'x-broken', 'upgrade', 'proxy-status'])
    t.notOk(name in request.headers, name)
})

t.test('the request: empty and binary data', async t => {
  backend.answer = () => ({ body: '{}' })
  const { rpc } = start(t)
  await rpc.call(event({ user: '', method: '', payload: NO_PAYLOAD }))
  t.equal(
    backend.requests[0].body,
    '{"client":"c1","transport":"websocket","protocol":"json","encoding":"json","user":""}',
  )
  await fails(t, rpc.call(event({ payload: bytesPayload(Buffer.from([0xff])) })), 'data')
  t.equal(backend.requests.length, 1, 'the backend is not called for bytes that are not JSON')
  const binary = start(t, { binary_encoding: true })
  await binary.rpc.call(event({ payload: bytesPayload(Buffer.from([0xff])) }))
  t.match(backend.requests[0].json, { encoding: 'binary', b64data: '/w==' })
})

t.test('failed calls', async t => {
  const { rpc, stats } = start(t, { max_response_size: 4096, breaker: { failures: 0 } })
  /** @type {[string, import('./backend.js').Answer, string][]} */
  const cases = [
    ['201', () => ({ status: 201, body: '{"result":{}}' }), 'status'],
    ['204', () => ({ status: 204 }), 'status'],
    ['500', () => ({ status: 500, body: 'x'.repeat(100_000) }), 'status'],
    ['503', () => ({ status: 503 }), 'unavailable'],
    ['302', () => ({ status: 302, headers: { location: '/other' } }), 'status'],
    ['307 to another host', () => ({ status: 307, headers: { location: 'http://localhost:1/' } }), 'status'],
    ['307 without an end', () => ({ status: 307, headers: { location: '/rpc' } }), 'status'],
    ['an empty body', () => ({}), 'response'],
    ['a list', () => ({ body: '[]' }), 'response'],
    ['trailing text', () => ({ body: '{"result":{}} x' }), 'response'],
    ['a byte order mark', () => ({ body: '\ufeff{}' }), 'response'],
    ['no UTF-8', () => ({ body: Buffer.from([0x22, 0xff, 0x22]) }), 'response'],
    ['invalid base64', () => result({ b64data: '_-' }), 'base64'],
    ['a wrong type', () => result({ b64data: 5 }), 'response'],
    ['a wrong error', () => json({ error: { code: -1 } }), 'response'],
    ['a large answer', () => result({ data: 'x'.repeat(5000) }), 'size'],
    ['a large compressed answer', () => zipped(JSON.stringify({ x: 'x'.repeat(50_000) })), 'size'],
    ['broken gzip', () => ({ ...zipped(''), body: '{}' }), 'response'],
    [
      'another encoding',
      () => ({ headers: { 'content-encoding': 'br' }, body: Buffer.of(1, 2) }),
      'response',
    ],
    ['a truncated body', (_request, response) => cut(response, '{"result":{}}'), 'unreachable'],
    ['a closed connection', (_request, response) => cut(response), 'unreachable'],
  ]
  for (const [name, answer, kind] of cases) {
    backend.answer = answer
    await t.test(name, t => fails(t, rpc.call(event()), kind))
  }
  const { calls, failures } = stats.drain()['http rpc default']
  t.equal(calls, cases.length)
  t.equal(
    Object.values(failures).reduce((sum, count) => sum + count, 0),
    cases.length,
    'each is counted once',
  )
})

t.test('good answers', async t => {
  const { rpc } = start(t)
  backend.answer = () => zipped('{"result":{"data":1.50}}')
  t.equal((await rpc.call(event())).data.data, '1.50', 'gzip')
  backend.answer = ({ path }) =>
    path === '/rpc?x=1' ? { status: 308, headers: { location: '/moved' } } : result({ data: path })
  backend.requests.length = 0
  t.equal((await rpc.call(event())).data.data, '"/moved"', 'a redirect')
  t.equal(backend.requests[1].body, backend.requests[0].body, 'repeats the POST')
  backend.answer = () => ({
    body: ' \n{"result":{"data":\n{ "x" : 1.50,\n"x":null }, "other": 1},"error":null} \n',
  })
  t.equal((await rpc.call(event())).data.data, '{ "x" : 1.50,"x":null }', 'the text without line feeds')
  backend.answer = () => ({ body: '{"result":{"data":null}}' })
  t.equal((await rpc.call(event())).data.data, 'null')
  backend.answer = () => ({ body: 'null' })
  t.strictSame(await rpc.call(event()), {}, 'nothing set')
})

t.test('errors and disconnects', async t => {
  const { rpc, lines } = start(t, {
    http: {
      status_to_code_transforms: [
        { status_code: 403, to_disconnect: { code: 4403, reason: 'forbidden' } },
        { status_code: 404, to_error: { code: 1404, message: 'unknown', temporary: true } },
        { status_code: 404, to_error: { code: 1405 } },
      ],
    },
  })
  const rejects = async (reply, expected) => {
    backend.answer = () => reply
    await t.rejects(rpc.call(event()), expected)
  }
  await rejects({ status: 403 }, new Disconnect(4403, 'forbidden'))
  await rejects({ status: 404 }, new ReplyError(1404, 'unknown', true))
  t.equal(lines.length, 0)
  await rejects(
    json({ disconnect: { code: 999, reason: 'ä'.repeat(80) } }),
    new Disconnect(3004, 'ä'.repeat(61)),
  )
  t.equal(lines.length, 1, 'a code unknown to clients is logged')
})

t.test('an aborted call ends with the reason, and its request is aborted', async t => {
  const { rpc, stats } = start(t)
  backend.answer = () => null
  const hookEvent = event()
  const call = rpc.call(hookEvent)
  const request = await backend.request(() => true)
  t.match(stats.states(), { 'http rpc default': { inflight: 1, down: 0 } })
  const reason = new Error('the client has left')
  HookEvent.abort(hookEvent, reason)
  await t.rejects(call, reason)
  await request.aborted
  t.match(stats.states(), { 'http rpc default': { inflight: 0 } })
  rpc.failed('timeout')
  const counts = stats.drain()['http rpc default']
  t.match(counts, { calls: 1, failures: { timeout: 1 } })
})

t.test('connections are limited and reused', async t => {
  const { rpc } = start(t, { http: { max_connections: 2 } })
  const before = backend.connections
  backend.answer = () => result({})
  await Promise.all(Array.from({ length: 50 }, () => rpc.call(event())))
  t.equal(backend.requests.length, 50)
  t.ok(backend.connections - before <= 2, `${backend.connections - before} connections`)
})

t.test('calls of disconnected clients that wait for a connection take none', async t => {
  const { rpc } = start(t, { http: { max_connections: 1 } })
  const before = backend.connections
  /** @type {() => void} */
  let release = () => {}
  const released = new Promise(resolve => {
    release = () => resolve(null)
  })
  backend.answer = () => released.then(() => result({}))
  const first = rpc.call(event())
  await backend.request(() => true)
  const waiting = Array.from({ length: 20 }, () => event())
  const calls = waiting.map(hookEvent => rpc.call(hookEvent))
  const left = new Error('the client has left')
  for (const hookEvent of waiting) HookEvent.abort(hookEvent, left)
  for (const call of calls) await t.rejects(call, left)
  const last = rpc.call(event())
  release()
  await Promise.all([first, last])
  t.equal(backend.requests.length, 2, 'their calls are not sent')
  t.equal(backend.connections - before, 1)
})

t.test('a call queued before a reload is still made', async t => {
  const { handlers, rpc } = start(t)
  backend.answer = () => result({ data: 1 })
  await handlers.close()
  t.equal((await rpc.call(event())).data.data, '1')
})

t.test('calls pending at a reload follow redirects and are retried', async t => {
  const { handlers, rpc } = start(t, {}, RETRYING)
  const connect = /** @type {any} */ (handlers.connect)
  let closed = null
  const close = () => {
    closed ??= Promise.resolve(handlers.close())
  }
  backend.answer = ({ event }) => {
    close()
    if (event === 'rpc') return { status: 307, headers: { location: '/moved' } }
    if (event === 'moved') return result({ data: 1 })
    return backend.requests.filter(request => request.event === 'connect').length === 1
      ? { status: 503 }
      : result({ user: 'u' })
  }
  const [answer, { user }] = await Promise.all([rpc.call(event()), connect.call(event())])
  t.equal(answer.data.data, '1')
  t.equal(user, 'u')
  await closed
})

t.test('a refused or unused reload does not change the metrics', async t => {
  const { handlers, config, create, stats, rpc } = start(t, { breaker: { failures: 1, interval: '1h' } })
  backend.answer = () => ({ status: 503 })
  await fails(t, rpc.call(event()), 'unavailable')
  const other = /** @type {any} */ (structuredClone(config))
  Object.assign(other.client.proxy.connect, structuredClone(other.rpc.proxy), { enabled: true })
  const unused = create(other)
  const down = { 'http rpc default': { inflight: 0, down: 1 } }
  t.strictSame(stats.states(), { ...down, 'http connect default': { inflight: 0, down: 0 } })
  await unused.close()
  stats.drain()
  stats.drain()
  t.strictSame(stats.states(), down)
  other.rpc.proxy.http.tls = { ...other.rpc.proxy.http.tls, enabled: true, server_ca_pem: '/nowhere' }
  t.throws(() => create(other), /^rpc\.proxy: server_ca_pem is neither PEM/)
  stats.drain()
  t.strictSame(stats.states(), down)
  await handlers.close()
  stats.drain()
  t.strictSame(stats.states(), {})
})

t.test('repeatable events are retried within the timeout', async t => {
  const { handlers } = start(
    t,
    {},
    {
      ...RETRYING,
      proxies: [{ name: 'named', endpoint: `${backend.url}/named`, retries: 2 }],
      rpc: { namespaces: [{ name: 'ns', proxy_enabled: true, proxy_name: 'named' }] },
    },
  )
  const connect = /** @type {any} */ (handlers.connect)
  const answers = [{ status: 503 }, { status: 502 }, result({ user: 'u' })]
  backend.answer = () => /** @type {any} */ (answers.shift())
  t.equal((await connect.call(event())).user, 'u')
  t.equal(backend.requests.length, 3)
  backend.answer = () => ({ status: 500 })
  await fails(t, connect.call(event()), 'status')
  t.equal(backend.requests.length, 4, 'an error of the application is not retried')
  backend.answer = () => ({ status: 503 })
  await fails(t, /** @type {any} */ (handlers.rpc)('ns:m').call(event()), 'unavailable')
  t.equal(backend.requests.length, 5, 'rpc is never retried')
})

t.test(
  'a breaker: calls fail immediately while the backend is down; a trial call detects its recovery',
  async t => {
    const { rpc, lines, stats } = start(t, {
      endpoint: `http://127.0.0.1:${await freePort()}/`,
      breaker: { failures: 3, interval: '1h' },
    })
    for (let i = 0; i < 3; i++) await fails(t, rpc.call(event()), 'unreachable')
    t.equal(lines.length, 1, 'one line')
    await fails(t, rpc.call(event()), 'breaker')
    t.match(stats.states(), { 'http rpc default': { down: 1 } })

    const soon = start(t, { breaker: { failures: 1, interval: '1ms' } })
    backend.answer = () => ({ status: 502 })
    await fails(t, soon.rpc.call(event()), 'unavailable')
    // The backend responds, even if with an error.
    backend.answer = () => ({ status: 500 })
    await until(async () => {
      const kind = await soon.rpc.call(event()).then(
        () => '',
        error => error.kind,
      )
      if (kind !== 'status') t.equal(kind, 'breaker')
      return kind === 'status'
    })
    t.match(soon.stats.states(), { 'http rpc default': { down: 0 } })
    t.match(soon.lines.at(-1)?.[1], 'proxy backend is up again')
  },
)
