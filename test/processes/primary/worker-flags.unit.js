import t from 'tap'
import { workerFlags } from '../../../src/processes/primary/worker-flags.js'

t.test('workers get the flags of Node.js, but no program of the command line', async t => {
  t.same(workerFlags(['--max-old-space-size=64', '--expose-gc']), ['--max-old-space-size=64', '--expose-gc'])
  t.same(workerFlags(['--expose-gc', '--input-type=module', '-e', 'program()']), ['--expose-gc'])
  t.same(workerFlags(['--input-type', 'module', '--eval=program()', '--expose-gc']), ['--expose-gc'])
  t.same(workerFlags(['-pe', 'program()']), [])
  t.same(workerFlags(['-p', '--expose-gc', '-e', 'program()']), ['--expose-gc'])
})
