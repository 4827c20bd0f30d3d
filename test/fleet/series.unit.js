import t from 'tap'
import { compare, comparisonText } from '../../fleet/runner/series.js'
import { markdownTable, medians, ratios } from '../../fleet/runner/table.js'
import { capacityOf, controlOf, isControl } from '../../fleet/targets/index.js'
import { result as runResult } from './run-figures.js'

t.test('medians of each figure, and ratios where the control has one', async t => {
  t.same(medians([{ a: 3 }, { a: 1 }, { a: 2 }]), { a: 2 })
  t.same(medians([{ a: 1 }, { a: 2 }]), { a: 1.5 })
  t.same(ratios({ a: 1, b: 2 }, { a: 3, b: 0 }), { a: 0.333 })
})

t.test('a table in Markdown', async t => {
  const columns = [
    { name: 'halley', result: { p99_ms: 12.345, missing: 0 } },
    { name: 'uws', result: { p99_ms: 7 } },
  ]
  t.equal(
    markdownTable('fan', columns),
    '| fan | halley | uws |\n| --- | ---: | ---: |\n| `p99_ms` | 12.35 | 7 |\n| `missing` | 0 | - |\n',
  )
})

t.test('runs of several servers are compared step by step', async t => {
  const result = runResult()
  const runs = ['halley', 'halley', 'uws'].map((server, i) => ({
    server,
    run: i,
    out: '',
    failure: '',
    result,
  }))
  const comparisons = compare(runs)
  t.equal(comparisons.length, result.steps.length)
  const [{ medians: columns, ratios: others, runs: count }] = comparisons
  t.equal(count, 2)
  t.same(
    [...columns, ...others].map(({ name }) => name),
    ['halley', 'uws', 'ratio to uws'],
  )
  t.equal(others[0].result.connections, 1)
  t.match(comparisonText('fan', comparisons), /^fan, .*, medians of 2 +halley +uws +ratio to uws\n/)
})

t.test('a control is a known server, or a command with a port', async t => {
  t.ok(isControl('uws') && isControl('cmd: x {port}'))
  t.notOk(isControl('halley') || isControl('embedded'))
  const command = await controlOf('cmd: ./server --port {port} --key {key}').command({
    folder: '',
    port: 8000,
    key: 'k',
    workers: 1,
  })
  t.same(command, { command: '/bin/sh', args: ['-c', 'exec ./server --port 8000 --key k'] })
  t.throws(() => controlOf('cmd: ./server'), /does not contain \{port\}/)
  t.throws(() => controlOf('nginx'), /there is no server "nginx"/)
  t.equal(capacityOf('nchan', 2), 2 * capacityOf('uws', 2))
})
