// What the JSON codec makes of commands; which frames it refuses is in framing.test.js, over real sockets.

import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { parseCommand, splitFrame } from '../../../src/clients/protocol/json-commands.js'
import { thrown } from '../auth/jwt.js'

t.test('a frame is split into its lines, less a trailing empty one', async t => {
  const split = (/** @type {string} */ text) => splitFrame(Buffer.from(text))
  t.strictSame(split('{}'), ['{}'])
  t.strictSame(split('{}\n'), ['{}'])
  t.strictSame(split('{}\n{}\n'), ['{}', '{}'])
  t.strictSame(split('{"é":1}\r\n{}'), ['{"é":1}\r', '{}'])
  t.equal(
    thrown(() => split('')),
    disconnects.badRequest,
  )
})

t.test('fields come as they are, payloads as their text', async t => {
  t.strictSame(parseCommand('{"id":7,"publish":{"channel":"a","data": { "x" : 1.0 } }}'), {
    id: 7,
    method: 'publish',
    request: { channel: 'a', data: '{ "x" : 1.0 }' },
    ping: false,
  })
  t.equal(
    parseCommand('{"id":7,"publish":{"data":null}}').request.data,
    'null',
    'null is a payload like any other',
  )
  t.equal(parseCommand('{"id":7,"publish":{"channel":"a"}}').request.data, undefined)
  t.equal(
    parseCommand('{"id":7,"publish":{"data":1,"data":[2]}}').request.data,
    '[2]',
    'of two the last counts',
  )
  t.equal(parseCommand('{"id":7,"publish":{"\\u0064ata":"x"}}').request.data, '"x"')
  t.equal(
    parseCommand('{"id":7,"publish":{"data":12345678901234567890}}').request.data,
    '12345678901234567890',
  )
  t.equal(parseCommand('{"id":7,"rpc":{"data":[1,\r2]}}').request.data, '[1,2]', 'less line breaks')
  t.equal(parseCommand('{"id":7,"history":{"channel":"a","since":{"offset":3}}}').request.since.offset, 3)
})

t.test('the recovery state of server-side subscriptions comes as a map', async t => {
  const { request } = parseCommand(
    '{"id":1,"connect":{"subs":{"a":{"recover":true,"offset":7,"epoch":"e","data":[1, 2]},"b":null,"__proto__":{"offset":1}}}}',
  )
  t.strictSame([...request.subs.keys()].sort(), ['__proto__', 'a'])
  t.match(request.subs.get('a'), { recover: true, offset: 7, epoch: 'e', data: '[1, 2]' })
  t.equal(request.subs.get('__proto__').offset, 1)
})

t.test('null is the same as nothing', async t => {
  const { request } = parseCommand(
    '{"id":1,"subscribe":{"channel":"a","token":null,"tf":null,"offset":null}}',
  )
  t.strictSame(request, { channel: 'a', token: undefined, tf: undefined, offset: undefined })
  t.equal(parseCommand('{"id":null}').method, '')
  t.equal(parseCommand('{"connect":null}').method, '')
})

t.test('an empty command is a pong', async t => {
  for (const line of ['{}', ' { } ', '{"id":0}', '{"x":1}', '{}\r']) {
    t.strictSame(parseCommand(line), { id: 0, method: '', request: null, ping: false })
  }
})

t.test(
  'of several requests the first in the order of preference counts, all must be well-formed',
  async t => {
    const order = [
      'connect',
      'subscribe',
      'unsubscribe',
      'publish',
      'presence',
      'presence_stats',
      'history',
      'rpc',
      'send',
      'refresh',
      'sub_refresh',
    ]
    for (let i = 0; i < order.length; i++) {
      const fields = order
        .slice(i)
        .reverse()
        .map(name => `"${name}":{}`)
      t.equal(parseCommand(`{"id":1,${fields.join(',')}}`).method, order[i])
    }
    t.equal(
      thrown(() => parseCommand('{"id":1,"connect":{},"sub_refresh":[]}')),
      disconnects.badRequest,
    )
    t.equal(parseCommand('{"id":1,"ping":{},"rpc":{}}').ping, true)
    t.equal(parseCommand('{"id":1,"ping":null,"rpc":{}}').ping, false)
  },
)

t.test('only the first value of a line is read', async t => {
  for (const rest of ['{"id":2}', ' x', '}', ']', '"', '\u0000']) {
    t.equal(
      parseCommand(`{"id":1,"rpc":{"method":"}{\\"","data":[{"a":"]"}]}}${rest}`).request.data,
      '[{"a":"]"}]',
    )
  }
})

t.test('deep and wide input costs no more than its length', async t => {
  const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
  t.equal(parseCommand(`{"id":1,"rpc":{"data":${deep}}}`).request.data, deep)
  t.equal(
    thrown(() => parseCommand('['.repeat(65_000))),
    disconnects.badRequest,
  )
  t.equal(
    thrown(() => parseCommand('{"a":'.repeat(13_000))),
    disconnects.badRequest,
  )
  t.equal(
    thrown(() => parseCommand(`{"id":1,"rpc":{"data":"${'\\'.repeat(65_000)}`)),
    disconnects.badRequest,
  )
  const node = (/** @type {number} */ depth) => '{"op":"not","nodes":['.repeat(depth) + ']}'.repeat(depth)
  t.ok(parseCommand(`{"id":1,"subscribe":{"channel":"a","tf":${node(20)}}}`).request.tf)
  t.equal(
    thrown(() => parseCommand(`{"id":1,"subscribe":{"channel":"a","tf":${node(2000)}}}`)),
    disconnects.badRequest,
  )
  const fields = Array.from({ length: 5000 }, (_, i) => `"x${i}":${i}`).join(',')
  t.equal(parseCommand(`{"id":1,"rpc":{${fields},"data":1}}`).request.data, '1')
  const subs = Array.from({ length: 2000 }, (_, i) => `"c${i}":{"data":${i}}`).join(',')
  t.equal(parseCommand(`{"id":1,"connect":{"subs":{${subs}}}}`).request.subs.get('c1999').data, '1999')
})

t.test('what waits is counted by its length', async t => {
  t.equal(new JsonCodec().size('{"id":1}'), 8)
})
