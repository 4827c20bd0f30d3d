// Redis streams: the conformance suite of republishers, and tests of streams only.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { conformance } from './conformance.js'
import { republication, startRepublishers } from './rig.js'

needsRedis(t)

conformance(t, 'redis_stream')

t.test(
  'writes one stream per channel, trimmed to about max_length; keys of other types are refused',
  async t => {
    const redis = await startRedis(t)
    const { all, figures } = await startRepublishers(t, {
      type: 'redis_stream',
      redis_stream: { address: redis.address, stream: 's.{channel}', max_length: 100 },
    })
    await redis.call('SET', 's.b', 'text')
    for (let n = 0; n < 1000; n++) all.take(republication('a', n))
    all.take(republication('b', 1))
    all.take(republication('c', 1))
    await until(() => figures().queued === 0)
    t.match(figures(), { up: true, confirmed: 1001, refused: 1, queued_bytes: 0, dropped: 0 })
    const length = await redis.call('XLEN', 's.a')
    t.ok(length >= 100 && length < 300, `${length} entries`)
    t.equal(await redis.call('XLEN', 's.c'), 1)
  },
)
