// The benchmark of the Redis engine, in a tiny size.

import t from 'tap'
import { linesOf, run, script, skip } from './runs.js'

t.test(
  'channels: all subscriptions are there, and again when Redis has cut the connections',
  { skip },
  async t => {
    const load = ['--conns=50', '--subscriptions=3', '--seconds=1']
    const flags = ['--engine=redis', '--nodes=2', '--workers=1', '--history=1', ...load, '--json']
    const { stdout } = await run(process.execPath, [script, 'channels', ...flags])
    const [result] = linesOf(stdout)
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
