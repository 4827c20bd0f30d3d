// The benchmarks of the Redis engine, in a tiny size.

import t from 'tap'
import { bench, countsAll, run, script, skip } from './runs.js'

// Each run has two gateways and a Redis.
t.jobs = 2

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
