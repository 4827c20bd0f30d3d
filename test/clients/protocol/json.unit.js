// The JSON mapping of replies and pushes (client protocol): what is always written, and what is left out.

import t from 'tap'
import { JsonCodec } from '../../../src/clients/protocol/json.js'

const codec = new JsonCodec()

/** @param {object} [more] */
const publication = more => ({
  data: Buffer.from('{"a":1}'),
  offset: 0,
  epoch: '',
  info: '',
  tags: null,
  version: 0n,
  json: true,
  ...more,
})

t.test('a ping is an empty object', async t => t.equal(codec.ping, '{}'))

t.test('errors tell temporary only when they are', async t => {
  t.equal(
    codec.error(3, { code: 102, message: 'unknown channel', temporary: false }),
    '{"id":3,"error":{"code":102,"message":"unknown channel"}}',
  )
  t.strictSame(JSON.parse(String(codec.error(1, { code: 100, message: 'a "b"', temporary: true }))), {
    id: 1,
    error: { code: 100, message: 'a "b"', temporary: true },
  })
})

t.test('a connect result leaves out what is zero', async t => {
  t.equal(codec.connect(1, { client: 'c', version: 'v' }), '{"id":1,"connect":{"client":"c","version":"v"}}')
  const zeros = { expires: false, ttl: 0, data: '', subs: new Map(), ping: 0, pong: false, time: 0 }
  t.equal(
    codec.connect(1, { client: 'c', version: 'v', ...zeros }),
    '{"id":1,"connect":{"client":"c","version":"v"}}',
  )
  const all = {
    client: 'c',
    version: 'v "1"',
    expires: true,
    ttl: 5,
    data: '{ "raw" : 1.0 }',
    subs: new Map([
      ['a"b', { recoverable: true, positioned: true, epoch: 'e', offset: 3 }],
      ['plain', {}],
    ]),
    ping: 25,
    pong: true,
    time: 1700000000000,
  }
  const text = String(codec.connect(1, all))
  t.match(text, '"data":{ "raw" : 1.0 }')
  t.strictSame(JSON.parse(text).connect, {
    ...all,
    data: { raw: 1 },
    subs: { 'a"b': { recoverable: true, positioned: true, epoch: 'e', offset: 3 }, plain: {} },
  })
})

t.test('a subscribe result leaves out what is zero', async t => {
  t.equal(codec.subscribe(2, {}), '{"id":2,"subscribe":{}}')
  const zeros = { expires: false, ttl: 0, recoverable: false, epoch: '', publications: [], recovered: false }
  t.equal(
    codec.subscribe(2, { ...zeros, offset: 0, positioned: false, data: '', was_recovering: false }),
    '{"id":2,"subscribe":{}}',
  )
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
  const publications = [
    publication({ offset: 8, epoch: 'e', tags: { k: 'v' }, info: '{"user":"","client":"x"}' }),
  ]
  t.strictSame(JSON.parse(String(codec.subscribe(2, { ...all, data: '[1]', publications }))).subscribe, {
    ...all,
    data: [1],
    publications: [{ data: { a: 1 }, info: { user: '', client: 'x' }, offset: 8, tags: { k: 'v' } }],
  })
})

t.test('results that are always whole', async t => {
  t.equal(codec.presence(1, new Map()), '{"id":1,"presence":{"presence":{}}}')
  t.equal(
    codec.presence(1, new Map([['c1', '{"user":"","client":"c1"}']])),
    '{"id":1,"presence":{"presence":{"c1":{"user":"","client":"c1"}}}}',
  )
  t.equal(
    codec.presenceStats(1, { clients: 0, users: 0 }),
    '{"id":1,"presence_stats":{"num_clients":0,"num_users":0}}',
  )
  t.equal(
    codec.history(1, { publications: [], offset: 0, epoch: '' }),
    '{"id":1,"history":{"publications":[],"epoch":"","offset":0}}',
  )
  for (const method of ['unsubscribe', 'publish', 'rpc'])
    t.equal(codec.empty(4, method), `{"id":4,"${method}":{}}`)
})

t.test('a refresh of what does not expire any more is empty', async t => {
  t.equal(codec.refreshed(6, 'refresh', { expires: false, ttl: 0 }), '{"id":6,"refresh":{}}')
  t.equal(
    codec.refreshed(6, 'sub_refresh', { expires: true, ttl: 5 }),
    '{"id":6,"sub_refresh":{"expires":true,"ttl":5}}',
  )
  t.equal(codec.refresh({ expires: false, ttl: 0 }), '{"push":{"refresh":{}}}')
  t.equal(codec.refresh({ expires: true, ttl: 5 }), '{"push":{"refresh":{"expires":true,"ttl":5}}}')
})

t.test('a publication has an offset only in history, and the first of a stream its epoch', async t => {
  const push = (/** @type {object} */ more) =>
    Buffer.from(codec.publication('news', publication(more))).toString()
  t.equal(push({}), '{"push":{"channel":"news","pub":{"data":{"a":1}}}}')
  t.equal(
    push({ offset: 1, epoch: 'abcd' }),
    '{"push":{"channel":"news","pub":{"data":{"a":1},"offset":1,"epoch":"abcd"}}}',
  )
  t.equal(push({ offset: 2, epoch: 'abcd' }), '{"push":{"channel":"news","pub":{"data":{"a":1},"offset":2}}}')
  t.strictSame(
    JSON.parse(
      push({
        offset: 3,
        epoch: 'e',
        info: '{"user":"u","client":"c"}',
        tags: { 'é"': '\u2028' },
        version: 18446744073709551615n,
      }),
    ),
    {
      push: {
        channel: 'news',
        pub: {
          data: { a: 1 },
          info: { user: 'u', client: 'c' },
          offset: 3,
          tags: { 'é"': '\u2028' },
          version: 18446744073709552000,
        },
      },
    },
  )
  t.match(
    push({ version: 18446744073709551615n }),
    '"version":18446744073709551615',
    '64-bit integers are numbers',
  )
})

t.test('payloads of every size and channels of every name fit', async t => {
  for (const size of [1, 1000, 65_000, 65_536, 200_000, 10]) {
    const data = Buffer.from(JSON.stringify('é'.repeat(size / 2)))
    for (const channel of ['a', '"'.repeat(255), '\u0000'.repeat(100), '日本語', '\ud800']) {
      const text = Buffer.from(codec.publication(channel, publication({ data }))).toString()
      t.strictSame(JSON.parse(text), { push: { channel, pub: { data: JSON.parse(data.toString()) } } })
    }
  }
})

t.test('other pushes name their channel', async t => {
  const info = '{"user":"u","client":"c"}'
  t.equal(codec.event('a', info, true), `{"push":{"channel":"a","join":{"info":${info}}}}`)
  t.equal(codec.event('a', info, false), `{"push":{"channel":"a","leave":{"info":${info}}}}`)
  t.equal(
    codec.unsubscribed('a', 2500, 'insufficient state'),
    '{"push":{"channel":"a","unsubscribe":{"code":2500,"reason":"insufficient state"}}}',
  )
  t.equal(codec.subscribed('a', {}), '{"push":{"channel":"a","subscribe":{}}}')
  t.equal(
    codec.subscribed('a', { data: '{}', offset: 3 }),
    '{"push":{"channel":"a","subscribe":{"offset":3,"data":{}}}}',
  )
})

t.test('messages are joined with one line feed, texts and bytes alike', async t => {
  t.equal(codec.join(['{}', Buffer.from('{"id":1}'), '{"é":2}']), '{}\n{"id":1}\n{"é":2}')
})
