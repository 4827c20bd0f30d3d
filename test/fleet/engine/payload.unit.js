import t from 'tap'
import { makePayload, PayloadReader } from '../../../fleet/drone/engine/payload.js'

const numbers = { t: 1_795_267_980_383_811, s: 17, c: 3_735_928_559, e: 597_123_456, m: 1, o: -250 }
const reader = new PayloadReader()

/** @param {string} text */
const read = text => {
  const bytes = Buffer.from(text)
  return reader.read(bytes, 0, bytes.length)
}

t.test('a payload has the requested length and is found in any envelope', async t => {
  const payload = makePayload(numbers, 200, false)
  t.equal(payload.length, 200)
  t.match(JSON.parse(payload), numbers)
  for (const [before, after, offset] of /** @type {const} */ ([
    ['{"push":{"channel":"s1","pub":{"data":', '}}}', 0],
    ['{"push":{"channel":"s1","pub":{"data":', ',"offset":1234567}}}', 1_234_567],
    ['{"push":{"channel":"s1","pub":{"data":', ',"other":7}}}', 0],
    ['{"channel":"ü","pub":{"data":', ',"tags":{"a":"b"},"offset":3}}', 3],
    ['\x0a\x02s1\x12\x7f', '\x08\x01', 0],
  ]))
    t.match(
      [read(before + payload + after), { ...reader }],
      [true, { ...numbers, again: false, offset }],
      before,
    )
  t.ok(read(makePayload(numbers, 0, true)))
  t.ok(reader.again)
})

t.test('incomplete payloads are detected', async t => {
  const payload = makePayload(numbers, 300, false)
  const odd = []
  // Empty, a part, one letter less, one letter more, and each number missing.
  for (const text of [
    '',
    '{"t":',
    '{"push":{"channel":"s1","pub":{"data":{"text":"hello, this is somebody else\'s publication"}}}}',
    payload.slice(0, -1),
    payload.replace('bcdef', 'bcef'),
    payload.replace('bcdef', 'bcddef'),
    ...['t', 's', 'c', 'e', 'm', 'o', 'p'].map(key => payload.replace(`"${key}":`, `"x":`)),
    payload.replace('"s":17', '"s":'),
    payload.replace('300.', '299.'),
    payload.replace('300.', '300,'),
  ])
    if (read(text)) odd.push(text)
  t.same(odd, [])
  for (let length = 0; length < payload.length; length += 7)
    if (read(payload.slice(0, length))) odd.push(length)
  t.same(odd, [])
})
