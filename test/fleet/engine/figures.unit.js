import t from 'tap'
import { Figures } from '../../../fleet/drone/engine/figures.js'

t.test('faults are counted by what a server called them', async t => {
  const figures = new Figures()
  for (const reason of ['constructor', '__proto__', 'constructor']) figures.fault(reason)
  t.same(Object.entries(figures.sample().faults), [
    ['constructor', 2],
    ['__proto__', 1],
  ])
  t.same(Object.keys(figures.sample().faults), [])
})
