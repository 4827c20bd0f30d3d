// A gateway with the queue process and a real Redis: message formats, skips, shutdown.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../../kit/gateway.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'

needsRedis(t)

const consumer = (name, redis, more = {}) => ({
  name,
  enabled: true,
  type: 'redis_stream',
  redis_stream: { address: redis.address, streams: [name], consumer_group: 'group', ...more },
})

t.test('publishes entries, skips invalid ones, and finishes pending ones on shutdown', async t => {
  const redis = await startRedis(t)
  const gateway = await startGateway(t, {
    workers: 1,
    cluster_name: 'here',
    prometheus: { enabled: true },
    channel: {
      without_namespace: { history_size: 10, history_ttl: '60s' },
      namespaces: [{ name: 'map', subscription_type: 'map', map: { mode: 'persistent' } }],
    },
    consumers: [
      consumer('commands', redis),
      consumer('data', redis, { publication_data_mode: { enabled: true } }),
      { name: 'off', enabled: false, type: 'redis_stream' },
    ],
  })
  const command = x => JSON.stringify({ method: 'publish', payload: { channel: 'c', data: { x } } })
  await redis.call('XADD', 'commands', '*', 'payload', command(1))
  await redis.call('XADD', 'commands', '*', 'payload', 'not JSON')
  await redis.call('XADD', 'commands', '*', 'no', 'payload')
  await redis.call('XADD', 'commands', '*', 'method', 'publish', 'payload', '{"channel":"c","data":{"x":2}}')
  await redis.call('XADD', 'commands', '*', 'halley-origin', 'here', 'payload', command(9))
  /** @type {[string, object][]} */
  const writes = [
    ['map_publish', { channel: 'map:1', key: 'a', data: 1 }],
    ['map_publish', { channel: 'map:1', key: 'b', b64data: '/w==' }],
    ['map_remove', { channel: 'map:1', key: 'a' }],
    ['publish', { channel: 'map:1', data: 1 }],
  ]
  for (const [method, params] of writes)
    await redis.call('XADD', 'commands', '*', 'method', method, 'payload', JSON.stringify(params))
  await redis.call('XADD', 'data', '*', 'payload', 'hello', 'centrifugo-channels', 'd')
  await redis.call('XADD', 'data', '*', 'payload', '{"x":3}', 'centrifugo-channels', 'c,d')
  const skips = ['commands', 'data'].map(name =>
    gateway.line(({ msg, consumer }) => msg === 'message skipped' && consumer === name),
  )
  t.match(await Promise.all(skips), [{ reason: 'malformed' }, { reason: 'invalid_data' }])
  const wanted = [
    'centrifugo_consumers_messages_processed_total{consumer_name="commands"} 9',
    'centrifugo_consumers_messages_processed_total{consumer_name="data"} 2',
    'centrifugo_consumers_errors_total{consumer_name="data"} 0',
    'halley_consumers_skipped_total{consumer_name="commands",reason="malformed"} 2',
    'halley_consumers_skipped_total{consumer_name="commands",reason="own_origin"} 1',
    'halley_consumers_skipped_total{consumer_name="commands",reason="bad_request"} 1',
    'halley_consumers_skipped_total{consumer_name="data",reason="invalid_data"} 1',
  ]
  await until(async () => {
    const page = await (await fetch(`${gateway.url}/metrics`)).text()
    return wanted.every(line => page.includes(line))
  })
  const { result } = await gateway.api('history', { channel: 'c', limit: 10 })
  t.same(result.publications.map(({ data }) => data.x).sort(), [1, 2, 3])
  const changes = await gateway.api('map_read_stream', { channel: 'map:1', limit: -1 })
  t.match(changes.result.entries, [
    { key: 'a', data: 1 },
    { key: 'b', b64data: '/w==' },
    { key: 'a', removed: true },
  ])
  const file = join(gateway.folder, 'config.json')
  const config = JSON.parse(await readFile(file, 'utf8'))
  config.consumers.pop()
  await writeFile(file, JSON.stringify(config))
  gateway.process.kill('SIGHUP')
  await gateway.line(({ msg, key }) => msg === 'the new value requires a restart' && key === 'consumers')
  const ended = await gateway.stop()
  t.same(ended, { code: 0, signal: null })
  for (const [stream, entries] of [
    ['commands', 9],
    ['data', 2],
  ]) {
    const [group] = await redis.call('XINFO', 'GROUPS', stream)
    const at = name => group[group.indexOf(name) + 1]
    t.equal(at('pending'), 0, `${stream}: all read entries are acknowledged`)
    t.equal(at('consumers'), 0, `${stream}: a stopped node leaves the group`)
    t.ok(at('entries-read') <= entries)
  }
})

t.test('an unreachable server fails the start with a one-line error', async t => {
  const redis = await startRedis(t)
  await redis.kill()
  const failed = startGateway(t, { workers: 1, consumers: [consumer('jobs', redis)] })
  await t.rejects(failed, /consumer "jobs": cannot reach redis at .*ECONNREFUSED/)
})
