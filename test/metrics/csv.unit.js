import { readFileSync } from 'node:fs'
import t from 'tap'
import { CSV_COLUMNS, CSV_HEADER, csvRow } from '../../src/metrics/csv-columns.js'
import { parseCsv } from '../../src/metrics/csv-reader.js'
import { mockSnapshots } from './mock.js'

const page = readFileSync(new URL('../../docs/csv.md', import.meta.url), 'utf8')

/** Columns of what the published run wrote each second, in its order. */
const PUBLISHED = (
  'seq connections machine_cpu_user_pct machine_cpu_system_pct machine_cpu_idle_pct cpu_pct ' +
  'machine_memory_used_bytes machine_memory_caches_bytes rss_bytes heap_used_bytes heap_total_bytes ' +
  'tick_avg_ms tick_p90_ms tick_max_ms elapsed_ms collect_ms messages_out_total'
).split(' ')

/** @param {string} title */
const rowsBelow = title =>
  page
    .split(`## ${title}\n`)[1]
    .split('\n## ')[0]
    .split('\n')
    .filter(line => line.startsWith('| ') && !/^\| (?:-|published)/.test(line))
    .map(line =>
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim().replaceAll('`', '')),
    )

t.test('all 17 columns of the published run are there', async t => {
  t.same(
    rowsBelow('The published run').map(([, name]) => name),
    PUBLISHED,
  )
  for (const name of PUBLISHED) t.ok(CSV_COLUMNS.some(column => column.name === name))
})

t.test('columns have fixed positions', async t => {
  const names = CSV_COLUMNS.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  t.match(names[0], 'time')
  t.equal(names.indexOf('connections'), 7)
  t.equal(names.indexOf('tick_max_ms'), 34)
  t.equal(names.indexOf('facts'), 81)
})

t.test('a row has the values of its snapshot', async t => {
  const snapshots = mockSnapshots({ seconds: 30, workers: 3, connections: 20_000, down: 1 })
  const { columns, rows, facts, skipped } = await parseCsv([
    CSV_HEADER,
    ...snapshots.map((snapshot, at) => csvRow(snapshot, at === 0)),
  ])
  t.equal(rows, 30)
  t.equal(skipped, 0)
  for (const [row, s] of snapshots.entries()) {
    const value = (/** @type {string} */ name) => columns[name][row]
    t.equal(value('time'), s.time)
    t.equal(value('elapsed_ms'), s.time - s.node.started_at)
    t.equal(value('connections'), s.totals.connections.open)
    t.equal(value('messages_out_total'), s.counters.out.messages)
    t.equal(value('heap_used_bytes'), s.totals.memory.heap_used)
    t.ok(Math.abs(value('tick_max_ms') - s.totals.loop.ticks.max) < 0.0051)
    t.equal(value('gc_major'), s.totals.gc.major.count)
    t.equal(
      value('worker_deaths'),
      s.workers.reduce((all, { deaths }) => all + deaths, 0),
    )
    const cpu = /** @type {any} */ (s.machine.cpu)
    // Per cent of one core, as for processes: four cores are 400.
    t.ok(Math.abs(value('machine_cpu_user_pct') - cpu.user * s.machine.cores * 100) < 0.1)
    t.ok(Math.abs(value('cpu_pct') - (s.totals.cpu.user + s.totals.cpu.system) * 100) < 0.11)
    const known = s.capacity.bytes_per_connection
    if (known === null) t.ok(Number.isNaN(value('bytes_per_connection')))
    else t.equal(value('bytes_per_connection'), known)
  }
  t.same(facts, [
    {
      row: 0,
      facts: {
        version: '0.1.0',
        name: 'gateway-1_8000',
        engine: 'memory',
        driver: 'uws',
        node_version: 'v20.20.0',
        workers: '3',
        started_at: String(snapshots[0].node.started_at),
        cores: '4',
        memory: String(32 * 1024 ** 3),
      },
    },
  ])
})

t.test('without /proc, cells are empty', async t => {
  const snapshots = mockSnapshots({ seconds: 3, elsewhere: true })
  for (const snapshot of snapshots) snapshot.machine.cpu = null
  const { columns, rows } = await parseCsv([CSV_HEADER, ...snapshots.map(s => csvRow(s, false))])
  t.equal(rows, 3)
  for (const name of ['machine_cpu_user_pct', 'slab_bytes', 'tcp_sockets', 'net_rx_bytes_s', 'files_open']) {
    t.ok(columns[name].every(Number.isNaN), name)
  }
  t.ok(columns.machine_memory_used_bytes.every(value => value > 0))
})

t.test('the node name may have any characters', async t => {
  const [snapshot] = mockSnapshots({ seconds: 1 })
  const name = 'a,"b"\r\n=c&d;é'
  snapshot.node.name = name
  const row = csvRow(snapshot, true)
  t.equal(row.split('\n').length, 2)
  const { facts } = await parseCsv([CSV_HEADER, row])
  t.equal(facts[0].facts.name, name)
})
