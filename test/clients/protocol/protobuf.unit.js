// What the Protobuf codec writes, read with the messages of the JavaScript SDK: values, numbers, and what is left out.

import t from 'tap'
import { ProtobufCodec } from '../../../src/clients/protocol/protobuf.js'
import { repliesOf } from './sdk-messages.js'

const codec = new ProtobufCodec()

/** @param {any} encoded */
const reply = encoded => {
  const replies = repliesOf(encoded)
  if (replies.length !== 1) throw new Error(`${replies.length} replies`)
  return replies[0]
}

/** @param {object} [more] */
const publication = more => ({
  data: Buffer.from('{"a":1}'),
  offset: 0,
  epoch: '',
  info: '',
  tags: null,
  version: 0n,
  json: true,
  delta: false,
  ...more,
})

const INFO = '{"user":"u1","client":"c1","conn_info":{ "n" : 1.0 },"chan_info":[2]}'
const INFO_READ = {
  user: 'u1',
  client: 'c1',
  conn_info: Buffer.from('{ "n" : 1.0 }'),
  chan_info: Buffer.from('[2]'),
}

t.test('a ping is one zero byte', async t => t.strictSame([...codec.ping], [0]))

t.test('errors tell temporary only when they are', async t => {
  t.strictSame(reply(codec.error(3, { code: 102, message: 'unknown channel', temporary: false })), {
    id: 3,
    error: { code: 102, message: 'unknown channel' },
  })
  t.strictSame(reply(codec.error(0xffffffff, { code: 100, message: 'é', temporary: true })), {
    id: 0xffffffff,
    error: { code: 100, message: 'é', temporary: true },
  })
})

t.test('a connect result has each field under its number', async t => {
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

t.test('a subscribe result has each field under its number', async t => {
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
      { data: Buffer.from('{"a":1}'), info: INFO_READ, offset: 1, tags: { k: 'v' } },
      { data: Buffer.from([0, 255, 10]), offset: 2 ** 52 },
    ],
  })
})

t.test('recovered publications of a delta-negotiated subscription are full or deltas', async t => {
  const publications = [
    publication({ offset: 1, version: 5n }),
    publication({ offset: 2, version: 6n }),
    publication({ offset: 3 }),
  ]
  const deltas = [null, Buffer.from('delta'), null]
  t.strictSame(reply(codec.subscribe(2, { delta: true, publications, deltas })).subscribe, {
    delta: true,
    publications: [
      { data: Buffer.from('{"a":1}'), offset: 1 },
      { data: Buffer.from('delta'), offset: 2, delta: true },
      { data: Buffer.from('{"a":1}'), offset: 3 },
    ],
  })
  const subs = new Map([['a', { delta: true, publications, deltas }]])
  t.equal(
    reply(codec.connect(1, { client: 'c', version: 'v', subs })).connect.subs.a.publications[1].delta,
    true,
  )
})

t.test('presence, its counts and history', async t => {
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
      { data: Buffer.from('{"a":1}'), offset: 1, version: 7 },
      { data: Buffer.from('{"a":1}'), offset: 2 },
    ],
    epoch: 'e',
    offset: 2,
  })
})

t.test('empty results are written, and a refresh of what does not expire any more is one', async t => {
  for (const method of ['unsubscribe', 'publish', 'rpc']) {
    t.strictSame(reply(codec.empty(4, method)), { id: 4, [method]: {} })
  }
  t.strictSame(reply(codec.refreshed(6, 'refresh', { expires: false, ttl: 0 })), { id: 6, refresh: {} })
  t.strictSame(reply(codec.refreshed(6, 'refresh', { expires: true, ttl: 5 })).refresh, {
    expires: true,
    ttl: 5,
  })
  t.strictSame(reply(codec.refreshed(6, 'sub_refresh', { expires: true, ttl: 5 })), {
    id: 6,
    sub_refresh: { expires: true, ttl: 5 },
  })
})

t.test('a publication has an offset only in history, and the first of a stream its epoch', async t => {
  const push = (/** @type {object} */ more) => reply(codec.publication('news', publication(more)))
  const data = Buffer.from('{"a":1}')
  t.strictSame(push({}), { push: { channel: 'news', pub: { data } } })
  t.strictSame(push({ offset: 1, epoch: 'abcd' }).push.pub, { data, offset: 1, epoch: 'abcd' })
  t.strictSame(push({ offset: 2, epoch: 'abcd' }).push.pub, { data, offset: 2 })
  t.strictSame(push({ version: 18446744073709551615n }).push.pub.version, '18446744073709551615')
  t.strictSame(push({ version: 127n }).push.pub.version, 127)
  t.strictSame(push({ version: 128n }).push.pub.version, 128)
  t.strictSame(push({ offset: 3, info: INFO, tags: { 'é"': '\u2028', '': '' } }).push.pub, {
    data,
    info: INFO_READ,
    offset: 3,
    tags: { 'é"': '\u2028', '': '' },
  })
  t.strictSame(push({ data: Buffer.alloc(0) }), { push: { channel: 'news', pub: {} } })
})

t.test('each publication tells of its own client', async t => {
  for (const user of ['a', 'b', 'b', 'a', '"é\\']) {
    const info = JSON.stringify({ user, client: `of ${user}` })
    const { pub } = reply(codec.publication('news', publication({ info }))).push
    t.strictSame(pub.info, { user, client: `of ${user}` })
    t.strictSame(reply(codec.event('news', info, true)).push.join, { info: { user, client: `of ${user}` } })
  }
})

t.test('to delta-negotiated subscriptions go deltas or full payloads, without epoch', async t => {
  const first = publication({ offset: 1, epoch: 'e', version: 3n, tags: { k: 'v' } })
  t.strictSame(reply(codec.deltaPublication('a', first, null)), {
    push: { channel: 'a', pub: { data: Buffer.from('{"a":1}'), offset: 1, tags: { k: 'v' } } },
  })
  t.strictSame(reply(codec.deltaPublication('a', first, Buffer.from('d'))).push.pub, {
    data: Buffer.from('d'),
    offset: 1,
    tags: { k: 'v' },
    delta: true,
  })
})

t.test('payloads of every size and channels of every name fit', async t => {
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

t.test('a huge history does not stay in memory', async t => {
  const publications = Array.from({ length: 40 }, (_, i) =>
    publication({ data: Buffer.alloc(100_000, i), offset: i + 1 }),
  )
  const { history } = reply(codec.history(1, { publications, offset: 40, epoch: 'e' }))
  t.equal(history.publications.length, 40)
  t.ok(history.publications[39].data.equals(publications[39].data))
  t.strictSame([...codec.empty(4, 'publish')], [4, 0x08, 4, 0x42, 0], 'and what follows is whole')
})

t.test('other pushes name their channel', async t => {
  t.strictSame(reply(codec.event('a', INFO, true)), { push: { channel: 'a', join: { info: INFO_READ } } })
  t.strictSame(reply(codec.event('a', INFO, false)), { push: { channel: 'a', leave: { info: INFO_READ } } })
  t.strictSame(reply(codec.unsubscribed('a', 2500, 'insufficient state')), {
    push: { channel: 'a', unsubscribe: { code: 2500, reason: 'insufficient state' } },
  })
  t.strictSame(reply(codec.subscribed('a', {})), { push: { channel: 'a', subscribe: {} } })
  const result = { recoverable: true, positioned: true, epoch: 'e', offset: 3, data: '{}' }
  t.strictSame(reply(codec.subscribed('a', result)).push.subscribe, { ...result, data: Buffer.from('{}') })
})

t.test('pushes without a channel', async t => {
  t.strictSame(reply(codec.refresh({ expires: false, ttl: 0 })), { push: { refresh: {} } })
  t.strictSame(reply(codec.refresh({ expires: true, ttl: 5 })), {
    push: { refresh: { expires: true, ttl: 5 } },
  })
  t.strictSame(reply(codec.disconnect(3500, 'invalid token')), {
    push: { disconnect: { code: 3500, reason: 'invalid token' } },
  })
})

t.test('messages are joined without anything between them', async t => {
  const joined = codec.join([codec.empty(1, 'publish'), codec.ping, codec.empty(2, 'publish')])
  t.strictSame(repliesOf(Buffer.from(joined)), [{ id: 1, publish: {} }, {}, { id: 2, publish: {} }])
})

t.test('what was written stays, except a publication', async t => {
  const first = codec.empty(1, 'publish')
  codec.publication('a', publication({ data: Buffer.alloc(1000, 1) }))
  t.strictSame(reply(first), { id: 1, publish: {} })
})
