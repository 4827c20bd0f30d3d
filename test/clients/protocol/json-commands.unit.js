// Commands and connect requests in JSON; framing.test.js has the refused frames, over real sockets.

import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { parseCommand, parseConnectRequest, splitFrame } from '../../../src/clients/protocol/json-commands.js'
import { requests } from '../../../src/clients/protocol/requests.js'
import { thrown } from '../auth/jwt.js'

const split = text => splitFrame(Buffer.from(text))
const request = text => parseCommand(`{"id":7,${text}}`).request
/** @param {(text: string) => unknown} [parse] */
const refuses = (t, text, parse = parseCommand) => {
  const error = thrown(() => parse(text))
  t.equal(error, disconnects.badRequest, text.slice(0, 40))
}

t.test('a frame is split into lines; an empty last line is dropped', async t => {
  t.strictSame(split('{}'), ['{}'])
  t.strictSame(split('{}\n'), ['{}'])
  t.strictSame(split('{}\n{}\n'), ['{}', '{}'])
  t.strictSame(split('{"é":1}\r\n{}'), ['{"é":1}\r', '{}'])
  refuses(t, '', split)
})

t.test('payloads keep their text', async t => {
  t.strictSame(parseCommand('{"id":7,"publish":{"channel":"a","data": { "x" : 1.0 } }}'), {
    id: 7,
    method: 'publish',
    request: { channel: 'a', data: '{ "x" : 1.0 }' },
    ping: false,
  })
  for (const [fields, data] of [
    ['"data":null', 'null'],
    ['"channel":"a"', undefined],
    ['"data":1,"data":[2]', '[2]'],
    ['"\\u0064ata":"x"', '"x"'],
    ['"data":12345678901234567890', '12345678901234567890'],
    ['"data":[1,\r2]', '[1,2]'],
  ])
    t.equal(request(`"publish":{${fields}}`).data, data, fields)
  t.equal(request('"history":{"channel":"a","since":{"offset":3}}').since.offset, 3)
})

t.test('the recovery state of server-side subscriptions is a map', async t => {
  const { subs } = request(
    '"connect":{"subs":{"a":{"recover":true,"offset":7,"epoch":"e","data":[1, 2]},"b":null,"__proto__":{"offset":1}}}',
  )
  t.strictSame([...subs.keys()].sort(), ['__proto__', 'a'])
  t.match(subs.get('a'), { recover: true, offset: 7, epoch: 'e', data: '[1, 2]' })
  t.equal(subs.get('__proto__').offset, 1)
})

t.test('null means absent', async t => {
  const nulls = request('"subscribe":{"channel":"a","token":null,"tf":null,"offset":null}')
  t.strictSame(nulls, { channel: 'a', token: undefined, tf: undefined, offset: undefined })
  for (const line of ['{"id":null}', '{"connect":null}']) t.equal(parseCommand(line).method, '')
})

t.test('an empty command is a pong', async t => {
  for (const line of ['{}', ' { } ', '{"id":0}', '{"x":1}', '{}\r'])
    t.strictSame(parseCommand(line), { id: 0, method: '', request: null, ping: false })
})

t.test('a command with several requests is read as the first in the order of preference', async t => {
  const order = Object.keys(requests.byName)
  for (let i = 0; i < order.length; i++) {
    const fields = order
      .slice(i)
      .reverse()
      .map(name => `"${name}":{}`)
    t.equal(parseCommand(`{"id":1,${fields.join(',')}}`).method, order[i])
  }
  refuses(t, '{"id":1,"connect":{},"sub_refresh":[]}')
  t.equal(parseCommand('{"id":1,"ping":{},"rpc":{}}').ping, true)
  t.equal(parseCommand('{"id":1,"ping":null,"rpc":{}}').ping, false)
})

t.test('only the first JSON value of a line is read', async t => {
  for (const rest of ['{"id":2}', ' x', '}', ']', '"', '\u0000']) {
    const { data } = parseCommand(`{"id":1,"rpc":{"method":"}{\\"","data":[{"a":"]"}]}}${rest}`).request
    t.equal(data, '[{"a":"]"}]', rest)
  }
})

t.test('deeply nested and wide input takes linear time', async t => {
  const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
  t.equal(request(`"rpc":{"data":${deep}}`).data, deep)
  for (const line of [
    '['.repeat(65_000),
    '{"a":'.repeat(13_000),
    `{"id":1,"rpc":{"data":"${'\\'.repeat(65_000)}`,
  ])
    refuses(t, line)
  const filter = depth =>
    `{"id":1,"subscribe":{"channel":"a","tf":${'{"op":"not","nodes":['.repeat(depth)}${']}'.repeat(depth)}}}`
  t.ok(parseCommand(filter(20)).request.tf)
  refuses(t, filter(2000))
  const fields = Array.from({ length: 5000 }, (_, i) => `"x${i}":${i}`).join(',')
  t.equal(request(`"rpc":{${fields},"data":1}`).data, '1')
  const subs = Array.from({ length: 2000 }, (_, i) => `"c${i}":{"data":${i}}`).join(',')
  t.equal(request(`"connect":{"subs":{${subs}}}`).subs.get('c1999').data, '1999')
})

t.test('the size of a queued command is its length', async t => t.equal(new JsonCodec().size('{"id":1}'), 8))

t.test('a one-way connect request is checked like the connect command', async t => {
  t.strictSame(parseConnectRequest('{}'), {})
  const { token, data, headers, subs } = parseConnectRequest(
    ' {"token":"t","data": {"x":\n1.0 },"headers":null,"unknown":1,"subs":{"news":{"recover":true,"offset":3,"data":[1, 2]},"__proto__":{}}}\n',
  )
  t.strictSame({ token, data, headers }, { token: 't', data: '{"x":1.0 }', headers: undefined })
  t.match(subs.get('news'), { recover: true, offset: 3, data: '[1, 2]' })
  t.ok(subs.has('__proto__'))
  for (const text of [
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
  ])
    refuses(t, text, parseConnectRequest)
})
