// A row that is added before the other modules load appears everywhere.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { COUNTS, SECTIONS } from '../../src/metrics/table.js'
import { parse, value } from './prometheus/exposition.js'

const columns = SECTIONS.flatMap(({ rows }) => Object.values(rows)).filter(({ csv }) => csv).length

COUNTS['probes.<kind>'] = {
  type: 'counter',
  help: 'Probes, by kind.',
  // Five columns are calculated.
  csv: [columns + 5, 'probes'],
  prometheus: 'halley_probes_total',
}

const { CSV_COLUMNS, csvRow } = await import('../../src/metrics/csv-columns.js')
const { History } = await import('../../src/metrics/history.js')
const { mergeTotals } = await import('../../src/metrics/merge.js')
const { expose } = await import('../../src/metrics/prometheus/exposition.js')
const { families } = await import('../../src/metrics/prometheus/families.js')
const { Traffic } = await import('../../src/metrics/traffic.js')
const { csvPage, metricsPage, statsPage } = await import('../../scripts/metrics-tables.js')
const { mockSnapshots } = await import('./mock.js')

t.test('a new row appears in samples, totals, CSV file, Prometheus and docs', async t => {
  const [snapshot] = mockSnapshots({ seconds: 1, workers: 2 })
  for (const { sample } of snapshot.workers) {
    const traffic = new Traffic([])
    for (const kind of ['http', 'http', 'tcp']) traffic.add(/** @type {any} */ ('probes'), kind)
    Object.assign(/** @type {any} */ (sample).counts, traffic.drain())
  }
  const { workers, primary } = snapshot
  const fresh = workers.flatMap(({ sample }) => sample ?? [])
  const unknown = { channels: null, broker: { maps: null, polls: null }, kernel: null }
  snapshot.totals = mergeTotals({ views: workers, fresh, primary, lost: [], ...unknown })
  snapshot.counters = snapshot.totals.counts
  t.same(/** @type {any} */ (snapshot.counters).probes, { http: 4, tcp: 2 }, 'of the stats stream')

  t.equal(CSV_COLUMNS.at(-1)?.name, 'probes', 'the last column')
  t.match(csvRow(snapshot, false), /,6\n$/)

  const got = parse(expose(families, { snapshot, users: null, channels: null, nodes: null }))
  t.equal(value(got, 'halley_probes_total', { kind: 'http' }), 4)

  const history = new History()
  history.add(snapshot)
  t.same(/** @type {any} */ (history.after(0)[0].counters).probes, {}, 'the history has no names')

  const page = (/** @type {string} */ name) =>
    readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
  t.match(statsPage(page('stats.md')), '\n| `probes.<kind>` |  | Probes, by kind. |\n')
  t.match(csvPage(page('csv.md')), '\n| `probes` | Probes, by kind. |\n')
  t.match(
    metricsPage(page('metrics.md')),
    '\n| `halley_probes_total` | counter | `kind` | Probes, by kind. |\n',
  )
})

t.test('column places and metric names are unique', async t => {
  t.same(
    CSV_COLUMNS.map(({ name }) => name),
    [...new Set(CSV_COLUMNS.map(({ name }) => name))],
  )
  const places = SECTIONS.flatMap(({ rows }) => Object.values(rows)).flatMap(({ csv }) => csv?.[0] ?? [])
  t.equal(new Set(places).size, places.length)
  t.equal(Math.max(...places), CSV_COLUMNS.length - 1)
  t.equal(new Set(families.map(({ name }) => name)).size, families.length)
})
