import t from 'tap'
import { parseJson, readObject } from '../../../src/backends/api/params.js'
import { publish, readPlain } from '../../../src/backends/api/publish.js'

/** @returns {object | null} a body as read by JSON.parse; null: invalid */
function read(body) {
  try {
    const { exclude_client, exclude_user, users, ...params } = readObject(
      publish.fields,
      parseJson(body),
      body,
    )
    return { ...params, target: null }
  } catch {
    return null
  }
}

const PLAIN = [
  '{"channel":"news","data":{"a":1.0,"b":[1,"}"]}}',
  '{"channel": "news", "data": {"a": 12345678901234567890}}',
  '{"channel":"","data":null}',
  '{"channel":"ä€😀","data":"\\ud800 x"}',
  '{"channel":"a","data": {"b":\r\n1}}',
]

t.test('reads an object with only channel and data', async t => {
  for (const body of PLAIN) {
    t.not(readPlain(body), null, body)
    t.same(readPlain(body), read(body), body)
  }
})

t.test('other forms are left to readObject()', async t => {
  for (const body of [
    '',
    '{}',
    '{"channel":"a"}',
    '{"channel":"a","data":}',
    '{"channel":"a","data":1',
    '{"channel":"a","data":1}}',
    '{"channel":"a","data":  1}',
    '{"channel":"a","data":1 }',
    '{"channel":"a","data":1}\n',
    '{"channel":"a","data":1,"tags":{"b":"c"}}',
    '{"channel":"a","data":1,"data":2}',
    '{"channel":"a","data":1,"channel":"b"}',
    '{"channel":"a","data":{"b":1},"c":{"d":1}}',
    '{"channel":"a\\u0062","data":1}',
    '{"channel":"a\nb","data":1}',
    '{"channel":"a" ,"data":1}',
    '{"channel":1,"data":"x"}',
    '{"data":1,"channel":"a"}',
    '{"channel":"a","b64data":"MQ=="}',
    '["channel"]',
  ])
    t.equal(readPlain(body), null, body)
})

t.test('never differs from readObject() on random input', async t => {
  const letters = [...'{}[]",:\\ \n01aé', '"data":', '"channel":', ',"tags":null', '\0']
  const random = limit => Math.floor(Math.random() * limit)
  for (let i = 0; i < 20_000; i++) {
    let body = PLAIN[random(PLAIN.length)]
    for (let changes = random(3) + 1; changes > 0; changes--) {
      const at = random(body.length + 1)
      body = body.slice(0, at) + letters[random(letters.length)] + body.slice(at + random(3))
    }
    const plain = readPlain(body)
    if (plain !== null) t.same(plain, read(body), JSON.stringify(body))
  }
})
