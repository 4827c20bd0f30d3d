import t from 'tap'
import { figuresOf, markdownTable, medians, ratios } from '../../fleet/runner/figures.js'
import { compare, comparisonText } from '../../fleet/runner/series.js'
import { controlOf, isControl } from '../../fleet/targets/index.js'
import { latency, result as runResult, step } from './run-figures.js'

t.test('figures are medians, with ratios where the control has a value', async t => {
  t.same(medians([{ a: 3 }, { a: 1 }, { a: 2 }]), { a: 2 })
  t.same(medians([{ a: 1 }, { a: 2 }]), { a: 1.5 })
  t.same(ratios({ a: 1, b: 2 }, { a: 3, b: 0 }), { a: 0.333 })
})

t.test('loaded, idle and reopening steps have their figures', async t => {
  const server = { cpu: 20, redisCpu: 5, parts: { workers: 15 }, connectCpu: 40, connection: 700 }
  const loaded = figuresOf(step({ server, figures: { offered_per_s: 100 } }))
  t.match(loaded, {
    server_cpu_percent: 20,
    redis_cpu_percent: 5,
    redis_cpu_us_per_publish: 500,
    offered_per_s: 100,
  })
  t.match(loaded, { workers_cpu_us_per_publish: 1500, cpu_us_per_message: 2000, connect_cpu_us: 40 })
  const idle = figuresOf(step({ server, publishRate: 0, latency: latency([]) }))
  t.match(idle, { idle_cpu_percent: 20, bytes_per_connection: 700, p99_ms: undefined })
  t.match(figuresOf(step({ server, reopened: 10 })), { reopened_per_s: 10, workers_cpu_us_per_open: 15_000 })
})

t.test('the table is Markdown', async t => {
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
  const more = { out: '', failure: '', result }
  const runs = ['halley', 'halley', 'uws'].map((server, run) => ({ server, run, ...more }))
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

t.test('a control is a known server or a command with a port', async t => {
  t.ok(isControl('uws') && isControl('cmd: x {port}'))
  t.notOk(isControl('halley') || isControl('embedded'))
  const options = { folder: '', port: 8000, key: 'k', workers: 1 }
  const command = await controlOf('cmd: ./server --port {port} --key {key}').command(options)
  t.same(command, { command: '/bin/sh', args: ['-c', 'exec ./server --port 8000 --key k'] })
  t.throws(() => controlOf('cmd: ./server'), /does not contain \{port\}/)
  t.throws(() => controlOf('nginx'), /unknown server "nginx"/)
})
