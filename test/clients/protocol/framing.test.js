// The framing of JSON commands and replies (client protocol), over real sockets.

import { once } from 'node:events'
import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { anonymous, history, open, opened, roundTrip } from '../session/support.js'

const BAD = { code: 3501, reason: 'bad request' }
const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...history } },
}

const UNSUBSCRIBE = '"unsubscribe":{"channel":"a"}'

/** Frames of a connected client that close the connection. */
const refused = [
  '',
  '\n',
  `{"id":9,${UNSUBSCRIBE}}\n\n{"id":10,${UNSUBSCRIBE}}`,
  `\n{"id":9,${UNSUBSCRIBE}}`,
  '  ',
  `[{"id":9,${UNSUBSCRIBE}}]`,
  '5',
  '"connect"',
  'hello',
  `{"id":9,${UNSUBSCRIBE}`,
  '{"id":9,"unsubscribe":{"channel":"a}}',
  `{"id":9,\n${UNSUBSCRIBE}}`,
  `5 {"id":9,${UNSUBSCRIBE}}`,
  `{${UNSUBSCRIBE}}`,
  ...['"9"', '-1', '4294967296', '1.5', 'true', '0'].map(id => `{"id":${id},${UNSUBSCRIBE}}`),
  '{"id":9}',
  ...[
    '"unsubscribe":{"channel":5}',
    '"unsubscribe":{"channel":{}}',
    '"unsubscribe":"a"',
    '"unsubscribe":["a"]',
    '"fly":{}',
    '"ping":{}',
    '"connect":{}',
    '"subscribe":{"channel":"a","recover":"yes"}',
    '"subscribe":{"channel":"a","offset":-1}',
    '"subscribe":{"channel":"a","epoch":1}',
    '"subscribe":{"channel":"a","tf":"x"}',
    '"subscribe":{"channel":"a","tf":{"op":"and","nodes":{}}}',
    '"subscribe":{"channel":"a","tf":{"key":"a","cmp":"in","vals":[1]}}',
    '"subscribe":{"channel":"a","delta":"xdelta"}',
    '"history":{"channel":"a","limit":"1"}',
    '"history":{"channel":"a","since":[]}',
    '"history":{"channel":"a","since":{"offset":"1"}}',
    '"history":{"channel":"a","reverse":1}',
    '"rpc":{"method":1}',
    '"refresh":{"token":1}',
    '"subscribe":{"channel":""}',
    '"subscribe":{}',
    '"unsubscribe":{}',
    '"publish":{"data":1}',
    '"presence":{"channel":""}',
    '"presence_stats":{}',
    '"history":{"channel":null}',
    '"sub_refresh":{"token":"x"}',
  ].map(request => `{"id":9,${request}}`),
]

const DONE = { id: 9, unsubscribe: {} }
const NOT_AVAILABLE = { code: 108, message: 'not available' }

/** Frames of a connected client, and the replies. @type {[string, string, any[]][]} */
const accepted = [
  ['one command', `{"id":9,${UNSUBSCRIBE}}`, [DONE]],
  ['a trailing line feed', `{"id":9,${UNSUBSCRIBE}}\n`, [DONE]],
  ['two commands', `{${UNSUBSCRIBE},"id":9}\n{"id":10,${UNSUBSCRIBE}}`, [DONE, { ...DONE, id: 10 }]],
  [
    'carriage returns before line feeds',
    `{"id":9,${UNSUBSCRIBE}}\r\n{"id":10,${UNSUBSCRIBE}}\r\n`,
    [DONE, { ...DONE, id: 10 }],
  ],
  ['white space', ' {\t"id" : 9 , "unsubscribe" : { "channel" : "a" } } ', [DONE]],
  ['a second object on a line is ignored', `{"id":9,${UNSUBSCRIBE}}{"id":10,${UNSUBSCRIBE}}`, [DONE]],
  ['text behind an object is ignored', '{"id":9,"unsubscribe":{"channel":"}\\""}} ]x"', [DONE]],
  ['unknown keys', '{"id":9,"x":[1],"unsubscribe":{"channel":"a","y":{"z":null}}}', [DONE]],
  ['null for other requests', `{"id":9,"connect":null,"publish":null,${UNSUBSCRIBE}}`, [DONE]],
  [
    'null for fields',
    '{"id":9,"subscribe":{"channel":"nulls","token":null,"recover":null,"epoch":null,"offset":null,"tf":null,"flag":null,"delta":null}}',
    [{ id: 9, subscribe: {} }],
  ],
  ['the greatest id', `{"id":4294967295,${UNSUBSCRIBE}}`, [{ ...DONE, id: 4294967295 }]],
  [
    'an id twice',
    `{"id":9,${UNSUBSCRIBE}}\n{"id":9,"rpc":{"method":"x"}}`,
    [DONE, { id: 9, error: NOT_AVAILABLE }],
  ],
  [
    'several requests, of which the first in the order of preference counts',
    `{"id":9,"sub_refresh":{"channel":"a","token":"x"},"rpc":{"method":"x"},${UNSUBSCRIBE}}`,
    [DONE],
  ],
  ['a ping next to a request', `{"id":9,"ping":{},${UNSUBSCRIBE}}`, [{ id: 9, error: NOT_AVAILABLE }]],
  [
    'names of inherited members',
    '{"id":9,"__proto__":{"id":1},"unsubscribe":{"channel":"a","constructor":1,"toString":2}}',
    [DONE],
  ],
]

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })

    t.test('a malformed command closes with 3501', async t => {
      for (const frame of refused) {
        const client = await anonymous(t, gateway)
        client.sendText(frame)
        t.strictSame(await client.closed, BAD, JSON.stringify(frame))
      }
    })

    t.test('commands before a malformed one in the same frame are answered', async t => {
      const client = await anonymous(t, gateway)
      client.sendText('{"id":9,"rpc":{"method":"x"}}\n{"id":10,"publish":{"channel":"before","data":1}}\nx')
      t.strictSame(await client.closed, BAD)
      t.match(client.messages, [{ id: 9 }, { id: 10 }])
      t.equal(client.messages.length, 2)
    })

    t.test('a well-formed command is answered', async t => {
      for (const [name, frame, replies] of accepted) {
        const client = await anonymous(t, gateway)
        client.sendText(frame)
        await roundTrip(client)
        t.strictSame(client.messages, replies, name)
      }
    })

    t.test('binary frames are read like text frames; replies are text frames', async t => {
      const client = await anonymous(t, gateway)
      client.socket.send(Buffer.from('{"id":9,"unsubscribe":{"channel":"a"}}'), { binary: true })
      const [, binary] = await once(client.socket, 'message')
      t.equal(binary, false)
      t.strictSame(await client.next(), { id: 9, unsubscribe: {} })
    })

    t.test('up to 16 replies to a frame are joined, without a trailing line feed', async t => {
      const client = await anonymous(t, gateway)
      client.frames.length = 0
      client.send(...Array.from({ length: 50 }, (_, i) => ({ id: i + 1, unsubscribe: { channel: 'a' } })))
      await client.next(({ id }) => id === 50)
      const lengths = client.frames.map(frame => frame.split('\n').length)
      t.strictSame(lengths, [16, 16, 16, 2])
      t.notOk(client.frames.some(frame => frame.endsWith('\n')))
    })

    t.test('commands of a frame are answered in order, even slow ones', async t => {
      const client = await anonymous(t, gateway)
      const methods = [
        { subscribe: { channel: 'order' } },
        { publish: { channel: 'order', data: 1 } },
        { presence: { channel: 'order' } },
        { unsubscribe: { channel: 'other' } },
        { history: { channel: 'order', limit: -1 } },
        { rpc: {} },
        { publish: { channel: 'order', data: 2 } },
        { presence_stats: { channel: 'order' } },
        { unsubscribe: { channel: 'order' } },
      ]
      client.send(...methods.map((method, i) => ({ id: 100 + i, ...method })))
      await client.next(({ id }) => id === 100 + methods.length - 1)
      const replies = client.messages.filter(({ id }) => id)
      for (const [i, { id }] of replies.entries()) t.equal(id, 100 + i)
      t.equal(replies.length, methods.length - 1)
      t.match(
        client.messages.find(({ id }) => id === 104),
        { history: { publications: [{ data: 1 }] } },
        'each sees the effect of the one before',
      )
    })

    t.test('payloads keep their text except raw line feeds', async t => {
      const client = await anonymous(t, gateway)
      await client.subscribe('payloads')
      const payloads = [
        'null',
        'true',
        '0',
        '-0',
        '1.0',
        '1e2',
        '12345678901234567890',
        '""',
        '[ ]',
        '{ "a" : [1, 2 ] }',
        '"\\u003c\\n\\/\\ud83d\\ude00"',
        '"<>&\u2028 é"',
      ]
      for (const payload of payloads) {
        client.frames.length = 0
        client.sendText(`{"id":50,"publish":{"channel":"payloads","data":${payload}}}`)
        await client.next(({ id }) => id === 50)
        const frame = client.frames.join('\n')
        t.ok(frame.includes(`"pub":{"data":${payload},"info":`), encodeURI(payload))
        await client.push('pub')
      }
      const text = '{\n "nl" : 1 }'
      client.frames.length = 0
      const answer = await fetch(`${gateway.url}/api/publish`, {
        method: 'POST',
        headers: { 'X-API-Key': 'key' },
        body: `{"channel":"payloads","data":${text}}`,
      })
      t.equal(answer.status, 200)
      await client.push('pub')
      t.match(client.frames[0] ?? '', '"data":{ "nl" : 1 }')
    })

    t.test('the first command is connect with an id, or the connection closes with 3501', async t => {
      const first = [
        '{}',
        '{"id":1,"subscribe":{"channel":"a"}}',
        '{"connect":{}}',
        '{"id":0,"connect":{}}',
        '{"send":{"data":1}}',
        '{"id":1}',
        '{"id":1,"connect":[]}',
        '{"id":1,"connect":{"token":1}}',
        '{"id":1,"connect":{"subs":[]}}',
        '{"id":1,"connect":{"subs":{"a":1}}}',
        '{"id":1,"connect":{"subs":{"a":{"offset":"1"}}}}',
        '{"id":1,"connect":{"headers":{"a":1}}}',
      ]
      for (const frame of first) {
        const client = await opened(t, gateway)
        client.sendText(frame)
        t.strictSame(await client.closed, BAD, frame)
        t.strictSame(client.messages, [], 'without a reply')
      }
    })

    t.test('no worker has exited', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
  })
}
