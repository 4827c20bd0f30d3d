// The body of a post to the emulation endpoint in Protobuf: it comes from outside and may be anything.

import t from 'tap'
import { readEmulationRequest } from '../../src/protocol/protobuf-commands.js'
import { Random } from '../session/fuzz/random.js'

/** @param {number} tag @param {string | number[]} value */
const field = (tag, value) => [tag, value.length, ...Buffer.from(value)]

/** @param {...number[]} fields */
const read = (...fields) => readEmulationRequest(Buffer.from(fields.flat()))

t.test(
  'node, session and data come in any order, unknown fields are skipped, the last of two counts',
  async t => {
    const whole = { node: 'n', session: 's', data: Buffer.from([0, 255]) }
    t.strictSame(read(field(0x0a, 'n'), field(0x12, 's'), field(0x1a, [0, 255])), whole)
    t.strictSame(
      read(
        field(0x1a, [0, 255]),
        [0x98, 6, 1],
        field(0x12, 'x'),
        field(0xfa, [2, 120]).toSpliced(1, 0, 1),
        field(0x12, 's'),
        field(0x0a, 'n'),
      ),
      whole,
    )
    t.strictSame(read(field(0x12, 's')), { node: '', session: 's', data: Buffer.alloc(0) })
  },
)

t.test('what is none is refused', async t => {
  const wrong = [
    [],
    [0x0a],
    [0x0a, 2, 110],
    [0x1a, 5, 0],
    [0, 0],
    [0x0f, 1],
    [0x0c],
    [0x80],
    [0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f],
  ]
  for (const bytes of wrong) t.equal(read(bytes), undefined, Buffer.from(bytes).toString('hex'))
})

t.test('hostile bytes are a request or none', async t => {
  const random = new Random(7)
  const seed = Buffer.from([
    ...field(0x0a, 'node'),
    ...field(0x12, 'session'),
    ...field(0x1a, 'data'.repeat(10)),
  ])
  let refused = 0
  for (let i = 0; i < 20_000; i++) {
    const body = Buffer.from(seed)
    for (let n = random.below(4); n >= 0; n--) body[random.below(body.length)] = random.below(256)
    const request = readEmulationRequest(body)
    if (request === undefined) refused++
    else if (request.data.length > body.length) return t.fail(body.toString('hex'))
  }
  t.ok(refused > 1000, `${refused} refused`)
})
