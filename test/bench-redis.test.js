// The benchmarks of the Redis engine, in a tiny size.

import t from 'tap'
import { compareBooks } from '../bench/books.js'
import { bench, countsAll, run, script, skip } from './bench-runs.js'

t.setTimeout(120_000)
t.jobs = 5

countsAll(t, [
  ['fan --channels=10 --rate=200 --engine=redis --nodes=2 --history', 5],
  ['latency --engine=redis --nodes=2', 5],
])

t.test(
  'channels: all subscriptions are there, and again when Redis has cut the connections',
  { skip },
  async t => {
    const [result] = await bench('channels --engine=redis --nodes=2 --subscriptions=3 --history')
    t.match(result, {
      connections: 50,
      failed: 0,
      closed: 0,
      subscriptions: 150,
      refused: 0,
      unsubscribed: 0,
      probes: 150,
      probes_delivered: 150,
    })
    for (const figure of ['subscribe_cpu_us', 'redis_bytes_per_subscription', 'resubscribed_ms'])
      t.ok(result[figure] > 0, figure)
    t.ok(result.delivering_ms >= result.resubscribed_ms)
  },
)

for (const kill of ['redis', 'node']) {
  t.test(
    `restarts: ${kill} is killed, and the books tell what came of each publication`,
    { skip },
    async t => {
      const small = '--rounds=1 --every=300 --rate=200 --clients=4 --channels=4 --subscriptions=2 --workers=1'
      const { stdout } = await run(process.execPath, [
        script,
        'restarts',
        `--kill=${kill}`,
        ...small.split(' '),
        '--json',
      ])
      const result = JSON.parse(stdout)
      t.match(result, {
        kills: 1,
        missing: 0,
        repeated: 0,
        out_of_order: 0,
        other_faults: 0,
        told_of_gaps: 0,
      })
      t.ok(result.acknowledged > 0)
      t.equal(result.delivered, result.acknowledged * 2)
      t.equal(result.clients_that_returned, kill === 'redis' ? 0 : 2)
    },
  )
}

t.test('the books tell of what is missing, repeated and out of order', async t => {
  const positions = Object.entries({ 'e:1': 'a', 'e:2': 'b', 'e:3': 'c' })
  const load = {
    acks: 3,
    acknowledged: new Map([['c', new Map(positions)]]),
    errors: new Map([[100, 2]]),
    unanswered: 1,
    faults: [],
  }
  const got = new Map(Object.entries({ 'e:1': 'a', 'e:2': 'x', 'e:4': 'd' }))
  const client = {
    faults: ['c: 1 (a) after 2 of e', 'c: a twice', 'c: error 108'],
    returns: 1,
    tracks: new Map([['c', { channel: 'c', got, told: 0 }]]),
  }
  const books = compareBooks(/** @type {any} */ (load), [/** @type {any} */ (client)])
  t.match(books.figures, {
    acknowledged: 3,
    refused: 2,
    expected: 3,
    delivered: 1,
    delivered_unacknowledged: 2,
    missing: 1,
    repeated: 1,
    out_of_order: 1,
    other_faults: 2,
  })
  t.equal(books.said, 6)
  t.equal(books.faults.length, 5)
})
