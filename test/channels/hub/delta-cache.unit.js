import t from 'tap'
import { DeltaCache } from '../../../src/channels/hub/deltas.js'

/** @param {(target: Buffer) => Buffer | null} make */
function counting(make) {
  let calls = 0
  const encoder = {
    encode(_base, target) {
      calls++
      return make(target)
    },
  }
  return { cache: new DeltaCache(/** @type {any} */ (encoder)), calls: () => calls }
}

const publications = (count, from = 1, rest = {}) =>
  Array.from({ length: count }, (_, i) => ({
    ...{ data: Buffer.from(`payload ${from + i}`), offset: from + i, epoch: 'epoch', info: '', tags: null },
    ...{ version: 0n, json: true, delta: true, ...rest },
  }))

t.test('many who recover the same publications: each delta is made once', async t => {
  const { cache, calls } = counting(target => target.subarray(0, 1))
  for (let n = 0; n < 100; n++) t.equal(cache.between('x', publications(5))[4]?.toString(), 'p')
  t.equal(calls(), 4, 'none for the first one')
  cache.between('x', publications(5, 3))
  t.equal(calls(), 6, 'those that were not there yet')
  cache.between('y', publications(5))
  cache.between('x', publications(5, 1, { epoch: 'next' }))
  t.equal(calls(), 14, 'other channels and other lives of the stream have their own')
})

t.test('that there is no delta is remembered, too', async t => {
  const { cache, calls } = counting(() => null)
  for (let n = 0; n < 3; n++) t.same(cache.between('x', publications(3)), [null, null, null])
  t.equal(calls(), 2)
})

t.test('nothing against what is not directly before it; the flag is for those who listen', async t => {
  const { cache } = counting(target => target)
  const [one, two, , four, five] = publications(5)
  t.same(
    cache.between('x', [one, { ...two, delta: false }, four, five]).map(delta => delta !== null),
    [false, true, false, true],
  )
  t.same(cache.between('x', []), [])
})

t.test('it keeps about a megabyte, and the newest ones', async t => {
  const size = 64 * 1024
  const { cache, calls } = counting(() => Buffer.alloc(size))
  cache.between('x', publications(101))
  t.equal(calls(), 100)
  cache.between('x', publications(10, 92))
  t.equal(calls(), 100, 'the newest are there')
  cache.between('x', publications(10))
  t.equal(calls(), 109, 'the oldest are gone')
})
