import t from 'tap'
import { childFlags } from '../../../src/processes/primary/forked.js'

t.test('workers inherit Node.js flags, but not a program of the command line', async t => {
  t.same(childFlags(['--max-old-space-size=64', '--expose-gc']), ['--max-old-space-size=64', '--expose-gc'])
  t.same(childFlags(['--expose-gc', '--input-type=module', '-e', 'program()']), ['--expose-gc'])
  t.same(childFlags(['--input-type', 'module', '--eval=program()', '--expose-gc']), ['--expose-gc'])
  t.same(childFlags(['-pe', 'program()']), [])
  t.same(childFlags(['-p', '--expose-gc', '-e', 'program()']), ['--expose-gc'])
})
