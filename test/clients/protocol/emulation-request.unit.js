// The Protobuf body of a POST to the emulation endpoint: clients may send any bytes.

import t from 'tap'
import { readEmulationRequest } from '../../../src/clients/protocol/protobuf-commands.js'
import { Random } from '../session/fuzz/random.js'

/** @param {number} tag `field << 3 | 2`: 0x0a node, 0x12 session, 0x1a data @param {string | number[]} value */
const field = (tag, value) => [tag, value.length, ...Buffer.from(value)]

/** @param {...number[]} fields */
const read = (...fields) => readEmulationRequest(Buffer.from(fields.flat()))

t.test('fields come in any order, unknown ones are skipped, the last of two counts', async t => {
  const whole = { node: 'n', session: 's', data: Buffer.from([0, 255]) }
  t.strictSame(read(field(0x0a, 'n'), field(0x12, 's'), field(0x1a, [0, 255])), whole)
  t.strictSame(
    read(
      field(0x1a, [0, 255]),
      // Field 99, a varint.
      [0x98, 6, 1],
      field(0x12, 'x'),
      // Field 31, 2 bytes; its tag has two.
      [0xfa, 1, 2, 2, 120],
      field(0x12, 's'),
      field(0x0a, 'n'),
    ),
    whole,
  )
  t.strictSame(read(field(0x12, 's')), { node: '', session: 's', data: Buffer.alloc(0) })
})

t.test('an invalid request is refused', async t => {
  const wrong = [
    [],
    // A tag without a length; lengths beyond the end.
    [0x0a],
    [0x0a, 2, 110],
    [0x1a, 5, 0],
    // Field 0; wire types 7 and 4.
    [0, 0],
    [0x0f, 1],
    [0x0c],
    // An incomplete tag; a length of 4 GB.
    [0x80],
    [0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f],
  ]
  for (const bytes of wrong) t.equal(read(bytes), undefined, Buffer.from(bytes).toString('hex'))
})

t.test('a damaged request is read or refused, and never throws', async t => {
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
