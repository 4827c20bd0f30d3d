// The JSON mapping of replies and pushes (client protocol): what is always written, and what is omitted.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { UniJsonCodec } from '../../../src/clients/protocol/uni-json.js'
import { makePublication as publication } from './publication.js'

const codec = new JsonCodec()
const uni = new UniJsonCodec()
const INFO = '{"user":"u","client":"c"}'

t.test('only temporary errors have the field temporary', async t => {
  t.equal(
    codec.error(3, { code: 102, message: 'unknown channel', temporary: false }),
    '{"id":3,"error":{"code":102,"message":"unknown channel"}}',
  )
  t.equal(
    codec.error(1, { code: 100, message: 'a "b"', temporary: true }),
    '{"id":1,"error":{"code":100,"message":"a \\"b\\"","temporary":true}}',
  )
  t.equal(codec.error(1, { code: 0, message: '', temporary: false }), '{"id":1,"error":{}}', 'of a backend')
})

t.test('connect and subscribe results omit zero values', async t => {
  const subZeros = {
    expires: false,
    ttl: 0,
    recoverable: false,
    epoch: '',
    publications: [],
    recovered: false,
  }
  for (const result of [{}, { ...subZeros, offset: 0, positioned: false, data: '', was_recovering: false }])
    t.equal(codec.subscribe(2, result), '{"id":2,"subscribe":{}}')
  const zeros = { expires: false, ttl: 0, data: '', subs: new Map(), ping: 0, pong: false, time: 0 }
  for (const result of [{}, zeros])
    t.equal(
      codec.connect(1, { client: 'c', version: 'v', ...result }),
      '{"id":1,"connect":{"client":"c","version":"v"}}',
    )
})

t.test('pushes to compact subscriptions have the id of the channel', async t => {
  t.equal(codec.subscribe(2, { id: 7, type: 1 }), '{"id":2,"subscribe":{"id":7,"type":1}}')
  const push = (/** @type {Uint8Array} */ bytes) => JSON.parse(Buffer.from(bytes).toString()).push
  const large = Buffer.from(JSON.stringify('x'.repeat(300_000)))
  t.strictSame(push(codec.publication(7, publication({ offset: 3 }))), {
    id: 7,
    pub: { data: { a: 1 }, offset: 3 },
  })
  t.equal(push(codec.publication(2 ** 53 - 1, publication({ data: large }))).pub.data.length, 300_000)
  t.equal(push(codec.deltaPublication(7, publication({ data: large }), null)).pub.data.length, 300_002)
  t.strictSame(push(codec.deltaPublication(7, publication(), Buffer.from('xyz'))), {
    id: 7,
    pub: { data: 'xyz', delta: true },
  })
  t.equal(codec.event(7, INFO, true), `{"push":{"id":7,"join":{"info":${INFO}}}}`)
  t.equal(codec.event(7, INFO, false), `{"push":{"id":7,"leave":{"info":${INFO}}}}`)
})

t.test('a connect result has all fields', async t => {
  const recoverable = { recoverable: true, positioned: true, epoch: 'e', offset: 3 }
  const all = {
    client: 'c',
    version: 'v "1"',
    expires: true,
    ttl: 5,
    data: '{ "raw" : 1.0 }',
    subs: new Map(Object.entries({ 'a"b': recoverable, plain: {} })),
    ping: 25,
    pong: true,
    time: 1700000000000,
  }
  const text = String(codec.connect(1, all))
  t.match(text, '"data":{ "raw" : 1.0 }')
  t.strictSame(JSON.parse(text).connect, {
    ...all,
    data: { raw: 1 },
    subs: { 'a"b': recoverable, plain: {} },
  })
  t.equal(
    uni.connect(1, { ...all, session: 's', node: 'n' }),
    '{"connect":{"client":"c","version":"v \\"1\\"","expires":true,"ttl":5,"data":{ "raw" : 1.0 },"subs":{"a\\"b":' +
      '{"recoverable":true,"epoch":"e","offset":3,"positioned":true},"plain":{}},"ping":25,"session":"s",' +
      '"time":1700000000000}}',
    'a push, without pong and node, for unidirectional clients',
  )
})

t.test('a subscribe result has all fields', async t => {
  const all = {
    expires: true,
    ttl: 9,
    recoverable: true,
    epoch: 'e',
    recovered: true,
    offset: 7,
    positioned: true,
    was_recovering: true,
  }
  const publications = [publication({ offset: 8, epoch: 'e', tags: { k: 'v' }, info: INFO })]
  t.strictSame(JSON.parse(String(codec.subscribe(2, { ...all, data: '[1]', publications }))).subscribe, {
    ...all,
    data: [1],
    publications: [{ data: { a: 1 }, info: JSON.parse(INFO), offset: 8, tags: { k: 'v' } }],
  })
})

for (const [text, encoded] of [
  ['{}', codec.ping],
  ['{"id":1,"presence":{"presence":{}}}', codec.presence(1, new Map())],
  [
    '{"id":1,"presence":{"presence":{"c1":{"user":"","client":"c1"}}}}',
    codec.presence(1, new Map([['c1', '{"user":"","client":"c1"}']])),
  ],
  [
    '{"id":1,"presence_stats":{"num_clients":0,"num_users":0}}',
    codec.presenceStats(1, { clients: 0, users: 0 }),
  ],
  [
    '{"id":1,"history":{"publications":[],"epoch":"","offset":0}}',
    codec.history(1, { publications: [], offset: 0, epoch: '' }),
  ],
  ...['unsubscribe', 'publish', 'rpc'].map(method => [`{"id":4,"${method}":{}}`, codec.empty(4, method)]),
  ['{"id":6,"refresh":{}}', codec.refreshed(6, 'refresh', { expires: false, ttl: 0 })],
  [
    '{"id":6,"sub_refresh":{"expires":true,"ttl":5}}',
    codec.refreshed(6, 'sub_refresh', { expires: true, ttl: 5 }),
  ],
  ['{}\n{"id":1}\n{"é":2}', codec.join(['{}', Buffer.from('{"id":1}'), '{"é":2}'])],
])
  t.equal(encoded, text)

t.test('pushes to one-way clients have no envelope', async t => {
  for (const [push, encode] of /** @type {[string, (codec: JsonCodec) => any][]} */ ([
    [`"channel":"a","join":{"info":${INFO}}`, codec => codec.event('a', INFO, true)],
    [`"channel":"a","leave":{"info":${INFO}}`, codec => codec.event('a', INFO, false)],
    [
      '"channel":"a","unsubscribe":{"code":2500,"reason":"insufficient state"}',
      codec => codec.unsubscribed('a', 2500, 'insufficient state'),
    ],
    ['"channel":"a\\"","subscribe":{}', codec => codec.subscribed('a"', {})],
    [
      '"channel":"a","subscribe":{"offset":3,"data":{}}',
      codec => codec.subscribed('a', { data: '{}', offset: 3 }),
    ],
    ['"refresh":{}', codec => codec.refresh({ expires: false, ttl: 0 })],
    ['"refresh":{"expires":true,"ttl":5}', codec => codec.refresh({ expires: true, ttl: 5 })],
    ['"disconnect":{"code":3500,"reason":"invalid token"}', codec => codec.disconnect(3500, 'invalid token')],
    [
      '"channel":"news","pub":{"data":{"a":1},"offset":1,"tags":{"k":"v"},"epoch":"abcd"}',
      codec => codec.publication('news', publication({ offset: 1, epoch: 'abcd', tags: { k: 'v' } })),
    ],
  ])) {
    t.equal(Buffer.from(encode(codec)).toString(), `{"push":{${push}}}`)
    t.equal(Buffer.from(encode(uni)).toString(), `{${push}}`)
  }
  t.strictSame([uni.ping, uni.unidirectional, uni.binary], ['{}', true, false])
})

t.test('only publications in history have an offset; the first of a stream has its epoch', async t => {
  const push = more => Buffer.from(codec.publication('news', publication(more))).toString()
  t.equal(push({}), '{"push":{"channel":"news","pub":{"data":{"a":1}}}}')
  t.equal(push({ offset: 2, epoch: 'abcd' }), '{"push":{"channel":"news","pub":{"data":{"a":1},"offset":2}}}')
  const tags = { 'é"': '\u2028' }
  const text = push({ offset: 3, epoch: 'e', info: INFO, tags, version: 18446744073709551615n })
  t.match(text, '"version":18446744073709551615', '64-bit integers are numbers')
  t.strictSame(JSON.parse(text).push, {
    channel: 'news',
    pub: { data: { a: 1 }, info: JSON.parse(INFO), offset: 3, tags, version: 18446744073709552000 },
  })
})

t.test('payloads of every size and channels of every name are encoded', async t => {
  for (const size of [1, 1000, 65_000, 65_536, 200_000, 10]) {
    const data = Buffer.from(JSON.stringify('é'.repeat(size / 2)))
    for (const channel of ['a', '"'.repeat(255), '\u0000'.repeat(100), '日本語', '\ud800']) {
      const text = Buffer.from(codec.publication(channel, publication({ data }))).toString()
      t.strictSame(JSON.parse(text), { push: { channel, pub: { data: JSON.parse(data.toString()) } } })
    }
  }
})
