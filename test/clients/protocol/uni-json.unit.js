// What clients that only listen read: bare pushes; and what they send: one bare connect request.

import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { parseConnectRequest } from '../../../src/clients/protocol/json-commands.js'
import { UniJsonCodec } from '../../../src/clients/protocol/uni-json.js'
import { thrown } from '../auth/jwt.js'

const codec = new UniJsonCodec()

const publication = {
  data: Buffer.from('{"a":1}'),
  offset: 1,
  epoch: 'abcd',
  info: '',
  tags: { k: 'v' },
  version: 0n,
  json: true,
  delta: false,
}

t.test('the answer to the connect request is a push with session, without pong and node', async t => {
  const result = {
    client: 'c',
    version: 'v',
    expires: true,
    ttl: 100,
    data: '{ "raw" : 1.0 }',
    subs: new Map([['news', { recoverable: true, positioned: true, epoch: 'e' }]]),
    ping: 25,
    pong: true,
    session: 's',
    node: 'n',
  }
  t.equal(
    codec.connect(1, result),
    '{"connect":{"client":"c","version":"v","expires":true,"ttl":100,"data":{ "raw" : 1.0 },' +
      '"subs":{"news":{"recoverable":true,"epoch":"e","positioned":true}},"ping":25,"session":"s"}}',
  )
})

t.test('pushes go out bare', async t => {
  t.equal(codec.ping, '{}')
  t.equal(
    Buffer.from(codec.publication('news', publication)).toString(),
    '{"channel":"news","pub":{"data":{"a":1},"offset":1,"tags":{"k":"v"},"epoch":"abcd"}}',
  )
  const info = '{"user":"u","client":"c"}'
  t.equal(codec.event('a', info, true), `{"channel":"a","join":{"info":${info}}}`)
  t.equal(codec.event('a', info, false), `{"channel":"a","leave":{"info":${info}}}`)
  t.equal(
    codec.unsubscribed('a', 2000, 'server unsubscribe'),
    '{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}',
  )
  t.equal(
    codec.subscribed('a"', { offset: 3, data: '[]' }),
    '{"channel":"a\\"","subscribe":{"offset":3,"data":[]}}',
  )
  t.equal(codec.refresh({ expires: true, ttl: 9 }), '{"refresh":{"expires":true,"ttl":9}}')
  t.equal(codec.disconnect(3500, 'invalid token'), '{"disconnect":{"code":3500,"reason":"invalid token"}}')
  t.equal(codec.unidirectional, true)
  t.equal(codec.binary, false)
})

t.test('a connect request comes bare, with its fields checked as in a command', async t => {
  t.strictSame(parseConnectRequest('{}'), {})
  const request = parseConnectRequest(
    ' {"token":"t","data": {"x":\n1.0 },"headers":null,"unknown":1,"subs":{"news":{"recover":true,"offset":3,"data":[1, 2]},"__proto__":{}}}\n',
  )
  t.equal(request.token, 't')
  t.equal(request.data, '{"x":1.0 }', 'as it came, on one line')
  t.equal(request.headers, undefined)
  t.match(request.subs.get('news'), { recover: true, offset: 3, data: '[1, 2]' })
  t.ok(request.subs.has('__proto__'))
})

t.test('what is no connect request is a bad request', async t => {
  const wrong = [
    '',
    ' ',
    'null',
    '[]',
    '1',
    '"x"',
    '{',
    '{}{}',
    '{}\n{}',
    '{"token":1}',
    '{"subs":[]}',
    '{"subs":{"a":1}}',
    '{"subs":{"a":{"offset":-1}}}',
    '{"headers":{"a":1}}',
    '{"flag":1.5}',
    '['.repeat(65_000),
  ]
  for (const text of wrong) {
    t.equal(
      thrown(() => parseConnectRequest(text)),
      disconnects.badRequest,
      text.slice(0, 40),
    )
  }
})
