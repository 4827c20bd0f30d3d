// The table of event proxies, played by a hooks module; and on the Redis engine.

import t from 'tap'
import { withoutProgram } from '../../kit/needs.js'
import { startRedis } from '../../kit/servers/redis.js'
import { Backend } from './backend.js'
import { conformance } from './conformance.js'
import { httpAdapter } from './http-adapter.js'
import { moduleAdapter } from './module-adapter.js'

// Both wait for the same expiry.
t.jobs = 2

t.test('the table, by a hooks module', { buffered: true }, async t => {
  await conformance(t, moduleAdapter(t, await Backend.start(t)))
})

t.test(
  'the table, on the Redis engine',
  { buffered: true, skip: withoutProgram('redis-server') },
  async t => {
    const { address } = await startRedis(t)
    await conformance(t, httpAdapter(await Backend.start(t)), {
      engine: { type: 'redis', redis: { address } },
    })
  },
)
