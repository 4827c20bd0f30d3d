// Publications that gateways republish: by source, without loops, once per cluster, and after processes are killed.

import t from 'tap'
import { startGateway } from '../../../kit/gateway.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { numbers, pluck } from '../../lists.js'
import { item } from '../consumers/rig.js'
import { childOf, join, metricsOf, openConfig } from '../gateways.js'
import { bind } from './exchanges.js'

needsRedis(t)

/** @param {any} redis @param {string} stream @returns {Promise<any[]>} bodies */
async function bodiesOf(redis, stream) {
  const entries = await redis.call('XRANGE', stream, '-', '+')
  return entries.map(([, fields]) => JSON.parse(fields[fields.indexOf('payload') + 1]))
}

/** @param {string} name also of the stream @param {any} redis @param {object} [more] */
const toStream = (name, redis, more) => ({
  name,
  enabled: true,
  type: 'redis_stream',
  channels: ['*'],
  redis_stream: { address: redis.address, stream: name, max_length: 0 },
  ...more,
})

t.test('a republisher sends only publications from its sources', async t => {
  const redis = await startRedis(t)
  const gateway = await startGateway(t, {
    ...openConfig,
    workers: 1,
    consumers: [item('redis_stream', { address: redis.address, streams: ['jobs'], consumer_group: 'group' })],
    republish: [
      ...['client', 'api', 'consumer'].map(source => toStream(source, redis, { sources: [source] })),
      toStream('two', redis, { sources: ['api', 'consumer'] }),
    ],
  })
  const client = await join(t, gateway)
  t.same((await client.publish('a', 'by client')).publish, {})
  t.match(await gateway.api('publish', { channel: 'a', data: 'by api' }), { result: {} })
  t.match(await gateway.api('broadcast', { channels: ['b', 'c'], data: 'by api' }), { result: {} })
  const command = { method: 'publish', payload: { channel: 'a', data: 'by consumer' } }
  await redis.call('XADD', 'jobs', '*', 'payload', JSON.stringify(command))
  await until(async () => (await redis.call('XLEN', 'two')) === 4)
  t.same(await gateway.stop(), { code: 0, signal: null })
  const seen = async stream =>
    (await bodiesOf(redis, stream)).map(({ channel, data, source }) => `${channel} ${data} ${source}`)
  t.same(await seen('client'), ['a by client client'])
  t.same(await seen('api'), ['a by api api', 'b by api api', 'c by api api'])
  t.same(await seen('consumer'), ['a by consumer consumer'])
  t.same((await seen('two')).toSorted(), [...(await seen('api')), ...(await seen('consumer'))].toSorted())
})

t.test('the gateway may consume the queue to which it republishes', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  const start = async (t, exchange, sources, ownOrigin) => {
    const queue = await bind(server, exchange)
    const gateway = await startGateway(t, {
      ...openConfig,
      workers: 1,
      consumers: [
        {
          ...item('rabbitmq', {
            urls: [server.url()],
            queues: [queue],
            publication_data_mode: { enabled: true },
          }),
          own_origin: ownOrigin,
        },
      ],
      republish: [
        {
          name: 'out',
          enabled: true,
          type: 'rabbitmq',
          channels: ['*'],
          sources,
          format: 'data',
          rabbitmq: { urls: [server.url()], exchange },
        },
      ],
    })
    const client = await join(t, gateway)
    await client.subscribe('a')
    for (const n of numbers(50)) await client.publish('a', n)
    return { gateway, client }
  }

  t.test('own messages are skipped: each publication is delivered once and the queue is empty', async t => {
    const { gateway, client } = await start(t, 'loop', ['client', 'consumer'], false)
    let metrics = new Map()
    const figure = name => [...metrics].find(([key]) => name.test(key))?.[1]
    await until(async () => {
      metrics = await metricsOf(gateway)
      return figure(/skipped.*own_origin/) === 50
    })
    t.same(pluck(client.received, 'data'), numbers(50))
    t.equal(figure(/^halley_republish_sent_total/), 50, 'and none is sent again')
    t.same(await gateway.stop(), { code: 0, signal: null })
    t.equal(await server.ready('of loop'), 0)
  })

  t.test('with own_origin, they are delivered again', async t => {
    const { gateway, client } = await start(t, 'round', ['client'], true)
    await until(() => client.received.length === 100)
    t.same(
      client.received.map(({ data }) => data).toSorted((a, b) => a - b),
      [...numbers(50).flatMap(n => [n, n])],
    )
    t.same(await gateway.stop(), { code: 0, signal: null })
    t.equal(await server.ready('of round'), 0)
  })
})

for (const count of [1, 2]) {
  t.test(`Redis engine, ${count} nodes: publications are republished once, in order per client`, async t => {
    const redis = await startRedis(t)
    const gateways = await Promise.all(
      numbers(count).map(() =>
        startGateway(t, {
          ...openConfig,
          workers: 2,
          engine: { type: 'redis', redis: { address: redis.address, connect_timeout: '10s' } },
          channel: { without_namespace: { history_size: 10_000, history_ttl: '300s' } },
          republish: [toStream('out', redis)],
        }),
      ),
    )
    const clients = await Promise.all(numbers(8).map(n => join(t, gateways[n % count])))
    const rooms = ['a', 'b']
    await Promise.all(
      clients.map(async (client, from) => {
        for (const n of numbers(50)) await Promise.all(rooms.map(room => client.publish(room, { from, n })))
      }),
    )
    for (const gateway of gateways) t.same(await gateway.stop(), { code: 0, signal: null })
    const bodies = await bodiesOf(redis, 'out')
    t.equal(bodies.length, 800)
    t.equal(new Set(bodies.map(({ id }) => id)).size, 800)
    for (const room of rooms) {
      const ofRoom = bodies.filter(({ channel }) => channel === room)
      t.same(
        ofRoom.map(({ offset }) => offset).toSorted((a, b) => a - b),
        numbers(400).map(n => n + 1),
        'each offset once',
      )
      t.equal(new Set(ofRoom.map(({ epoch }) => epoch)).size, 1)
      for (const from of numbers(8)) {
        const own = ofRoom.filter(({ data }) => data.from === from)
        t.same(
          own.map(({ data }) => data.n),
          numbers(50),
        )
      }
    }
  })
}

t.test(
  'a worker and the queue process are killed: required publications are stored, lost ones are counted',
  async t => {
    const redis = await startRedis(t)
    const gateway = await startGateway(t, {
      ...openConfig,
      workers: 2,
      republish: [
        toStream('must', redis, { channels: ['must'], required: true }),
        toStream('loose', redis, {
          channels: ['loose'],
          redis_stream: { address: redis.address, stream: 'loose', max_length: 0, max_in_flight: 10 },
        }),
      ],
    })
    /** @type {Record<string, number[]>} numbers acknowledged without an error */
    const accepted = { must: [], loose: [] }
    let next = 0
    let stopped = false
    const work = async channel => {
      for (let client = null; !stopped; ) {
        try {
          client ??= await join(t, gateway)
        } catch {
          continue
        }
        const n = ++next
        const reply = await client.publish(channel, n)
        if (reply.publish) accepted[channel].push(n)
        if (reply.lost) client = null
      }
    }
    const working = [...Array(4).fill('must'), ...Array(4).fill('loose')].map(work)
    const progress = async () => {
      const [must, loose] = [accepted.must.length, accepted.loose.length]
      await until(() => accepted.must.length > must + 200 && accepted.loose.length > loose + 200)
    }
    await progress()
    process.kill(childOf(gateway, 'worker/main.js'), 'SIGKILL')
    await gateway.line(({ msg }) => msg === 'worker died')
    await progress()
    const queues = childOf(gateway, 'queues/main.js')
    // Its queue in memory is lost.
    redis.stop()
    const standing = accepted.loose.length
    await until(() => accepted.loose.length > standing + 100)
    process.kill(queues, 'SIGKILL')
    await gateway.line(({ msg, pid }) => msg === 'queue process died' && pid === queues)
    redis.cont()
    await progress()
    stopped = true
    await Promise.all(working)
    const figure = (name, labels) =>
      metrics.get(`halley_republish_${name}{republisher_name="loose",${labels}}`) ?? 0
    let metrics = new Map()
    let lost = 0
    await until(async () => {
      metrics = await metricsOf(gateway)
      lost = ['process_died', 'no_process', 'queue_full']
        .map(reason => figure('lost_total', `reason="${reason}"`))
        .reduce((sum, count) => sum + count)
      return figure('outcomes_total', 'outcome="confirmed"') + lost >= accepted.loose.length
    })
    t.same(await gateway.stop(), { code: 0, signal: null })
    const stored = async stream => new Set((await bodiesOf(redis, stream)).map(({ data }) => data))
    const must = await stored('must')
    t.same(
      accepted.must.filter(n => !must.has(n)),
      [],
      `all ${accepted.must.length} acknowledged publications are stored`,
    )
    const loose = await stored('loose')
    const missing = accepted.loose.filter(n => !loose.has(n)).length
    t.ok(
      missing > 0 && missing <= lost,
      `${missing} of ${accepted.loose.length} are missing, ${lost} are counted as lost`,
    )
  },
)
