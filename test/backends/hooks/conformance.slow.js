// The conformance suite of hooks for a hooks module, and on the Redis engine.

import t from 'tap'
import { withoutProgram } from '../../kit/needs.js'
import { startRedis } from '../../kit/servers/redis.js'
import { httpAdapter, moduleAdapter } from './adapters.js'
import { Backend } from './backend.js'
import { conformance } from './conformance.js'

// Both wait for expiries.
t.jobs = 2

t.test('hooks module', { buffered: true }, async t => {
  await conformance(t, moduleAdapter(t, await Backend.start(t)))
})

t.test('Redis engine', { buffered: true, skip: withoutProgram('redis-server') }, async t => {
  const { address } = await startRedis(t)
  await conformance(t, httpAdapter(await Backend.start(t)), {
    engine: { type: 'redis', redis: { address } },
  })
})
