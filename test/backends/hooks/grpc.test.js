import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ServerCredentials, status } from '@grpc/grpc-js'
import t from 'tap'
import { Disconnect, ReplyError } from '../../../src/base/errors.js'
import { Operation } from '../../../src/clients/hooks/capabilities.js'
import { HookEvent } from '../../../src/clients/hooks/events.js'
import { bytesPayload, NO_PAYLOAD } from '../../../src/clients/protocol/payload.js'
import { makeAuthority } from '../../channels/broker/redis/certificates.js'
import { tempDir, testdir } from '../../kit/folders.js'
import { bin } from '../../kit/gateway.js'
import { withoutProgram } from '../../kit/needs.js'
import { freePort } from '../../kit/ports.js'
import { until } from '../../kit/wait.js'
import { GrpcBackend } from './grpc-backend.js'
import { event, fails, framed, reply, startHandlers, startHttp2, startProxies } from './proxy-rig.js'

const RPC = { proxy: { endpoint: '127.0.0.1:1' }, without_namespace: { proxy_enabled: true } }

const backend = await GrpcBackend.start(t)

/** @param {import('tap').Test} t @param {object} [proxy] options of all proxies */
function start(t, proxy) {
  backend.requests.length = 0
  backend.answer = () => ({})
  return startProxies(t, { endpoint: backend.url, ...proxy })
}

t.test('requests: the fields of each event, with texts byte for byte', async t => {
  const { all } = start(t, { include_connection_meta: true })
  const labels = { tier: 'pro', ü: '' }
  for (const handler of Object.values(all)) await handler.call(event({ labels }))
  const data = '{ "n" : 1.50, "n": 12345678901234567890}'
  const meta = '{"m":1.50}'
  const head = { client: 'c1', transport: 'websocket', protocol: 'json', encoding: 'json' }
  const channel = { user: 'u1', channel: 'room' }
  const { requests } = backend
  t.strictSame(
    requests.map(({ event, message }) => [
      event,
      Object.fromEntries(
        Object.entries(message).map(([name, value]) => [name, Buffer.isBuffer(value) ? `${value}` : value]),
      ),
    ]),
    [
      ['connect', { ...head, data, name: 'js', version: '1.2', channels: ['a', 'b'] }],
      ['refresh', { ...head, user: 'u1', meta, labels }],
      ['subscribe', { ...head, ...channel, meta, data, labels }],
      ['publish', { ...head, ...channel, data, meta, labels }],
      ['sub_refresh', { ...head, ...channel, meta, labels }],
      ['rpc', { ...head, user: 'u1', method: 'm', data, meta, labels }],
      [
        'disconnected',
        {
          ...head,
          user: 'u1',
          code: 3000,
          reason: 'gone',
          channels: ['a', 'b'],
          duration: 1.5,
          meta,
          labels,
        },
      ],
      ['unsubscribed', { ...head, ...channel, code: 3000, reason: 'gone', meta, labels }],
    ],
  )
  t.equal(new Set(requests.map(({ call }) => call.getPeer())).size, 1, 'all calls share one connection')
})

t.test('requests: empty, binary and compressed data', async t => {
  const { rpc } = start(t)
  await rpc.call(event({ user: '', method: '', payload: NO_PAYLOAD }))
  t.strictSame(Object.keys(backend.requests[0].message), ['client', 'transport', 'protocol', 'encoding'])
  await fails(t, rpc.call(event({ payload: bytesPayload(Buffer.from([0xff])) })), 'data')
  const binary = start(t, { binary_encoding: true, grpc: { compression: true } })
  await binary.rpc.call(event({ payload: bytesPayload(Buffer.from([0xff])) }))
  t.match(backend.requests[0].message, { encoding: 'binary', b64data: '/w==' })
  let headers = /** @type {any} */ (null)
  const { endpoint } = await startHttp2(t, (stream, given) => {
    headers = given
    reply(stream, framed(Buffer.alloc(0)))
  })
  await start(t, { endpoint, grpc: { compression: true } }).rpc.call(event())
  t.equal(headers['grpc-encoding'], 'gzip')
  t.match(headers, {
    'content-type': 'application/grpc',
    'grpc-timeout': /^\d+m$/,
    'user-agent': /^Halley\/\d/,
    ':path': '/centrifugal.centrifugo.proxy.CentrifugoProxy/RPC',
  })
})

t.test('metadata', async t => {
  const { rpc } = start(t, {
    http_headers: ['Cookie', 'X-Both', 'Upgrade', 'Authorization', 'HTTP2-Settings', 'x!y', 'grpc-timeout'],
    emulated_headers: ['X-Both', 'X-Emulated', 'X-Broken', 'X-Secret', 'x-raw-bin'],
    grpc: {
      static_metadata: { 'X-Static': 's', 'X-Both': 's', 'x-emulated': 's' },
      credentials_key: 'X-Secret',
      credentials_value: 'v',
    },
  })
  const headerLines = Object.entries({
    cookie: 'a=1',
    upgrade: 'websocket',
    'x-both': 'real',
    other: 'o',
  }).flat()
  headerLines.push('cookie', 'b=2', 'authorization', 'a', 'authorization', 'b', 'http2-settings', 'AAMAAABk')
  headerLines.push('x!y', '1', 'grpc-timeout', '1n')
  const emulatedHeaders = {
    'X-both': 'emulated',
    'x-Emulated': 'e',
    'x-broken': 'ä',
    'x-secret': 'of a client',
    'x-raw-bin': 'bytes',
    cookie: 'no',
  }
  for (let i = 0; i < 2; i++) await rpc.call(event({ headerLines, emulatedHeaders }))
  const [{ metadata }] = backend.requests
  const { 'user-agent': _, ...map } = metadata.getMap()
  t.strictSame(map, {
    authorization: 'a, b',
    cookie: 'a=1; b=2',
    'x-static': 's',
    'x-both': 'real',
    'x-emulated': 'e',
    'x-secret': 'v',
    'x-raw-bin': Buffer.from('bytes'),
  })
  await fails(t, rpc.call(event({ emulatedHeaders: { 'x-both': 'x'.repeat(70_000) } })), 'data')
  await rpc.call(event({ emulatedHeaders: { 'x-both': 'x'.repeat(60_000) } }))
  t.equal(new Set(backend.requests.map(({ call }) => call.getPeer())).size, 1, 'nothing ends the connection')
})

t.test('answers', async t => {
  const { all, rpc } = start(t)
  const b64 = json => Buffer.from(json).toString('base64')
  const ask = (name, answer) => {
    backend.answer = () => answer
    return all[name].call(event())
  }
  const raw = '{ "x" : 1.50, "x":null }'
  t.equal(String((await ask('rpc', { result: { data: Buffer.from(raw) } })).data.data), raw)
  t.equal(String((await ask('rpc', { result: { data: null } })).data.data), 'null')
  t.strictSame(await ask('rpc', {}), {})
  t.strictSame(await ask('rpc', { result: { data: Buffer.alloc(0) } }), { data: undefined }, 'empty: absent')
  t.equal(String((await ask('rpc', { result: { data: 1, b64data: b64('[2]') } })).data.data), '[2]')
  const connect = await ask('connect', {
    result: {
      user: 'ann',
      expire_at: 4102444800,
      info: { i: 1 },
      data: [1],
      channels: ['one', ''],
      subs: {
        two: {
          expire_at: 7,
          b64info: b64('{"c":2}'),
          data: 'd',
          override: { presence: { value: true }, join_leave: {} },
          cache_recover: true,
        },
      },
      meta: { m: 1 },
      caps: [{ channels: ['x'], allow: ['pub'], match: 'wildcard' }],
      labels: { l: 'm' },
    },
  })
  t.match(connect, { user: 'ann', expireAt: 4102444800, info: '{"i":1}', meta: '{"m":1}' })
  t.equal(String(connect.data.data), '[1]')
  t.strictSame([...connect.subs.keys()], ['one', 'two'])
  const { data, ...two } = connect.subs.get('two')
  t.match(two, {
    info: '{"c":2}',
    expireAt: 7,
    override: { presence: true, join_leave: false },
    cacheRecover: true,
  })
  t.equal(String(data.data), '"d"')
  t.equal(await ask('connect', {}), null)
  t.match(await ask('connect', { result: {} }), { user: '' })
  t.match(await ask('refresh', { result: { expire_at: 5, info: 1, meta: 2, caps: [{}] } }), {
    expireAt: 5,
    info: '1',
    meta: '2',
  })
  t.equal(await ask('refresh', { result: { expired: true } }), null)
  t.equal(await ask('sub_refresh', { error: { code: 1 } }), null)
  t.match(await ask('sub_refresh', { result: { expire_at: -5 } }), { expireAt: -5 })
  t.match(await ask('subscribe', { result: { expire_at: 9, allow: ['pub', 'hst'] } }), {
    expireAt: 9,
    allow: Operation.PUBLISH | Operation.HISTORY,
  })
  const caps = [{ channels: ['x'], allow: ['sub'] }]
  const { caps: granted, labels } = await ask('connect', { result: { caps, labels: { l: 'm' } } })
  t.strictSame({ ...labels }, { l: 'm' })
  await fails(t, ask('connect', { result: { labels: { l: 'x'.repeat(257) } } }), 'response')
  t.equal(granted.of('x'), Operation.SUBSCRIBE)
  t.equal((await ask('refresh', { result: { expire_at: 5, caps } })).caps, granted)
  const deep = depth => (depth === 0 ? { key: 'k', cmp: 'ex' } : { op: 'not', nodes: [deep(depth - 1)] })
  const filter = { op: 'or', nodes: [{ key: 'team', cmp: 'in', vals: ['a', 'ä'] }, deep(30)] }
  const { filter: decoded } = await ask('subscribe', { result: { server_tags_filter: filter } })
  t.ok(decoded.matches({ team: 'ä' }))
  t.notOk(decoded.matches({ team: 'b' }))
  t.ok((await ask('sub_refresh', { result: { expire_at: 9, server_tags_filter: filter } })).filter)
  for (const server_tags_filter of [
    {},
    { key: 'team', cmp: 'is', val: 'a' },
    { op: 'and', nodes: [{ key: 'k' }] },
    deep(32),
    deep(80),
  ]) {
    await fails(t, ask('connect', { result: { subs: { two: { server_tags_filter } } } }), 'response')
    await fails(t, ask('subscribe', { result: { server_tags_filter } }), 'response')
    await fails(t, ask('sub_refresh', { result: { expire_at: 9, server_tags_filter } }), 'response')
  }
  const node = Buffer.from('\x12\x01k\x1a\x02ex')
  const answer = (/** @type {Buffer} */ filter) =>
    Buffer.concat([Buffer.from([0x0a, filter.length + 2, 0x42, filter.length]), filter])
  t.ok((await ask('subscribe', answer(node))).filter)
  const unknown = Buffer.concat([node, Buffer.from('\x3a\x01x')])
  await fails(t, ask('subscribe', answer(unknown)), 'response')
  const publish = await ask('publish', {
    result: {
      data: { a: 1 },
      b64data: b64('2'),
      skip_history: true,
      tags: { t: 'ä', empty: '' },
      idempotency_key: 'k',
      delta: true,
      version: '18446744073709551615',
      version_epoch: 'e',
    },
  })
  t.equal(String(publish.data.data), '{"a":1}', 'of publish, data wins')
  t.match(publish, {
    skipHistory: true,
    tags: { t: 'ä', empty: '' },
    idempotencyKey: 'k',
    delta: true,
    version: 18446744073709551615n,
    versionEpoch: 'e',
  })
  await t.rejects(
    ask('rpc', { result: {}, error: { code: 1000, message: 'm', temporary: true } }),
    new ReplyError(1000, 'm', true),
  )
  const both = { result: {}, error: { code: 1 }, disconnect: { code: 4501, reason: 'bye' } }
  await t.rejects(ask('rpc', both), new Disconnect(4501, 'bye'))
  t.equal(rpc.name, 'grpc rpc proxy "default"')
})

t.test('failed calls', async t => {
  const { all, rpc, lines } = start(t, { max_response_size: 4096, breaker: { failures: 0 } })
  /** @type {[string, any, string][]} */
  const cases = [
    ['UNAVAILABLE', { code: status.UNAVAILABLE }, 'unavailable'],
    ['INTERNAL', { code: status.INTERNAL, details: 'x'.repeat(5000) }, 'status'],
    ['PERMISSION_DENIED', { code: status.PERMISSION_DENIED }, 'status'],
    ['RESOURCE_EXHAUSTED', { code: status.RESOURCE_EXHAUSTED }, 'status'],
    ['DEADLINE_EXCEEDED', { code: status.DEADLINE_EXCEEDED }, 'timeout'],
    ['base64', { result: { b64data: '_-' } }, 'base64'],
    ['a large answer', { result: { data: 'x'.repeat(5000) } }, 'size'],
    ['a tag without a number', Buffer.from([0]), 'response'],
    ['a text for a message', Buffer.from([0x0a, 2, 0xff, 0xff]), 'response'],
    ['a varint for a message', Buffer.from([0x08, 1]), 'response'],
    ['a varint for bytes', Buffer.from([0x0a, 2, 0x08, 1]), 'response'],
    ['text for a number', Buffer.from([0x12, 3, 0x0a, 1, 0x31]), 'response'],
    ['invalid UTF-8', Buffer.from([0x12, 3, 0x12, 1, 0xff]), 'response'],
    ['a message that is cut off', Buffer.from([0x0a, 5, 0x0a, 9, 1]), 'response'],
    ['an endless varint', Buffer.from([0x12, 12, 0x08, ...Buffer.alloc(11, 0xff)]), 'response'],
    ['the end of a group', Buffer.from([0x7c]), 'response'],
  ]
  for (const [name, answer, kind] of cases) {
    backend.answer = () => answer
    await t.test(name, t => fails(t, rpc.call(event()), kind))
  }
  backend.answer = () => Buffer.from([0x0a, 2, 0x0a, 0, 0x7a, 1, 1, 0x78, 5])
  t.strictSame(await rpc.call(event()), { data: undefined }, 'unknown fields are ignored')
  backend.answer = () => ({ code: status.UNIMPLEMENTED })
  await fails(t, all.disconnected.call(event()), 'status')
  t.strictSame(lines, [])
})

t.test('keys of Protobuf maps are never inherited members', async t => {
  const { all } = start(t)
  const tag = Buffer.from([0x0a, 9, ...Buffer.from('__proto__'), 0x12, 1, 0x78])
  backend.answer = () => Buffer.from([0x0a, tag.length + 2, 0x22, tag.length, ...tag])
  const { tags } = await all.publish.call(event())
  t.equal(JSON.stringify(tags), '{"__proto__":"x"}')
})

t.test('calls end early', async t => {
  // Otherwise the deadline would end the call at the backend.
  const { rpc, stats } = start(t, { timeout: '1h' })
  backend.answer = () => null

  await t.test('a call without a waiting client is cancelled', async t => {
    const hookEvent = event({ method: 'left' })
    const call = rpc.call(hookEvent)
    const request = await backend.request(({ fields }) => fields.method === 'left')
    t.match(stats.states(), { 'grpc rpc default': { inflight: 1, down: 0 } })
    const reason = new Error('the client has left')
    HookEvent.abort(hookEvent, reason)
    await t.rejects(call, reason)
    await request.aborted
    t.match(stats.states(), { 'grpc rpc default': { inflight: 0 } })
    await t.rejects(rpc.call(hookEvent), reason, 'no new call starts')
  })

  await t.test('the timeout of the proxy is the deadline sent to the backend', async t => {
    const { rpc } = start(t, { timeout: '50ms' })
    backend.answer = () => null
    await fails(t, rpc.call(event({ method: 'late' })), 'timeout')
    const long = start(t, { timeout: '1h' })
    backend.answer = ({ call }) => ({ result: { data: call.getDeadline() - Date.now() } })
    const left = Number((await long.rpc.call(event())).data.data)
    t.ok(left > 1_800_000 && left <= 3_600_000, `${left} ms`)
  })

  await t.test('a call that timed out is not retried', async t => {
    const connect = { enabled: true, endpoint: backend.url, timeout: '50ms', retries: 2 }
    const { handlers } = startHandlers(t, { client: { proxy: { connect } } })
    backend.requests.length = 0
    backend.answer = () => null
    await fails(t, /** @type {any} */ (handlers.connect).call(event()), 'timeout')
    t.ok(backend.requests.length <= 1)
  })

  await t.test('a call queued before a reload is still made', async t => {
    const { rpc, close } = start(t)
    await close()
    t.strictSame(await Promise.all([rpc.call(event()), rpc.call(event())]), [{}, {}])
  })
})

t.test('client headers that cannot be sent do not count as backend failures', async t => {
  const { rpc, stats } = start(t, { breaker: { failures: 2, interval: '1h' }, emulated_headers: ['x-large'] })
  backend.answer = () => ({ code: status.UNAVAILABLE })
  await fails(t, rpc.call(event()), 'unavailable')
  await fails(t, rpc.call(event({ emulatedHeaders: { 'x-large': 'x'.repeat(70_000) } })), 'data')
  await fails(t, rpc.call(event()), 'unavailable')
  t.match(stats.states(), { 'grpc rpc default': { down: 1 } })
})

t.test('credentials as bytes, and headers forbidden in HTTP/2', async t => {
  for (const [credentials_key, sent] of /** @type {[string, any[]][]} */ ([
    ['X-Key-bin', [Buffer.from('v')]],
    ['Connection', []],
    ['HTTP2-Settings', []],
  ])) {
    const { rpc } = start(t, { grpc: { credentials_key, credentials_value: 'v' } })
    t.strictSame(await rpc.call(event()), {}, credentials_key)
    t.strictSame(backend.requests[0].metadata.get(credentials_key), sent)
  }
})

t.test('calls to an unreachable target fail immediately, and succeed when it is back', async t => {
  const port = await freePort()
  const { rpc, lines, stats } = start(t, {
    endpoint: `127.0.0.1:${port}`,
    timeout: '1h',
    breaker: { failures: 3, interval: '1ms' },
  })
  for (let i = 0; i < 3; i++) await fails(t, rpc.call(event()), 'unreachable')
  t.equal(lines.length, 1, 'one line')
  t.match(stats.states(), { 'grpc rpc default': { down: 1 } })
  const late = await GrpcBackend.start(t, { address: `127.0.0.1:${port}` })
  await until(async () => {
    const kind = await rpc.call(event()).then(
      () => '',
      error => error.kind,
    )
    if (kind !== '') t.match(kind, /^(?:unreachable|unavailable|breaker)$/)
    return kind === ''
  })
  t.equal(late.requests.length, 1)
  t.match(lines.at(-1)?.[1], 'proxy backend is up again')
  const unknown = start(t, { endpoint: 'grpc://localhost.invalid:1', timeout: '1h' })
  await fails(t, unknown.rpc.call(event()), 'unreachable')
})

t.test('other targets', async t => {
  // The path of a socket has at most 107 bytes.
  const folder = tempDir(t)
  const socket = join(folder, 'backend.sock')
  const local = await GrpcBackend.start(t, { address: `unix:${socket}` })
  for (const endpoint of [
    `unix:${socket}`,
    backend.url.toUpperCase(),
    backend.url.slice('grpc://'.length),
    `dns:///127.0.0.1:${backend.port}`,
    `ipv4:127.0.0.1:${backend.port}`,
  ]) {
    t.strictSame(await start(t, { endpoint }).rpc.call(event()), {}, endpoint)
    t.equal(local.requests.length, 1)
  }
})

t.test('TLS, with a certificate of the client', { skip: withoutProgram('openssl') }, async t => {
  const folder = testdir(t)
  const authority = makeAuthority(folder, 'authority')
  const server = authority.sign('server', 'DNS:backend.example')
  const client = authority.sign('client', 'DNS:gateway.example')
  const pair = { private_key: Buffer.from(server.key), cert_chain: Buffer.from(server.pem) }
  const credentials = ServerCredentials.createSsl(Buffer.from(authority.pem), [pair], true)
  const secure = await GrpcBackend.start(t, { credentials })
  const call = more => {
    const tls = {
      enabled: true,
      server_ca_pem: authority.file,
      server_name: 'backend.example',
      cert_pem: client.pem,
      key_pem: Buffer.from(client.key).toString('base64'),
      ...more,
    }
    return start(t, { endpoint: `localhost:${secure.port}`, grpc: { tls } }).rpc.call(event())
  }
  t.strictSame(await call({}), {})
  t.strictSame(await call({ server_name: '', server_ca_pem: '', insecure_skip_verify: true }), {})
  t.equal(secure.requests.length, 2)
  for (const more of [
    { server_name: '' },
    { server_ca_pem: '' },
    { cert_pem: '', key_pem: '' },
    { enabled: false },
  ])
    await fails(t, call(more), 'unreachable')
  t.equal(secure.requests.length, 2)
})

t.test('without the package, one line names the command that installs it', async t => {
  const config = {
    http_server: { address: '127.0.0.1' },
    client: { insecure: true },
    http_api: { disabled: true },
  }
  const folder = testdir(t, {
    'halley.json': JSON.stringify({ ...config, rpc: RPC }),
    'hide.cjs': `const Module = require('node:module')
      const { _resolveFilename } = Module
      Module._resolveFilename = function (name, ...rest) {
        if (!name.startsWith('@grpc/')) return _resolveFilename.call(this, name, ...rest)
        throw Object.assign(new Error(name), { code: 'MODULE_NOT_FOUND' })
      }`,
  })
  const args = ['--require', join(folder, 'hide.cjs'), bin, 'serve', '-c', join(folder, 'halley.json')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await once(child, 'close')
  const [, stderr] = await output
  t.equal(code, 1)
  t.match(
    stderr,
    /^halley: rpc\.proxy\.endpoint: is a gRPC target, [^\n]*: npm install @grpc\/grpc-js[^\n]*\n$/,
  )
})
