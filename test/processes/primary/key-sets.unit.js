import t from 'tap'
import { KeySets } from '../../../src/processes/primary/key-sets.js'

t.test('keeps the last keys of each endpoint within a memory limit', async t => {
  const sets = new KeySets(100)
  sets.add({ url: 'a', keys: 'x'.repeat(39) })
  sets.add({ url: 'b', keys: 'y'.repeat(39) })
  sets.add({ url: 'a', keys: 'z'.repeat(39) })
  t.strictSame(sets.all, [
    { url: 'b', keys: 'y'.repeat(39) },
    { url: 'a', keys: 'z'.repeat(39) },
  ])
  sets.add({ url: 'c', keys: '[]' })
  sets.add({ url: 'd', keys: 'x'.repeat(39) })
  t.same(
    sets.all.map(({ url }) => url),
    ['a', 'c', 'd'],
    'the oldest are removed',
  )
  sets.add({ url: 'e', keys: 'x'.repeat(100) })
  t.strictSame(sets.all, [], 'too large')
})
