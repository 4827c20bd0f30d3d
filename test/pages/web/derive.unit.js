import t from 'tap'
import { CSV_COLUMNS } from '../../../src/metrics/csv-columns.js'
import { linearRange, logarithmicRange } from '../../../src/pages/web/axes.js'
import { CHART_COLUMNS, CHARTS } from '../../../src/pages/web/definitions.js'
import { derive, idleRows, maximum, median, movingAverage } from '../../../src/pages/web/derive.js'

const KB = 1024

t.test('rates are per second for any interval', async t => {
  const { accepts_s, messages_out_s } = derive({
    time: [0, 2000, 2500],
    interval_ms: [1000, 2000, 500],
    accepts: [10, 10, 10],
    messages_out: [null, 4, 8],
  })
  t.same([...accepts_s], [10, 5, 20])
  t.same([...messages_out_s], [Number.NaN, 2, 16])
})

t.test(
  'memory includes the sockets of the gateway; unknown values count as 0 unless all are unknown',
  async t => {
    const { memory_bytes } = derive({
      time: [0, 1, 2],
      rss_bytes: [100, 100, null],
      kernel_bytes: [5, null, null],
      slab_bytes: [1e9, 2e9, 3e9],
      tcp_memory_bytes: [1e9, 2e9, 3e9],
    })
    t.same([...memory_bytes], [105, 100, Number.NaN])
    t.notOk('memory_bytes' in derive({ time: [0], slab_bytes: [1e9] }))
  },
)

t.test('memory per connection excludes the idle gateway', async t => {
  const connections = [0, 0, 0, 5000, 10_000, 10_000, 100]
  const { heap_per_connection, user_per_connection } = derive({
    time: connections.map((_, row) => row * 1000),
    connections,
    heap_total_bytes: connections.map(open => 30_000_000 + open * 4 * KB),
    rss_bytes: connections.map(open => 90_000_000 + open * 6 * KB),
  })
  t.same([...heap_per_connection], [NaN, NaN, NaN, 4 * KB, 4 * KB, 4 * KB, NaN], 'no estimate')
  t.same([...user_per_connection].slice(3, 6), [6 * KB, 6 * KB, 6 * KB])
})

t.test('memory per connection is unknown without idle seconds, unless the gateway measured it', async t => {
  const columns = {
    time: [0, 1000],
    connections: [5000, 5000],
    rss_bytes: [1e8, 1e8],
    heap_total_bytes: [1e8, 1e8],
  }
  t.notOk('user_per_connection' in derive(columns))
  const { user_per_connection } = derive({ ...columns, bytes_per_connection: [null, 2100] })
  t.same([...user_per_connection], [NaN, 2100])
})

t.test('medians, maxima and idle rows ignore unknown values', async t => {
  t.equal(median([3, null, 1, Number.NaN, 2]), 2)
  t.equal(median([1, 2]), 1.5)
  t.ok(Number.isNaN(median([])))
  t.equal(maximum([null, 2, Number.NaN]), 2)
  t.same(idleRows([0, 0, 5, 1000]), [0, 3])
  t.equal(idleRows([500, 1000]), null)
})

t.test('a moving average is not shifted, and is known if its window has a value', async t => {
  t.same(movingAverage([0, 0, 9, 0, 0], 3), [0, 3, 3, 3, 0])
  t.same(movingAverage([1, 2, 3], 1), [1, 2, 3])
  t.same(movingAverage([null, 4, null, null, null], 3), [4, 4, 4, null, null])
})

t.test('axes end at round numbers above all values', async t => {
  t.same(linearRange(0, 'count'), [0, 1])
  t.same(linearRange(1_000_000, 'count'), [0, 1_250_000])
  const [, end] = linearRange(4.9 * 1024 ** 3, 'bytes')
  t.equal(end, 5 * 1024 ** 3)
  t.same(linearRange(Number.NEGATIVE_INFINITY, 'ms'), [0, 1])
  t.same(logarithmicRange(279), [0.1, 1000])
  t.same(logarithmicRange(3), [0.1, 100])
})

t.test('every chart shows columns of the CSV file or derived from them', async t => {
  const time = [0, 1000, 2000]
  const all = derive(
    Object.fromEntries(
      CSV_COLUMNS.map(({ name }) => [name, name === 'connections' ? [0, 5000, 5000] : time]),
    ),
  )
  for (const name of CHART_COLUMNS) t.ok(all[name], name)
  for (const { id, stacked, series, right } of CHARTS) {
    if (stacked) t.ok(series.findIndex(one => one.right) >= series.length - 1, `${id}: areas come first`)
    t.equal(
      series.some(one => one.right),
      right !== undefined,
      id,
    )
  }
})
