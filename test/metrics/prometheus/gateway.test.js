// Metrics of real gateways: any worker reports all. ../traffic.test.js has the counts, families.unit.js the names.

import t from 'tap'
import { crowd, open } from '../../kit/fleet.js'
import { startGateway } from '../../kit/gateway.js'
import { until } from '../../kit/wait.js'
import { value } from './exposition.js'
import { scrape, settled } from './scrape.js'

/** @typedef {import('./scrape.js').Scrape} Scrape */

const config = {
  prometheus: { enabled: true },
  channel: { namespaces: [{ name: 'open', ...open }] },
  client: { allow_anonymous_connect_without_token: true },
}

/** @returns {Promise<null>} after the time until the next scrape */
const soon = () => new Promise(resolve => setTimeout(resolve, 3000, null))

t.test('each worker reports all; counters never decrease when one is killed', async t => {
  const gateway = await startGateway(t, config)
  const clients = await crowd(gateway)
  await Promise.all(clients.map(client => client.subscribe('open:news')))
  for (let n = 0; n < 20; n++) await gateway.api('publish', { channel: 'open:news', data: n })
  /** @type {Map<string, number>} */
  const before = new Map()
  /** @type {string[]} */
  const fallen = []
  let time = 0
  const watched = (/** @type {Scrape} */ got) => {
    // The response of a worker may be half a second older than that of another.
    const now = value(got, 'halley_snapshot_time_seconds')
    if (now <= time) return false
    time = now
    for (const { type, samples } of got.values()) {
      if (type === 'gauge') continue
      for (const { name, labels, value } of samples) {
        const id = name + JSON.stringify(labels)
        if (value < (before.get(id) ?? 0)) fallen.push(`${id}: ${before.get(id)} to ${value}`)
        before.set(id, value)
      }
    }
    return true
  }
  await settled(gateway, got => watched(got) && value(got, 'halley_deliveries_total') === 480)
  const all = await until(async () => {
    const scrapes = []
    while (scrapes.length < 8) scrapes.push(await scrape(gateway))
    return scrapes.every(got => value(got, 'halley_deliveries_total') === 480) ? scrapes : null
  })
  for (const got of all) {
    const { samples } = /** @type {any} */ (got.get('halley_process_resident_memory_bytes'))
    t.same(
      samples.map((/** @type {any} */ { labels }) => labels.worker),
      ['primary', '0', '1'],
    )
    t.equal(value(got, 'centrifugo_node_num_clients'), 24)
    t.equal(value(got, 'halley_worker_clients'), 24)
  }
  // On the node server all clients may be connected to one worker.
  const { pid } = gateway.lines.find(
    ({ msg, worker }) =>
      msg === 'worker is listening' && value(all[0], 'halley_worker_clients', { worker: String(worker) }) > 0,
  )
  process.kill(pid, 'SIGKILL')
  const got = await until(async () => {
    // A connection in the queue of the killed worker is lost, or waits forever.
    const got = await Promise.race([scrape(gateway).catch(() => null), soon()])
    return got &&
      watched(got) &&
      value(got, 'halley_worker_deaths_total') === 1 &&
      value(got, 'halley_worker_up') === 2
      ? got
      : null
  })
  t.same(fallen, [])
  t.equal(value(got, 'halley_deliveries_total'), 480, 'what the dead one had done still counts')
  t.equal(value(got, 'halley_worker_messages_sent_total') >= 480, true)
  t.ok(value(got, 'centrifugo_node_num_clients') < 24)
})

t.test('while one worker hangs, the others report it', async t => {
  const gateway = await startGateway(t, { ...config, worker: { liveness_timeout: 0 } })
  await settled(gateway, got => value(got, 'halley_worker_up') === 2)
  const [hanging] = gateway.workerPids
  process.kill(hanging, 'SIGSTOP')
  t.teardown(() => process.kill(hanging, 'SIGCONT'))
  const got = await until(async () => {
    // Some of them, and sometimes all, reach the hanging worker.
    const answers = Array.from({ length: 12 }, () => scrape(gateway))
    for (const answer of answers) answer.catch(() => {})
    const got = await Promise.race([Promise.any(answers), soon()])
    return got && value(got, 'halley_worker_up') === 1 ? got : null
  })
  t.ok(value(got, 'halley_worker_sample_age_seconds') > 1.5)
  process.kill(hanging, 'SIGCONT')
  await settled(gateway, got => value(got, 'halley_worker_up') === 2)
})
