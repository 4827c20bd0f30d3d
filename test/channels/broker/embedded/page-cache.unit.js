import t from 'tap'
import { PageCache } from '../../../../src/channels/broker/embedded/page-cache.js'

const MiB = 1024 * 1024
const page = (/** @type {number} */ bytes, until = Infinity) => ({
  text: Buffer.alloc(bytes),
  cursor: '',
  until,
})

t.test('the least recently used pages go first', async t => {
  const cache = new PageCache()
  for (const id of ['a', 'b', 'c']) cache.add(id, page(5 * MiB))
  t.ok(cache.get('a', 0))
  cache.add('d', page(5 * MiB))
  t.same(
    ['a', 'b', 'c', 'd'].filter(id => cache.get(id, 0)),
    ['a', 'c', 'd'],
  )
  cache.add('e', page(17 * MiB))
  t.same(
    ['a', 'c', 'd', 'e'].filter(id => cache.get(id, 0)),
    [],
    'larger than all room',
  )
  for (let n = 0; n < 100; n++) cache.add(`f${n}`, page(MiB))
  t.equal(Array.from({ length: 100 }, (_, n) => cache.get(`f${n}`, 0)).filter(Boolean).length, 15)
})

t.test('a page with an expired entry is not found', async t => {
  const cache = new PageCache()
  cache.add('a', page(10, 1000))
  t.ok(cache.get('a', 999))
  t.notOk(cache.get('a', 1000))
})
