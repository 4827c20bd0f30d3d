// The framing of JSON commands and replies (client protocol), over real sockets.

import t from 'tap'
import { drivers } from '../../kit/drivers.js'
import { fetch } from '../../kit/fetch.js'
import { startGateway } from '../../kit/gateway.js'
import { anonymous, history, open, roundTrip, stranger } from '../session/support.js'

const BAD = { code: 3501, reason: 'bad request' }
const config = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { ...open, ...history } },
}

/** What ends a connection, sent as one frame by a client that is connected. */
const refused = [
  ['an empty frame', ''],
  ['a lone line feed', '\n'],
  [
    'an empty line before the last object',
    '{"id":9,"unsubscribe":{"channel":"a"}}\n\n{"id":10,"unsubscribe":{"channel":"a"}}',
  ],
  ['an empty first line', '\n{"id":9,"unsubscribe":{"channel":"a"}}'],
  ['white space only', '  '],
  ['a JSON array', '[{"id":9,"unsubscribe":{"channel":"a"}}]'],
  ['a number', '5'],
  ['a string', '"connect"'],
  ['text', 'hello'],
  ['half an object', '{"id":9,"unsubscribe":{"channel":"a"}'],
  ['an unfinished string', '{"id":9,"unsubscribe":{"channel":"a}}'],
  ['a raw line feed within an object', '{"id":9,\n"unsubscribe":{"channel":"a"}}'],
  ['another value before the object', '5 {"id":9,"unsubscribe":{"channel":"a"}}'],
  ['a channel that is a number', '{"id":9,"unsubscribe":{"channel":5}}'],
  ['a channel that is an object', '{"id":9,"unsubscribe":{"channel":{}}}'],
  ['an id that is text', '{"id":"9","unsubscribe":{"channel":"a"}}'],
  ['an id below 0', '{"id":-1,"unsubscribe":{"channel":"a"}}'],
  ['an id above 32 bits', '{"id":4294967296,"unsubscribe":{"channel":"a"}}'],
  ['an id that is not whole', '{"id":1.5,"unsubscribe":{"channel":"a"}}'],
  ['an id that is true', '{"id":true,"unsubscribe":{"channel":"a"}}'],
  ['no id', '{"unsubscribe":{"channel":"a"}}'],
  ['id 0', '{"id":0,"unsubscribe":{"channel":"a"}}'],
  ['a request that is text', '{"id":9,"unsubscribe":"a"}'],
  ['a request that is a list', '{"id":9,"unsubscribe":["a"]}'],
  ['an unknown command', '{"id":9,"fly":{}}'],
  ['a command without a request', '{"id":9}'],
  ['a ping command', '{"id":2,"ping":{}}'],
  ['recover that is text', '{"id":9,"subscribe":{"channel":"a","recover":"yes"}}'],
  ['an offset below 0', '{"id":9,"subscribe":{"channel":"a","offset":-1}}'],
  ['an epoch that is a number', '{"id":9,"subscribe":{"channel":"a","epoch":1}}'],
  ['a limit that is text', '{"id":9,"history":{"channel":"a","limit":"1"}}'],
  ['since that is a list', '{"id":9,"history":{"channel":"a","since":[]}}'],
  ['since.offset that is text', '{"id":9,"history":{"channel":"a","since":{"offset":"1"}}}'],
  ['reverse that is a number', '{"id":9,"history":{"channel":"a","reverse":1}}'],
  ['a filter that is text', '{"id":9,"subscribe":{"channel":"a","tf":"x"}}'],
  ['filter nodes that are no list', '{"id":9,"subscribe":{"channel":"a","tf":{"op":"and","nodes":{}}}}'],
  [
    'a filter value list with a number',
    '{"id":9,"subscribe":{"channel":"a","tf":{"key":"a","cmp":"in","vals":[1]}}}',
  ],
  ['a method that is a number', '{"id":9,"rpc":{"method":1}}'],
  ['a token that is a number', '{"id":9,"refresh":{"token":1}}'],
  ['a second connect', '{"id":9,"connect":{}}'],
  ['an empty channel to subscribe to', '{"id":9,"subscribe":{"channel":""}}'],
  ['no channel to subscribe to', '{"id":9,"subscribe":{}}'],
  ['an empty channel to unsubscribe from', '{"id":9,"unsubscribe":{}}'],
  ['an empty channel to publish to', '{"id":9,"publish":{"data":1}}'],
  ['an empty channel for presence', '{"id":9,"presence":{"channel":""}}'],
  ['an empty channel for presence_stats', '{"id":9,"presence_stats":{}}'],
  ['an empty channel for history', '{"id":9,"history":{"channel":null}}'],
  ['an empty channel for sub_refresh', '{"id":9,"sub_refresh":{"token":"x"}}'],
  ['an unknown delta type', '{"id":9,"subscribe":{"channel":"a","delta":"xdelta"}}'],
]

/** What a connected client may send, and the replies. */
const accepted = [
  ['one command', '{"id":9,"unsubscribe":{"channel":"a"}}', [{ id: 9, unsubscribe: {} }]],
  ['a trailing line feed', '{"id":9,"unsubscribe":{"channel":"a"}}\n', [{ id: 9, unsubscribe: {} }]],
  [
    'two commands',
    '{"unsubscribe":{"channel":"a"},"id":9}\n{"id":10,"unsubscribe":{"channel":"b"}}',
    [
      { id: 9, unsubscribe: {} },
      { id: 10, unsubscribe: {} },
    ],
  ],
  [
    'carriage returns before line feeds',
    '{"id":9,"unsubscribe":{"channel":"a"}}\r\n{"id":10,"unsubscribe":{"channel":"a"}}\r\n',
    [
      { id: 9, unsubscribe: {} },
      { id: 10, unsubscribe: {} },
    ],
  ],
  ['white space', ' {\t"id" : 9 , "unsubscribe" : { "channel" : "a" } } ', [{ id: 9, unsubscribe: {} }]],
  [
    'a second object on a line, which is lost',
    '{"id":9,"unsubscribe":{"channel":"a"}}{"id":10,"unsubscribe":{"channel":"a"}}',
    [{ id: 9, unsubscribe: {} }],
  ],
  [
    'anything behind an object, which is lost',
    '{"id":9,"unsubscribe":{"channel":"}\\""}} ]x"',
    [{ id: 9, unsubscribe: {} }],
  ],
  [
    'unknown keys',
    '{"id":9,"x":[1],"unsubscribe":{"channel":"a","y":{"z":null}}}',
    [{ id: 9, unsubscribe: {} }],
  ],
  [
    'null for other requests',
    '{"id":9,"connect":null,"publish":null,"unsubscribe":{"channel":"a"}}',
    [{ id: 9, unsubscribe: {} }],
  ],
  [
    'null for fields',
    '{"id":9,"subscribe":{"channel":"nulls","token":null,"recover":null,"epoch":null,"offset":null,"tf":null,"flag":null,"delta":null}}',
    [{ id: 9, subscribe: {} }],
  ],
  [
    'the greatest id',
    '{"id":4294967295,"unsubscribe":{"channel":"a"}}',
    [{ id: 4294967295, unsubscribe: {} }],
  ],
  [
    'one id twice, one after the other',
    '{"id":9,"unsubscribe":{"channel":"a"}}\n{"id":9,"rpc":{"method":"x"}}',
    [
      { id: 9, unsubscribe: {} },
      { id: 9, error: { code: 108, message: 'not available' } },
    ],
  ],
  [
    'several requests in one command, of which the first in the order of preference counts',
    '{"id":9,"sub_refresh":{"channel":"a","token":"x"},"rpc":{"method":"x"},"unsubscribe":{"channel":"a"}}',
    [{ id: 9, unsubscribe: {} }],
  ],
  [
    'a ping next to a request, which is refused',
    '{"id":9,"ping":{},"unsubscribe":{"channel":"a"}}',
    [{ id: 9, error: { code: 108, message: 'not available' } }],
  ],
  [
    'keys that objects inherit',
    '{"id":9,"__proto__":{"id":1},"unsubscribe":{"channel":"a","constructor":1,"toString":2}}',
    [{ id: 9, unsubscribe: {} }],
  ],
]

for (const driver of drivers) {
  t.test(driver, async t => {
    const gateway = await startGateway(t, { ...config, workers: 1, http_server: { driver } })

    t.test('what is not a command closes with 3501', async t => {
      for (const [name, frame] of refused) {
        const client = await anonymous(t, gateway)
        client.sendText(frame)
        t.strictSame(await client.closed, BAD, name)
      }
    })

    t.test('commands before a bad one in the same frame are answered', async t => {
      const client = await anonymous(t, gateway)
      client.sendText('{"id":9,"rpc":{"method":"x"}}\n{"id":10,"publish":{"channel":"before","data":1}}\nx')
      t.strictSame(await client.closed, BAD)
      t.strictSame(
        client.messages.map(({ id }) => id),
        [9, 10],
      )
    })

    t.test('what is a command is answered', async t => {
      for (const [name, frame, replies] of accepted) {
        const client = await anonymous(t, gateway)
        client.sendText(/** @type {string} */ (frame))
        await roundTrip(client)
        t.strictSame(client.messages, replies, /** @type {string} */ (name))
      }
    })

    t.test('binary frames are read like text frames, and answered with text frames', async t => {
      const client = await anonymous(t, gateway)
      client.socket.send(Buffer.from('{"id":9,"unsubscribe":{"channel":"a"}}'), { binary: true })
      const binary = await new Promise(resolve =>
        client.socket.once('message', (_, binary) => resolve(binary)),
      )
      t.equal(binary, false)
      t.strictSame(await client.next(), { id: 9, unsubscribe: {} })
    })

    t.test(
      'replies to one frame are joined, at most 16 in a frame, without a trailing line feed',
      async t => {
        const client = await anonymous(t, gateway)
        client.frames.length = 0
        const commands = Array.from({ length: 50 }, (_, i) => ({ id: i + 1, unsubscribe: { channel: 'a' } }))
        client.send(...commands)
        await client.next(({ id }) => id === 50)
        t.strictSame(
          client.frames.map(frame => frame.split('\n').length),
          [16, 16, 16, 2],
        )
        t.notOk(client.frames.some(frame => frame.endsWith('\n')))
      },
    )

    t.test('commands of a frame are answered in their order, slow ones too', async t => {
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
      const ids = client.messages.filter(({ id }) => id).map(({ id }) => id)
      t.strictSame(
        ids,
        methods.slice(0, -1).map((_, i) => 100 + i),
      )
      t.match(
        client.messages.find(({ id }) => id === 104),
        { history: { publications: [{ data: 1 }] } },
        'each sees what the one before has done',
      )
    })

    t.test('payloads keep their text but for raw line feeds', async t => {
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
        const client = await stranger(t, gateway)
        client.sendText(frame)
        t.strictSame(await client.closed, BAD, frame)
        t.strictSame(client.messages, [], 'nothing is answered')
      }
    })

    t.test('no worker has died', async t => t.notOk(gateway.lines.some(({ msg }) => msg === 'worker died')))
  })
}
