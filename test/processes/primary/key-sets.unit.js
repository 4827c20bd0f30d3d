import t from 'tap'
import { KeySets } from '../../../src/processes/primary/key-sets.js'

t.test('the last keys of each endpoint are kept, within a limit of memory', async t => {
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
    'the oldest go first',
  )
  sets.add({ url: 'e', keys: 'x'.repeat(100) })
  t.strictSame(sets.all, [], 'too large')
})
