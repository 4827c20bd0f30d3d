import t from 'tap'
import { CapacityEstimator } from '../../src/metrics/capacity.js'
import { mockSnapshots } from './mock.js'

const MB = 1024 * 1024
const GB = 1024 * MB
const [blank] = mockSnapshots({ seconds: 1, workers: 2, connections: 0 })

/**
 * A node, as the watch is shown it.
 * @param {object} state @param {number[]} state.open connections of each worker
 * @param {number[]} [state.rss] of each worker; 60 MB and 2,000 bytes a connection @param {number[]} [state.pids]
 * @param {number | null} [state.kernel] bytes a connection @param {number} [state.available]
 * @param {number} [state.files] limit of each worker
 */
function node({
  open,
  rss = open.map(count => 60 * MB + count * 2000),
  pids = open.map((_, index) => 100 + index),
  kernel = 3000,
  available = 8 * GB,
  files = 1_000_000,
}) {
  const samples = structuredClone(blank.workers).map(({ sample }, index) => {
    if (!sample) throw new Error('no sample')
    sample.pid = pids[index]
    sample.connections.open = open[index]
    sample.memory.rss = rss[index]
    sample.files = { open: open[index] + 20, limit: files }
    return sample
  })
  const machine = structuredClone(blank.machine)
  machine.memory.total = 10 * GB
  machine.memory.available = available
  return /** @type {const} */ ([blank.primary, samples, machine, kernel])
}

/** An estimator that has seen the gateway without connections. @param {number} [limit] of connections */
function estimator(limit = 0) {
  const watch = new CapacityEstimator(limit)
  const measure = (/** @type {Parameters<typeof node>[0]} */ state) => watch.measure(...node(state))
  measure({ open: [0, 0] })
  return { watch, measure }
}

t.test('below a thousand connections there is no estimate', async t => {
  const { measure } = estimator()
  t.same(measure({ open: [400, 500] }), {
    bytes_per_connection: null,
    kernel_per_connection: null,
    fits: null,
    bound: null,
  })
})

t.test('the cost of a connection is the growth of memory since the baseline', async t => {
  const { measure } = estimator()
  t.same(measure({ open: [3000, 2000] }), {
    bytes_per_connection: 2000,
    kernel_per_connection: 3000,
    fits: Math.floor((7 * GB) / 5000),
    bound: 'memory',
  })
})

t.test('the baseline is the lowest memory without connections, even after clients left', async t => {
  const watch = new CapacityEstimator(0)
  watch.measure(...node({ open: [0, 0], rss: [50 * MB, 60 * MB] }))
  watch.measure(...node({ open: [0, 0], rss: [80 * MB, 80 * MB] }))
  const { bytes_per_connection } = watch.measure(
    ...node({ open: [5000, 5000], rss: [50 * MB + 5000 * 2500, 60 * MB + 5000 * 2500] }),
  )
  t.equal(bytes_per_connection, 2500)
})

t.test('a worker that starts with a thousand clients is measured from there', async t => {
  const { measure } = estimator()
  measure({ open: [6000, 6000] })
  let capacity = measure({ open: [6000, 3000], pids: [100, 999] })
  t.equal(capacity.bytes_per_connection, 2000)
  capacity = measure({ open: [6000, 6000], pids: [100, 999] })
  t.equal(capacity.bytes_per_connection, 2000)
})

t.test('the lowest limit determines the capacity: descriptors or client.connection_limit', async t => {
  const files = estimator().measure({ open: [2000, 2000], files: 20_000 })
  t.match(files, { fits: 2 * (20_000 - 2020), bound: 'files' })
  const { measure } = estimator(5000)
  t.match(measure({ open: [2000, 2000] }), { fits: 1000, bound: 'connection_limit' })
  t.match(measure({ open: [2600, 2600] }), { fits: 0, bound: 'connection_limit' })
})

t.test('slab and sockets of other programs are excluded', async t => {
  const { watch } = estimator()
  const state = node({ open: [3000, 2000] })
  const [, , machine] = state
  machine.memory.slab = 8 * GB
  if (machine.sockets) machine.sockets.tcp.memory = GB
  t.match(watch.measure(...state), { bytes_per_connection: 2000, kernel_per_connection: 3000 })
})

t.test('a tenth of the memory is kept free', async t => {
  const { measure } = estimator()
  t.match(measure({ open: [2000, 2000], available: GB / 2 }), { fits: 0, bound: 'memory' })
})

t.test('a garbage collection changes the estimate slowly', async t => {
  const { measure } = estimator()
  for (let second = 0; second < 60; second++) measure({ open: [5000, 5000] })
  const before = measure({ open: [5000, 5000] })
  const after = measure({ open: [5000, 5000], rss: [60 * MB, 60 * MB] })
  t.equal(before.bytes_per_connection, 2000)
  t.equal(after.bytes_per_connection, 1800)
  t.ok(Number(after.fits) < Number(before.fits) * 1.05)
})

t.test('outside Linux, kernel memory and descriptors are ignored', async t => {
  const watch = new CapacityEstimator(0)
  const strip = (/** @type {ReturnType<typeof node>} */ [primary, samples, machine, kernel]) => {
    for (const sample of samples) sample.files = { open: null, limit: null }
    return /** @type {const} */ ([primary, samples, { ...machine, files: null }, kernel])
  }
  watch.measure(...strip(node({ open: [0, 0], kernel: null })))
  t.same(watch.measure(...strip(node({ open: [3000, 2000], kernel: null }))), {
    bytes_per_connection: 2000,
    kernel_per_connection: null,
    fits: Math.floor((7 * GB) / 2000),
    bound: 'memory',
  })
})

t.test('connections before the first sample count from the baseline of begin()', async t => {
  const watch = new CapacityEstimator(0)
  const [primary, samples] = node({ open: [0, 0] })
  watch.begin(primary.pid, primary.memory.rss)
  for (const { pid, memory } of samples) watch.begin(pid, memory.rss)
  t.match(watch.measure(...node({ open: [3000, 2000] })), {
    bytes_per_connection: 2000,
    kernel_per_connection: 3000,
  })
})

t.test('a new process may reuse the pid of an ended one', async t => {
  const watch = new CapacityEstimator(0)
  watch.measure(...node({ open: [0, 0], rss: [10 * MB, 60 * MB], pids: [7, 8] }))
  watch.end(7)
  watch.measure(...node({ open: [0, 0], rss: [60 * MB, 60 * MB], pids: [7, 8] }))
  t.match(watch.measure(...node({ open: [5000, 0], rss: [70 * MB, 60 * MB], pids: [7, 8] })), {
    bytes_per_connection: Math.round((10 * MB) / 5000),
  })
})
