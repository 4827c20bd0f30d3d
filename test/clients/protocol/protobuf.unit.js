// Replies and pushes in Protobuf, read by the messages of the JavaScript SDK.

import t from 'tap'
import { ProtobufCodec } from '../../../src/clients/protocol/protobuf.js'
import { makePublication as publication } from './publication.js'
import { repliesOf } from './sdk-messages.js'

const codec = new ProtobufCodec()

const reply = encoded => {
  const replies = repliesOf(encoded)
  if (replies.length !== 1) throw new Error(`${replies.length} replies`)
  return replies[0]
}

const DATA = Buffer.from('{"a":1}')
const INFO = '{"user":"u1","client":"c1","conn_info":{ "n" : 1.0 },"chan_info":[2]}'
const INFO_READ = {
  user: 'u1',
  client: 'c1',
  conn_info: Buffer.from('{ "n" : 1.0 }'),
  chan_info: Buffer.from('[2]'),
}

t.test('only temporary errors have the field temporary', async t => {
  t.strictSame(reply(codec.error(3, { code: 102, message: 'unknown channel', temporary: false })), {
    id: 3,
    error: { code: 102, message: 'unknown channel' },
  })
  t.strictSame(reply(codec.error(0xffffffff, { code: 100, message: 'é', temporary: true })), {
    id: 0xffffffff,
    error: { code: 100, message: 'é', temporary: true },
  })
})

t.test('all fields of a connect result have their field numbers', async t => {
  t.strictSame(reply(codec.connect(1, { client: 'c', version: 'v' })), {
    id: 1,
    connect: { client: 'c', version: 'v' },
  })
  const zeros = { expires: false, ttl: 0, data: '', subs: new Map(), ping: 0, pong: false, time: 0 }
  t.strictSame(
    [...Buffer.from(codec.connect(1, { client: 'c', version: 'v', ...zeros, session: '', node: '' }))],
    [10, 0x08, 1, 0x2a, 6, 0x0a, 1, 0x63, 0x12, 1, 0x76],
    'zero values are not written',
  )
  const all = {
    client: 'c',
    version: 'v "1"',
    expires: true,
    ttl: 5,
    ping: 25,
    pong: true,
    session: 's',
    node: 'n',
    time: 1700000000123,
  }
  const subs = new Map([
    ['a"b', { recoverable: true, positioned: true, epoch: 'e', offset: 3 }],
    ['plain', {}],
  ])
  t.strictSame(reply(codec.connect(1, { ...all, data: '{ "raw" : 1.0 }', subs })).connect, {
    ...all,
    data: Buffer.from('{ "raw" : 1.0 }'),
    subs: { 'a"b': subs.get('a"b'), plain: {} },
  })
})

t.test('pushes to compact subscriptions have the id of the channel', async t => {
  t.strictSame(reply(codec.subscribe(2, { id: 300, type: 1 })), { id: 2, subscribe: { id: 300, type: 1 } })
  t.strictSame(reply(codec.publication(300, publication({ offset: 3 }))), {
    push: { id: 300, pub: { data: DATA, offset: 3 } },
  })
  t.strictSame(reply(codec.deltaPublication(300, publication(), Buffer.from('xyz'))), {
    push: { id: 300, pub: { data: Buffer.from('xyz'), delta: true } },
  })
  t.strictSame(reply(codec.event(300, INFO, false)), { push: { id: 300, leave: { info: INFO_READ } } })
})

t.test('all fields of a subscribe result have their field numbers', async t => {
  t.strictSame([...codec.subscribe(2, {})], [4, 0x08, 2, 0x32, 0], 'an empty one is written')
  const all = {
    expires: true,
    ttl: 9,
    recoverable: true,
    epoch: 'e',
    recovered: true,
    offset: 2 ** 52,
    positioned: true,
    was_recovering: true,
  }
  const publications = [
    publication({ offset: 1, epoch: 'e', tags: { k: 'v' }, info: INFO }),
    publication({ offset: 2 ** 52, data: Buffer.from([0, 255, 10]), json: false }),
  ]
  t.strictSame(reply(codec.subscribe(2, { ...all, data: '[1]', publications })).subscribe, {
    ...all,
    data: Buffer.from('[1]'),
    publications: [
      { data: DATA, info: INFO_READ, offset: 1, tags: { k: 'v' } },
      { data: Buffer.from([0, 255, 10]), offset: 2 ** 52 },
    ],
  })
})

t.test('recovered publications of a delta subscription are full or deltas', async t => {
  const publications = [
    publication({ offset: 1, version: 5n }),
    publication({ offset: 2, version: 6n }),
    publication({ offset: 3 }),
  ]
  const deltas = [null, Buffer.from('delta'), null]
  t.strictSame(reply(codec.subscribe(2, { delta: true, publications, deltas })).subscribe, {
    delta: true,
    publications: [
      { data: DATA, offset: 1 },
      { data: Buffer.from('delta'), offset: 2, delta: true },
      { data: DATA, offset: 3 },
    ],
  })
  const subs = new Map([['a', { delta: true, publications, deltas }]])
  t.equal(
    reply(codec.connect(1, { client: 'c', version: 'v', subs })).connect.subs.a.publications[1].delta,
    true,
  )
})

t.test('presence, presence_stats and history replies have all fields', async t => {
  t.strictSame([...codec.presence(1, new Map())], [4, 0x08, 1, 0x4a, 0])
  const presence = new Map([
    ['c1', INFO],
    ['c2', '{"user":"","client":"c2"}'],
  ])
  t.strictSame(reply(codec.presence(1, presence)).presence, {
    presence: { c1: INFO_READ, c2: { client: 'c2' } },
  })
  t.strictSame(reply(codec.presenceStats(1, { clients: 3, users: 0 })), {
    id: 1,
    presence_stats: { num_clients: 3 },
  })
  t.strictSame(reply(codec.history(1, { publications: [], offset: 0, epoch: '' })), { id: 1, history: {} })
  const publications = [publication({ offset: 1, epoch: 'e', version: 7n }), publication({ offset: 2 })]
  t.strictSame(reply(codec.history(1, { publications, offset: 2, epoch: 'e' })).history, {
    publications: [
      { data: DATA, offset: 1, version: 7 },
      { data: DATA, offset: 2 },
    ],
    epoch: 'e',
    offset: 2,
  })
})

t.test('empty results are written, also for a refresh without an expiry', async t => {
  for (const method of ['unsubscribe', 'publish', 'rpc']) {
    t.strictSame(reply(codec.empty(4, method)), { id: 4, [method]: {} })
  }
  for (const method of /** @type {const} */ (['refresh', 'sub_refresh'])) {
    const result = { expires: true, ttl: 5 }
    t.strictSame(reply(codec.refreshed(6, method, result)), { id: 6, [method]: result })
    t.strictSame(reply(codec.refreshed(6, method, { expires: false, ttl: 0 })), { id: 6, [method]: {} })
  }
})

t.test('only publications in history have an offset; the first of a stream has its epoch', async t => {
  const data = DATA
  const tags = { 'é"': '\u2028', '': '' }
  for (const [more, pub] of /** @type {[object, object][]} */ ([
    [{}, { data }],
    [
      { offset: 1, epoch: 'abcd' },
      { data, offset: 1, epoch: 'abcd' },
    ],
    [
      { offset: 2, epoch: 'abcd' },
      { data, offset: 2 },
    ],
    [{ version: 18446744073709551615n }, { data, version: '18446744073709551615' }],
    [{ version: 127n }, { data, version: 127 }],
    [{ version: 128n }, { data, version: 128 }],
    [
      { offset: 3, info: INFO, tags },
      { data, info: INFO_READ, offset: 3, tags },
    ],
    [{ data: Buffer.alloc(0) }, {}],
  ]))
    t.strictSame(reply(codec.publication('news', publication(more))), { push: { channel: 'news', pub } })
})

t.test('each publication has the info of its client', async t => {
  for (const user of ['a', 'b', 'b', 'a', '"é\\']) {
    const info = JSON.stringify({ user, client: `of ${user}` })
    const { pub } = reply(codec.publication('news', publication({ info }))).push
    t.strictSame(pub.info, { user, client: `of ${user}` })
    t.strictSame(reply(codec.event('news', info, true)).push.join, { info: { user, client: `of ${user}` } })
  }
})

t.test('delta subscriptions get deltas or full payloads, without epoch and version', async t => {
  const rest = { offset: 1, tags: { k: 'v' } }
  const first = publication({ ...rest, epoch: 'e', version: 3n })
  const delta = Buffer.from('d')
  const push = pub => ({ push: { channel: 'a', pub: { ...pub, ...rest } } })
  t.same(reply(codec.deltaPublication('a', first, null)), push({ data: DATA }))
  t.same(reply(codec.deltaPublication('a', first, delta)), push({ data: delta, delta: true }))
})

t.test('payloads of every size and channels of every name are encoded', async t => {
  const sizes = [1, 50, 90, 100, 105, 110, 115, 119, 120, 125, 126, 127, 128, 130, 1000, 16_000]
  for (let size = 16_340; size < 16_400; size++) sizes.push(size)
  for (const size of [...sizes, 65_000, 65_536, 200_000, 3_000_000, 10]) {
    const data = Buffer.alloc(size, size)
    for (const channel of ['a', 'x'.repeat(42), 'é'.repeat(42), 'x'.repeat(43), '日本語'.repeat(80)]) {
      const { push } = reply(codec.publication(channel, publication({ data, offset: 5 })))
      if (push.channel !== channel || push.pub.offset !== 5 || !data.equals(push.pub.data)) {
        return t.fail(`${size} bytes in ${channel}`)
      }
    }
  }
  t.strictSame(reply(codec.publication('\ud800', publication())).push.channel, '\ufffd')
})

t.test('a huge history does not affect the next reply', async t => {
  const publications = Array.from({ length: 40 }, (_, i) =>
    publication({ data: Buffer.alloc(100_000, i), offset: i + 1 }),
  )
  const { history } = reply(codec.history(1, { publications, offset: 40, epoch: 'e' }))
  t.equal(history.publications.length, 40)
  t.ok(history.publications[39].data.equals(publications[39].data))
  t.strictSame([...codec.empty(4, 'publish')], [4, 0x08, 4, 0x42, 0])
})

t.test('all other pushes have their fields', async t => {
  const result = { recoverable: true, positioned: true, epoch: 'e', offset: 3, data: '{}' }
  const channel = 'a'
  for (const [push, encode] of /** @type {[object, () => any][]} */ ([
    [{ channel, join: { info: INFO_READ } }, () => codec.event('a', INFO, true)],
    [{ channel, leave: { info: INFO_READ } }, () => codec.event('a', INFO, false)],
    [{ channel, unsubscribe: { code: 2500, reason: 'x' } }, () => codec.unsubscribed('a', 2500, 'x')],
    [{ channel, subscribe: {} }, () => codec.subscribed('a', {})],
    [{ channel, subscribe: { ...result, data: Buffer.from('{}') } }, () => codec.subscribed('a', result)],
    [{ refresh: {} }, () => codec.refresh({ expires: false, ttl: 0 })],
    [{ refresh: { expires: true, ttl: 5 } }, () => codec.refresh({ expires: true, ttl: 5 })],
    [{ disconnect: { code: 3500, reason: 'x' } }, () => codec.disconnect(3500, 'x')],
  ]))
    t.strictSame(reply(encode()), { push })
})

t.test('messages are joined without a separator; a ping is one zero byte', async t => {
  const joined = codec.join([codec.empty(1, 'publish'), codec.ping, codec.empty(2, 'publish')])
  t.strictSame(repliesOf(Buffer.from(joined)), [{ id: 1, publish: {} }, {}, { id: 2, publish: {} }])
})

t.test('a reply is not overwritten by the next message', async t => {
  const first = codec.empty(1, 'publish')
  codec.publication('a', publication({ data: Buffer.alloc(1000, 1) }))
  t.strictSame(reply(first), { id: 1, publish: {} })
})
