import t from 'tap'
import { Stream } from '../../../../src/channels/broker/embedded/stream.js'

const offsets = entries => entries.map(({ offset }) => offset)

/** The same in the simplest way. */
class Model {
  all = []
  kept = 0
  add(size) {
    this.all.push(this.all.length + 1)
    this.kept = Math.min(this.kept + 1, size)
  }
  get entries() {
    return this.kept === 0 ? [] : this.all.slice(-this.kept)
  }
  read(since, limit, reverse) {
    const { entries } = this
    if (since !== undefined && since > this.all.length) return []
    let list = reverse ? [...entries].reverse() : entries
    if (since !== undefined) {
      list = list.filter(offset => (reverse ? offset < since : offset > since))
      if (reverse && list[0] !== since - 1) list = []
    }
    return limit < 0 ? list : list.slice(0, limit)
  }
}

t.test('a stream behaves like an array', async t => {
  let seed = 42
  const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  for (let round = 0; round < 20; round++) {
    const stream = new Stream('epoch')
    const model = new Model()
    const faults = []
    for (let step = 0; step < 300; step++) {
      if (random(60) === 0) {
        stream.clear()
        model.kept = 0
      } else {
        const size = 1 + random(round % 2 ? 120 : 5)
        stream.add(0, 'x'.repeat(random(50)), size)
        model.add(size)
      }
      const since = random(4) ? random(stream.top + 4) : undefined
      const limit = random(10) - 1
      const reverse = random(2) === 1
      const got = offsets(stream.read(since, limit, reverse))
      const wanted = model.read(since, limit, reverse)
      if (String(got) !== String(wanted)) faults.push({ since, limit, reverse, got, wanted })
      if (stream.length !== model.kept || stream.top !== model.all.length) faults.push('size')
    }
    t.same(faults, [])
  }
})

t.test('the byte count is that of the kept entries', async t => {
  const stream = new Stream('epoch')
  stream.add(0, 'x'.repeat(1000), 2)
  const one = stream.bytes
  t.ok(one > 1000)
  stream.add(0, 'x'.repeat(1000), 2)
  t.equal(stream.bytes, 2 * one)
  stream.add(0, 'x'.repeat(1000), 2)
  t.equal(stream.bytes, 2 * one)
  stream.clear()
  t.equal(stream.bytes, 0)
})

t.test('newest() is in ascending order', async t => {
  const stream = new Stream('epoch')
  t.same(stream.newest(-1), [])
  for (let i = 0; i < 5; i++) stream.add(0, '', 3)
  t.same(offsets(stream.newest(-1)), [3, 4, 5])
  t.same(offsets(stream.newest(1)), [5])
  t.same(offsets(stream.newest(99)), [3, 4, 5])
})
