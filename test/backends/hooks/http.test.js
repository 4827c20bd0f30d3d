import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createProxies } from '../../../src/backends/hooks/proxies.js'
import { Disconnect, ReplyError } from '../../../src/base/errors.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { bytesPayload, NO_PAYLOAD, textPayload } from '../../../src/clients/protocol/payload.js'
import { loadConfig } from '../../../src/config/load.js'
import { HookStats } from '../../../src/metrics/hook-stats.js'
import { freePort } from '../../kit/ports.js'
import { until } from '../../kit/wait.js'
import { Backend, json, result } from './backend.js'
import { event, fails } from './proxy-rig.js'

const backend = await Backend.start(t)

/** @param {import('tap').Test} t @param {object} [proxy] options of the rpc proxy @param {any} [base] */
function start(t, proxy = {}, base = {}) {
  // Longer than a machine stands still.
  const options = { endpoint: `${backend.url}/rpc?x=1`, timeout: '20s', ...proxy }
  const { config } = loadConfig({
    base: { ...base, rpc: { proxy: options, without_namespace: { proxy_enabled: true }, ...base.rpc } },
  })
  const stats = new HookStats()
  /** @type {[object, string][]} */
  const lines = []
  const write = (/** @type {any} */ fields, /** @type {string} */ message) =>
    void lines.push([fields, message])
  const log = { info: write, warn: write, error: write }
  /** @param {any} [other] */
  const create = (other = config) => createProxies(other, { stats, log, clock: () => performance.now() })
  const handlers = create()
  t.teardown(() => handlers.close())
  backend.requests.length = 0
  return { handlers, stats, lines, config, create, rpc: /** @type {any} */ (handlers.rpc)('m') }
}

t.test('the request: fields in order, texts as they were, headers', async t => {
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
      headerLines: [
        'cookie',
        'a=1',
        'x-other',
        'o',
        'cookie',
        'b=2',
        'x-both',
        'real',
        'upgrade',
        'websocket',
        'proxy-status',
        'p',
      ],
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
  t.equal(request.headers['x-other'], undefined)
  t.equal(request.headers['x-broken'], undefined)
  t.equal(request.headers.upgrade, undefined)
  t.equal(request.headers['proxy-status'], undefined)
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
    ['an empty body', () => ({}), 'answer'],
    ['a list', () => ({ body: '[]' }), 'answer'],
    ['trailing text', () => ({ body: '{"result":{}} x' }), 'answer'],
    ['a byte order mark', () => ({ body: '\ufeff{}' }), 'answer'],
    ['no UTF-8', () => ({ body: Buffer.from([0x22, 0xff, 0x22]) }), 'answer'],
    ['invalid base64', () => result({ b64data: '_-' }), 'base64'],
    ['a wrong type', () => result({ b64data: 5 }), 'answer'],
    ['a wrong error', () => json({ error: { code: -1 } }), 'answer'],
    ['a large answer', () => result({ data: 'x'.repeat(5000) }), 'size'],
    [
      'a large compressed answer',
      () => ({
        headers: { 'content-encoding': 'gzip' },
        body: gzipSync(JSON.stringify({ x: 'x'.repeat(50_000) })),
      }),
      'size',
    ],
    ['broken gzip', () => ({ headers: { 'content-encoding': 'gzip' }, body: '{}' }), 'answer'],
    [
      'another encoding',
      () => ({ headers: { 'content-encoding': 'br' }, body: Buffer.from([1, 2]) }),
      'answer',
    ],
    [
      'a truncated body',
      (_request, response) => {
        response.writeHead(200, { 'content-length': '100' })
        response.write('{"result":{}}', () => response.destroy())
        return null
      },
      'unreachable',
    ],
    [
      'a closed connection',
      (_request, response) => {
        response.destroy()
        return null
      },
      'unreachable',
    ],
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
  backend.answer = () => ({
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync('{"result":{"data":1.50}}'),
  })
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
  /** @param {import('./backend.js').Reply} reply @param {Error} expected */
  const rejects = async (reply, expected) => {
    backend.answer = () => reply
    await t.rejects(rpc.call(event()), expected)
  }
  await rejects({ status: 403 }, new Disconnect(4403, 'forbidden'))
  await rejects({ status: 404 }, new ReplyError(1404, 'unknown', true))
  await rejects(json({ result: {}, error: { code: 0 } }), new ReplyError(0, ''))
  await rejects(json({ result: {}, error: { code: 5000, message: 'm' } }), new ReplyError(5000, 'm'))
  await rejects(
    json({ error: { code: 1 }, disconnect: { code: 4501, reason: 'bye' } }),
    new Disconnect(4501, 'bye'),
  )
  await rejects(json({ disconnect: { code: 4000 } }), new Disconnect(4000, 'disconnected'))
  t.equal(lines.length, 0)
  await rejects(
    json({ disconnect: { code: 999, reason: 'ä'.repeat(80) } }),
    new Disconnect(3004, 'ä'.repeat(61)),
  )
  t.equal(lines.length, 1, 'a code that clients do not know is logged')
})

t.test('an aborted call ends with the reason, and its request is aborted', async t => {
  const { rpc, stats } = start(t)
  backend.answer = () => null
  const asked = event()
  const call = rpc.call(asked)
  const request = await backend.request(() => true)
  t.match(stats.states(), { 'http rpc default': { inflight: 1, down: 0 } })
  const reason = new Error('the client has left')
  HookEvent.abort(asked, reason)
  await t.rejects(call, reason)
  await request.aborted
  t.match(stats.states(), { 'http rpc default': { inflight: 0 } })
  rpc.failed('timeout')
  const counts = stats.drain()['http rpc default']
  t.match(counts, { calls: 1, failures: { timeout: 1 } })
})

t.test('the number of connections is bounded, and they are used again', async t => {
  const { rpc } = start(t, { http: { max_connections: 2 } })
  const before = backend.connections
  backend.answer = () => result({})
  await Promise.all(Array.from({ length: 50 }, () => rpc.call(event())))
  t.equal(backend.requests.length, 50)
  t.ok(backend.connections - before <= 2, `${backend.connections - before} connections`)
})

t.test('clients that leave while their calls wait for a connection do not cost one', async t => {
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
  const calls = waiting.map(asked => rpc.call(asked))
  const left = new Error('the client has left')
  for (const asked of waiting) HookEvent.abort(asked, left)
  for (const call of calls) await t.rejects(call, left)
  const last = rpc.call(event())
  release()
  await Promise.all([first, last])
  t.equal(backend.requests.length, 2, 'nobody asks for them')
  t.equal(backend.connections - before, 1)
})

t.test('a call that has waited since before a reload is still made', async t => {
  const { handlers, rpc } = start(t)
  backend.answer = () => result({ data: 1 })
  await handlers.close()
  t.equal((await rpc.call(event())).data.data, '1')
})

t.test('calls under way at a reload follow their redirects, and are tried again', async t => {
  const { handlers, rpc } = start(
    t,
    {},
    {
      client: {
        proxy: { connect: { enabled: true, endpoint: `${backend.url}/connect`, timeout: '20s', retries: 2 } },
      },
    },
  )
  const connect = /** @type {any} */ (handlers.connect)
  /** @type {Promise<void> | null} */
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

t.test('a reload that is refused, or not used, leaves the figures as they are', async t => {
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
  t.throws(() => create(other), /^rpc\.proxy: server_ca_pem is not PEM/)
  stats.drain()
  t.strictSame(stats.states(), down)
  await handlers.close()
  stats.drain()
  t.strictSame(stats.states(), {})
})

t.test('retries of events that may be repeated, within their time', async t => {
  const { handlers } = start(
    t,
    {},
    {
      client: {
        proxy: { connect: { enabled: true, endpoint: `${backend.url}/connect`, timeout: '20s', retries: 2 } },
      },
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
  t.equal(backend.requests.length, 4, 'an answer of the application is no reason to repeat')
  backend.answer = () => ({ status: 503 })
  await fails(t, /** @type {any} */ (handlers.rpc)('ns:m').call(event()), 'unavailable')
  t.equal(backend.requests.length, 5, 'rpc is never repeated')
})

t.test(
  'a breaker: calls fail at once while the backend is down, and one finds out that it is back',
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
    // The backend is there, even if it fails.
    backend.answer = () => ({ status: 500 })
    await until(async () => {
      const kind = await soon.rpc.call(event()).then(
        () => '',
        (/** @type {any} */ error) => error.kind,
      )
      if (kind !== 'status') t.equal(kind, 'breaker')
      return kind === 'status'
    })
    t.match(soon.stats.states(), { 'http rpc default': { down: 0 } })
    t.match(soon.lines.at(-1)?.[1], 'answers again')
  },
)
