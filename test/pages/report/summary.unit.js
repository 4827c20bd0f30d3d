import t from 'tap'
import { parseCsv } from '../../../src/metrics/csv-reader.js'
import { figuresTable, headlines } from '../../../src/pages/report/figures.js'
import { makeRun, sortedByTime } from '../../../src/pages/report/run.js'
import { busiestRows, steadyRows, summarize } from '../../../src/pages/report/summary.js'
import { csvText, START } from './rows.js'

const many = (length, value) => new Array(length).fill(value)

t.test('the steady state is the longest period within 2 % of the most connections', async t => {
  const connections = [...many(20, 0), 500, ...many(15, 990), 700, ...many(30, 1000), ...many(100, 10)]
  t.same(steadyRows(connections), [37, 67])
  t.same(steadyRows([...many(20, 981), ...many(5, 1000)]), [0, 25], 'within 2 %')
  t.same(steadyRows([...many(10, 1000), null, ...many(10, 1000)]), [0, 21], 'a second that is not known')
  t.equal(steadyRows([...many(9, 1000), 0]), null, 'too short')
  t.equal(steadyRows(many(50, 0)), null)
})

t.test('without a steady state, the busiest period is used', async t => {
  t.same(busiestRows([...many(100, 1), ...many(60, 9), ...many(100, 2)]), [100, 160])
  t.same(busiestRows([1, 2, 3]), [0, 3])
  const time = Array.from({ length: 200 }, (_, row) => START + row * 1000)
  const { stretch } = summarize({
    time,
    interval_ms: many(200, 1000),
    connections: time.map((_, row) => row * 100),
    messages_out: time.map((_, row) => (row >= 50 && row < 110 ? 500 : 5)),
  })
  t.match(stretch, { kind: 'busiest', from: 50, to: 110, seconds: 59 })
})

t.test('a summary has peaks, medians, sums and bytes per connection', async t => {
  const { columns } = await parseCsv([csvText({ seconds: 120, connections: 10_000 })])
  const summary = summarize(columns)
  t.match(summary, { rows: 120, start: START, seconds: 119 })
  t.match(summary.stretch, { kind: 'steady', to: 120 })
  t.match(summary.peaks, {
    connections: 10_000,
    tick_max_ms: 200,
    messages_out_s: 20_000,
    rss_bytes: 151_440_000,
  })
  t.match(summary.steady, { connections: 10_000, tick_max_ms: 9, cpu_pct: 30, net_tx_bytes_s: 3e6 })
  t.match(summary.sums, { accepts: 10_000, gc_major: 1, gc_major_ms: 40, gc_minor: 360 })
  t.match(summary.connection, { heap: 4096, native: 2048, user: 6144, kernel: 3072, total: 9216 })
})

t.test('without idle seconds, the memory per connection is the one measured by the gateway', async t => {
  const time = Array.from({ length: 50 }, (_, row) => row * 1000)
  const columns = {
    time,
    connections: many(50, 5000),
    rss_bytes: many(50, 1e9),
    heap_total_bytes: many(50, 1e8),
  }
  const { connection } = summarize(columns)
  t.match(connection, { heap: Number.NaN, user: Number.NaN, kernel: Number.NaN, total: Number.NaN })
  t.equal(connection.unknown, 'no idle baseline')
  const measured = summarize({ ...columns, bytes_per_connection: many(50, 2000) })
  t.equal(measured.connection.user, 2000)
  t.ok(Number.isNaN(measured.connection.heap))
  const fallen = summarize({
    time: many(100, 0).map((_, row) => START + row * 1000),
    connections: [...many(50, 0), ...many(50, 5000)],
    rss_bytes: [...many(50, 90e6), ...many(50, 80e6)],
    bytes_per_connection: [...many(50, Number.NaN), ...many(50, 2000)],
  })
  t.equal(fallen.connection.user, 2000, 'memory that fell is not 0 bytes a connection')
})

t.test('memory per connection is the same everywhere, or unknown everywhere with the reason', async t => {
  const { columns } = await parseCsv([csvText({ connections: 999 })])
  const few = summarize(columns)
  t.equal(few.connection.unknown, 'fewer than 1,000 connections')
  t.ok(Number.isNaN(few.connection.total))
  t.notOk(Number.isFinite(few.peaks.total_per_connection), 'unknown in the chart, too')
  const run = makeRun({ label: 'a', columns })
  t.same(figuresTable([run]).groups.find(({ title }) => title === 'Memory of a connection')?.rows, [
    { label: 'Unknown', hint: undefined, cells: ['fewer than 1,000 connections'] },
  ])
  const enough = summarize((await parseCsv([csvText({ connections: 1000 })])).columns)
  t.match(enough.connection, { total: 9216, unknown: '' })
  t.equal(enough.steady.total_per_connection, 9216, 'the same in the chart')

  // The heap shrinks while connections open: their memory is not in the total.
  const rows = 100
  const freed = summarize({
    time: many(rows, 0).map((_, row) => START + row * 1000),
    connections: [...many(50, 0), ...many(50, 5000)],
    rss_bytes: [...many(50, 90e6), ...many(50, 95e6)],
    heap_total_bytes: [...many(50, 40e6), ...many(50, 20e6)],
    native_bytes: [...many(50, 50e6), ...many(50, 75e6)],
  })
  t.equal(freed.connection.unknown, 'the gateway freed memory')
  t.ok(Number.isNaN(freed.connection.native), 'no part is known either')
})

t.test('runs of one row or without connections are accepted', async t => {
  const one = summarize({ time: [START], connections: [0] })
  t.match(one, { rows: 1, seconds: 0, peaks: { connections: 0 } })
  const table = figuresTable([makeRun({ label: 'x', columns: { time: [START], connections: [0] } })])
  t.same(
    table.groups.map(({ title }) => title),
    ['The run', 'Steady state'],
    'nothing that is not known',
  )
})

t.test('figures of maps are those of a run that has some', async t => {
  const time = [START, START + 1000]
  const columns = {
    time,
    connections: [0, 0],
    map_publishes: [0, 0],
    map_removals: [0, 0],
    map_expiries: [0, 0],
  }
  const groupOf = run => figuresTable([makeRun({ label: 'x', columns: run })]).groups.at(-1)
  t.not(groupOf(columns)?.title, 'Maps')
  t.same(groupOf({ ...columns, map_keys: [5, 3], map_publishes: [4, 2], map_expiries: [0, 1] }), {
    title: 'Maps',
    rows: [
      { label: 'Keys, peak', hint: undefined, cells: ['5'] },
      { label: 'Publishes', hint: undefined, cells: ['6'] },
      { label: 'Expiries', hint: undefined, cells: ['1'] },
    ],
  })
})

t.test('the table has a column per run and omits values unknown in all runs', async t => {
  const { columns, facts } = await parseCsv([csvText()])
  const run = makeRun({ label: 'a', columns, facts })
  const table = figuresTable([run, { ...run, label: 'b' }])
  t.same(table.columns, ['a', 'b'])
  const rows = table.groups.flatMap(({ rows }) => rows)
  for (const { cells } of rows) t.equal(cells.length, 2)
  const cell = label => rows.find(row => row.label === label)?.cells[0]
  t.equal(cell('Duration'), '1m59')
  t.equal(cell('Total'), '9 KB')
  t.notOk(
    rows.some(({ label }) => label === 'Worker exits'),
    'not in the file',
  )
  const labels = headlines(run).map(({ label }) => label)
  t.match(labels, ['Connections', 'Memory of a connection', 'Accepts', 'Messages out', /delay/, /CPU/])
})

t.test('rows are sorted by time, without duplicates', async t => {
  const { time, a } = sortedByTime({
    time: Float64Array.of(3, 1, 2, 2, NaN),
    a: Float64Array.of(30, 10, 20, 21, 5),
  })
  t.same([...time], [1, 2, 3])
  t.same([...a], [10, 20, 30])
  const columns = { time: [1, 2] }
  t.equal(sortedByTime(columns), columns)
})
