import { isUtf8 } from 'node:buffer'
import { applyDelta, createDelta } from 'fossil-delta'
import t from 'tap'
import { DeltaEncoder } from '../../../src/clients/protocol/delta.js'
import { chance } from '../delta/chance.js'

const encoder = new DeltaEncoder()

/** Decoded by the package, which checks length and checksum. */
const applied = (base, delta) => Buffer.from(applyDelta(base, delta)).toString('latin1')

/** Checks that a delta is shorter than the target, and applies. @returns {Buffer | null} */
function checked(t, base, target, message) {
  const delta = encoder.encode(base, target)
  if (delta === null) return null
  if (delta.length >= target.length) t.fail(`${message}: ${delta.length} bytes for ${target.length}`)
  if (applied(base, delta) !== target.toString('latin1')) t.fail(`${message}: not the target`)
  if (isUtf8(target) && !isUtf8(delta)) t.fail(`${message}: not UTF-8`)
  return delta
}

t.test('a changed digit is a copy, the digit, a copy and the checksum', async t => {
  const text = n => Buffer.from(`{"t":"${'lorem ipsum '.repeat(18).slice(0, 213)}","n":${n}}`)
  t.equal(text(1).length, 227)
  const delta = checked(t, text(1), text(2), 'one digit')
  // The example of the client protocol: 227 is 3Z in base 64, 225 is 3X.
  t.match(delta?.toString(), /^3Z\n3X@0,2:2\}[\w~]{1,6};$/)
})

t.test('an identical payload is one copy', async t => {
  const text = Buffer.alloc(64, '{"some":"payload"}')
  t.match(checked(t, text, text, 'same')?.toString(), /^10\n10@0,[\w~]{1,6};$/)
})

t.test('no delta is made if it would not be shorter', async t => {
  for (const [base, target] of [
    ['', ''],
    ['{}', '{}'],
    ['', 'x'.repeat(100)],
    ['x'.repeat(100), ''],
    ['{"a":1}', '{"a":2}'],
    ['abcdefghijklmno', 'abcdefghijklmno'],
    ['0123456789'.repeat(10), 'abcdefghij'.repeat(10)],
  ])
    t.equal(checked(t, Buffer.from(base), Buffer.from(target), target), null)
})

t.test('copies never split a character', async t => {
  // Characters of the last one end in the same bytes.
  const alphabets = [
    'éèêëàâ',
    'абвгдежзийклмнопрстуф',
    '敏捷的棕色狐狸跳过了懒惰的狗',
    '😀😁😂🤣😃😄😅😆',
    'aé敏😀',
    'аѰбѱ敏畏😀🚀éĩ',
  ]
  const random = chance(1)
  let deltas = 0
  for (const alphabet of alphabets) {
    const letters = [...alphabet]
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: random.below(400) }, () => random.pick(letters))
      const base = Buffer.from(text.join(''))
      for (let edits = random.below(8); edits >= 0; edits--) {
        text.splice(random.below(text.length + 1), random.below(3), random.pick(letters))
      }
      if (checked(t, base, Buffer.from(text.join('')), `${alphabet} ${round}`)) deltas++
    }
  }
  t.ok(deltas > 500, `${deltas} deltas`)
})

t.test('a delta restores the target for any edits, moves and repetitions', async t => {
  const random = chance(2)
  let deltas = 0
  for (let round = 0; round < 3000; round++) {
    const letters = random.pick([1, 2, 4, 64, 256])
    const some = length => Buffer.from(Array.from({ length }, () => random.below(letters)))
    const base = some(random.below(random.pick([10, 100, 3000])))
    let target = base
    for (let edits = random.below(6); edits > 0; edits--) {
      const [from, to] = [random.below(target.length + 1), random.below(target.length + 1)].sort(
        (a, b) => a - b,
      )
      const [head, middle, tail] = [target.subarray(0, from), target.subarray(from, to), target.subarray(to)]
      target = Buffer.concat(
        random.pick([
          [head, some(random.below(40)), middle, tail],
          [head, tail],
          [middle, head, tail],
          [tail, middle, head],
          [head, middle, middle, tail],
        ]),
      )
    }
    if (checked(t, base, target, `round ${round}`)) deltas++
  }
  t.ok(deltas > 1000, `${deltas} deltas`)
})

t.test('large payloads do not affect later ones', async t => {
  const random = chance(3)
  for (const size of [200_000, 50, 3_000_000, 4000, 64 * 1024]) {
    const base = Buffer.from(Array.from({ length: size }, () => random.below(256)))
    const target = Buffer.from(base)
    for (let edits = 0; edits < 5; edits++) target[random.below(size)] ^= 1
    const moved = Buffer.concat([target.subarray(size / 2), target.subarray(0, size / 2)])
    t.ok((checked(t, base, moved, `${size} bytes`)?.length ?? size) <= size / 4 + 50, `${size} bytes`)
  }
})

t.test('deltas are about as short as those of the fossil-delta package', async t => {
  const random = chance(4)
  const rows = Array.from({ length: 60 }, (_, id) => ({ id, name: `row ${id}`, price: 100, open: true }))
  let ours = 0
  let theirs = 0
  let base = Buffer.from(JSON.stringify(rows))
  for (let round = 0; round < 50; round++) {
    for (let edits = 0; edits < 5; edits++) random.pick(rows).price = random.below(100_000) / 100
    const target = Buffer.from(JSON.stringify(rows))
    ours += checked(t, base, target, `round ${round}`)?.length ?? target.length
    theirs += createDelta(base, target).length
    base = target
  }
  t.ok(ours < theirs * 1.1, `${ours} against ${theirs} bytes`)
})

/** Counts the reads of single bytes. */
function counted(bytes) {
  let reads = 0
  const proxy = new Proxy(bytes, {
    get(target, name) {
      if (typeof name === 'string' && name >= '0' && name <= '9~') reads++
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { bytes: proxy, reads: () => reads }
}

t.test('no input takes more than linear work', async t => {
  const SIZE = 2000
  const fill = (word, first) => Buffer.alloc(SIZE, word).fill(first, 0, 1)
  const continuing = length => Buffer.concat([Buffer.alloc(length, 0x80), Buffer.from('a')])
  // Everything matches, nothing does, or matches are trimmed at the borders of characters.
  const hostile = {
    'one byte': [fill('a', 'b'), fill('a', 'c')],
    'continuation bytes': [fill(0x80, 'b'), fill(0x80, 'c')],
    'characters of four bytes': [fill('😀', 'b'), fill('😀', 'c')],
    'period of a window': [fill('abcdefghijkl', 'x'), fill('abcdefghijkl', 'y')],
    'another period': [Buffer.alloc(SIZE, 'abcdefghijkl'), Buffer.alloc(SIZE, 'abcdefghijklx')],
    'nearly a window': [fill('abcdefghijk0', 'x'), fill('abcdefghijk1', 'y')],
    'continuation bytes, now and then another': [fill(continuing(40), 'b'), fill(continuing(41), 'c')],
  }
  for (const [name, pair] of Object.entries(hostile)) {
    const [base, target] = pair.map(counted)
    new DeltaEncoder().encode(base.bytes, target.bytes)
    const reads = base.reads() + target.reads()
    t.ok(reads < 50 * SIZE, `${name}: ${reads} reads for ${SIZE} bytes`)
    checked(t, pair[0], pair[1], name)
  }
})
