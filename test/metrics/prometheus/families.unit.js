import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { Lifetimes } from '../../../src/metrics/lifetimes.js'
import { expose } from '../../../src/metrics/prometheus/exposition.js'
import { families } from '../../../src/metrics/prometheus/families.js'
import { TickHistogram } from '../../../src/metrics/tick-histogram.js'
import { mockSnapshots as snapshots } from '../mock.js'
import { parse, value } from './exposition.js'

/** @typedef {import('../../../src/metrics/schema.js').Snapshot} Snapshot */

/** @param {Snapshot} snapshot @param {object} [facts] */
const scrape = (snapshot, facts) =>
  parse(expose(families, { snapshot, users: null, channels: null, nodes: 1, ...facts }))

t.test('the exposition has each family once, with its declared type, help and labels', async t => {
  const all = snapshots({ workers: 8, seconds: 20, csv: true })
  const got = scrape(all[19], { users: 7, channels: 9 })
  const described = new Map(families.map(family => [family.name, family]))
  t.equal(described.size, families.length, 'family names are unique')
  for (const { name, type, help, samples } of got.values()) {
    const family = described.get(name)
    t.equal(type, family?.type, `${name} is a ${type}`)
    t.equal(help, family?.help)
    for (const { labels } of samples) {
      const names = Object.keys(labels).filter(label => label !== 'le')
      t.same(names, family?.labels, `labels of ${name}`)
    }
  }
})

t.test('names have a prefix, base units, and `_total` for counters', async t => {
  for (const { name, type } of families) {
    t.match(name, /^(?:centrifugo|halley)_[a-z0-9_]+$/)
    t.notMatch(name, /_(?:ms|milliseconds|kb|mb|megabytes|percent)\b/, name)
    if (name.startsWith('halley_')) t.equal(name.endsWith('_total'), type === 'counter', name)
  }
})

t.test('sample values match the snapshot', async t => {
  const snapshot = /** @type {Snapshot} */ (snapshots({ workers: 3, seconds: 30, csv: true }).at(-1))
  const { totals, counters, machine, capacity, lifetimes } = snapshot
  const got = scrape(snapshot, { users: 12 })
  /** @type {[name: string, labels: Record<string, string>, expected: number | null | undefined][]} */
  const figures = [
    ['centrifugo_node_build', { version: '0.1.0' }, 1],
    ['centrifugo_node_num_users', {}, 12],
    ['centrifugo_node_num_clients', {}, totals.connections.connected],
    ['centrifugo_node_num_subscriptions', {}, totals.subscriptions],
    ['centrifugo_node_num_channels', {}, totals.channels],
    ['centrifugo_node_num_nodes', {}, 1],
    ['centrifugo_node_messages_sent_count', { type: 'publication' }, counters.publishes],
    ['centrifugo_node_action_count', { action: 'add_client' }, counters.connects],
    ['centrifugo_client_connections_inflight', { transport: 'sse' }, totals.connections.by.sse.json],
    ['centrifugo_client_num_reply_errors', { code: '105' }, counters.errors[105]],
    ['centrifugo_api_command_errors_total', { error: '107' }, counters.api_errors[107]],
    ['halley_connections', {}, totals.connections.open],
    ['halley_connections_opened_total', {}, counters.accepts],
    ['halley_deliveries_total', {}, counters.deliveries],
    ['halley_client_commands_total', { method: 'connect' }, counters.commands.connect],
    ['halley_api_calls_total', { method: 'publish' }, counters.api.publish],
    ['halley_clients', { transport: 'websocket', codec: 'json' }, totals.connections.by.websocket.json],
    ['halley_worker_clients', {}, totals.connections.connected],
    ['halley_worker_up', {}, 3],
    ['halley_worker_deaths_total', {}, 0],
    ['halley_node_info', { engine: 'memory', driver: 'uws', node_version: 'v20.20.0' }, 1],
    ['centrifugo_client_connections_accepted', { transport: 'sse' }, counters.transports.sse.connects],
    ['centrifugo_client_recover', { recovered: 'yes' }, counters.recoveries.recovered],
    ['centrifugo_transport_messages_sent', {}, counters.out.messages],
    ['centrifugo_transport_messages_sent_size', {}, counters.out.bytes],
    ['centrifugo_transport_messages_received', {}, counters.in.messages],
    ['centrifugo_transport_messages_received_size', {}, counters.in.bytes],
    [
      'halley_connections_closed_total',
      {},
      Object.values(counters.closes).reduce((sum, count) => sum + count),
    ],
    ['halley_connections_fit', { bound: 'memory' }, capacity.fits],
    ['halley_connection_memory_bytes', {}, capacity.bytes_per_connection],
    ['halley_worker_messages_sent_total', {}, counters.out.messages],
    ['halley_worker_received_bytes_total', {}, counters.in.bytes],
    ['halley_process_resident_memory_bytes', {}, totals.memory.rss],
    ['halley_process_resident_memory_bytes', { worker: 'primary' }, snapshot.primary.memory.rss],
    [
      'halley_event_loop_delay_max_seconds',
      { worker: '1' },
      (snapshot.workers[1].sample?.loop.ticks.max ?? 0) / 1000,
    ],
    ['halley_event_loop_delay_seconds_count', { worker: '2' }, lifetimes.workers[2].ticks.count],
    ['halley_machine_tcp_sockets', {}, machine.sockets?.tcp.inuse],
    ['halley_machine_load', { minutes: '5' }, machine.load?.[1]],
    ['halley_machine_memory_bytes', {}, machine.memory.total],
    ['halley_machine_memory_total_bytes', {}, machine.memory.total],
    ['halley_machine_listen_overflows_total', {}, 0],
    ['halley_csv_bytes', {}, snapshot.csv?.bytes],
    ['halley_csv_failed', {}, 0],
    ['halley_consumers_lag_messages', { consumer_name: 'orders' }, 5],
    ['halley_republish_sent_total', { republisher_name: 'backend' }, 870],
    ['halley_republish_outcomes_total', { outcome: 'confirmed' }, 841],
    ['halley_republish_outcomes_total', { outcome: 'dropped' }, 3],
    ['halley_republish_lost_total', { reason: 'queue_full' }, 3],
    ['halley_republish_lost_total', { reason: 'no_process' }, 4],
    ['halley_republish_lost_total', { reason: 'process_died' }, 5],
    ['halley_republish_queue_messages', {}, 7],
    ['halley_republish_age_seconds', {}, 0.06],
    ['halley_republish_up', {}, 1],
  ]
  for (const [name, labels, expected] of figures) {
    t.type(expected, 'number', name)
    t.equal(value(got, name, labels), expected, `${name} ${JSON.stringify(labels)}`)
  }
  const cpu = value(got, 'halley_process_cpu_seconds_total', { worker: '0', mode: 'user' })
  t.ok(Math.abs(cpu - lifetimes.workers[0].cpu.user / 1000) < 0.001, 'times are in seconds')
})

t.test('a long tick counts in every bucket above it, for its worker only', async t => {
  const [snapshot] = snapshots({ workers: 2, seconds: 1 })
  const lifetimes = new Lifetimes(2)
  for (const [index, longest] of [220, 4].entries()) {
    const ticks = new TickHistogram()
    ticks.record(0.2, 98)
    ticks.record(longest)
    const sample = /** @type {import('../../../src/metrics/schema.js').WorkerSample} */ (
      snapshot.workers[index].sample
    )
    sample.loop.ticks = ticks.toTicks()
    lifetimes.addWorker(sample)
  }
  snapshot.lifetimes = lifetimes.read()
  const got = scrape(snapshot)
  const within = (/** @type {string} */ worker, /** @type {string} */ le) =>
    value(got, 'halley_event_loop_delay_seconds_bucket', { worker, le })
  t.same(
    ['0.001', '0.2', '0.5', '+Inf'].map(le => within('0', le)),
    [98, 98, 99, 99],
  )
  t.same(
    ['0.001', '0.002', '0.005', '+Inf'].map(le => within('1', le)),
    [98, 98, 99, 99],
  )
  t.equal(value(got, 'halley_event_loop_delay_max_seconds', { worker: '0' }), 0.22)
  const sum = value(got, 'halley_event_loop_delay_seconds_sum', { worker: '0' })
  t.ok(Math.abs(sum - (98 * 0.0002 + 0.22)) < 0.001, 'the sum is in seconds')
})

t.test('a down worker keeps its counters, but has no current values', async t => {
  const all = snapshots({ workers: 2, seconds: 20, down: 1 })
  const got = scrape(all[10])
  t.equal(value(got, 'halley_worker_up', { worker: '0' }), 1)
  t.equal(value(got, 'halley_worker_up', { worker: '1' }), 0)
  t.ok(value(got, 'halley_worker_sample_age_seconds', { worker: '1' }) >= 1)
  t.ok(Number.isNaN(value(got, 'halley_worker_clients', { worker: '1' })))
  t.ok(value(got, 'halley_worker_messages_sent_total', { worker: '1' }) > 0, 'counters are kept')
})

t.test('unknown values are omitted', async t => {
  const [snapshot] = snapshots({ seconds: 1, connections: 10, elsewhere: true, engine: 'redis' })
  snapshot.primary.files = { open: null, limit: null }
  const got = scrape(snapshot, { nodes: null })
  for (const name of [
    'centrifugo_node_num_users',
    'centrifugo_node_num_channels',
    'centrifugo_node_num_nodes',
    'halley_connections_fit',
    'halley_connection_memory_bytes',
    'halley_machine_slab_bytes',
    'halley_machine_tcp_sockets',
    'halley_machine_listen_overflows_total',
    'halley_machine_network_sent_bytes_total',
    'halley_csv_bytes',
  ]) {
    t.notOk(got.has(name), name)
  }
  t.ok(Number.isNaN(value(got, 'halley_process_open_files', { worker: 'primary' })))
  t.ok(value(got, 'halley_process_open_files', { worker: '0' }) > 0)
})

t.test('with Redis, channels and nodes are counted across the cluster', async t => {
  const [snapshot] = snapshots({ seconds: 1, engine: 'redis' })
  const got = scrape(snapshot, { channels: 3, nodes: 2 })
  t.equal(value(got, 'centrifugo_node_num_channels'), 3)
  t.equal(value(got, 'centrifugo_node_num_nodes'), 2)
})

t.test('closes by clients do not count as disconnects by the server', async t => {
  const [snapshot] = snapshots({ seconds: 1 })
  snapshot.counters.closes = { 0: 1, 1000: 2, 1006: 3, [disconnects.noPong.code]: 4, 4321: 5 }
  const got = scrape(snapshot)
  const { samples } = /** @type {any} */ (got.get('centrifugo_client_num_server_disconnects'))
  t.same(
    samples.map((/** @type {any} */ { labels, value }) => [labels.code, value]),
    [
      ['3012', 4],
      ['4321', 5],
    ],
  )
  t.equal(value(got, 'halley_connections_closed_total'), 15)
})

t.test('label values are escaped', async t => {
  const [snapshot] = snapshots({ seconds: 1 })
  snapshot.node.name = 'a "node"\\with\nlines, {braces} and ünïcode'
  const got = scrape(snapshot)
  t.equal(value(got, 'halley_node_info', { name: snapshot.node.name }), 1)
})
