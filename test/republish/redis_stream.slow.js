// A republisher with a real Redis.

import t from 'tap'
import { loadRepublishers, Republishers } from '../../src/republish/index.js'
import { startRedis } from '../redis/servers.js'
import { entry, quietLog, republication } from './rig.js'

/** @param {() => unknown} condition */
async function until(condition) {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 5))
}

t.test('a Redis stream: fields, order, an outage, a key of another type', { timeout: 120_000 }, async t => {
  const redis = await startRedis(t)
  const config = {
    republish: [
      entry({ type: 'redis_stream', redis_stream: { address: redis.address, stream: 's.{channel}' } }),
    ],
    channel: { namespace_boundary: ':' },
  }
  const republishing = { full: 0, hand() {}, confirm() {}, report() {} }
  const log = /** @type {any} */ (quietLog())
  const all = new Republishers(config, await loadRepublishers(config), {
    origin: 'here',
    ids: 'r-',
    log,
    republishing,
  })
  t.teardown(() => all.stop(0))
  const figures = () => all.figures(Date.now())[0]
  all.start()
  for (let n = 0; n < 500; n++) all.take(republication('a', n))
  await until(() => figures().confirmed === 500)
  const read = async () => {
    const entries = /** @type {any[]} */ (await redis.call('XRANGE', 's.a', '-', '+'))
    return entries.map(([, fields]) => ({ ...fields, data: JSON.parse(fields[1]).data }))
  }
  const entries = await read()
  t.same(
    entries.map(({ data }) => data),
    Array.from({ length: 500 }, (_, n) => n),
  )
  t.same(Object.values(entries[0]).slice(2, 8), [
    'id',
    'r-1',
    'centrifugo-channels',
    'a',
    'halley-origin',
    'here',
  ])
  await redis.kill()
  await until(() => !figures().up)
  for (let n = 0; n < 100; n++) all.take(republication('a', n))
  t.equal(figures().queued, 100)
  await redis.start()
  await until(() => figures().confirmed === 600)
  t.same(
    (await read()).slice(-100).map(({ data }) => data),
    Array.from({ length: 100 }, (_, n) => n),
  )
  await redis.call('SET', 's.b', 'text')
  all.take(republication('b', 1))
  await until(() => figures().refused === 1)
  t.match(figures(), { up: true, queued: 0, queued_bytes: 0, dropped: 0 })
})
