import { Redis } from 'ioredis'
import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { conformance } from './conformance.js'

needsRedis(t)

t.setTimeout(300_000)

conformance(t, {
  type: 'redis_stream',
  ordered: false,
  backlog: 20_000,
  async start(t) {
    const server = await startRedis(t)
    const redis = new Redis({ host: server.host, port: server.port, disableClientInfo: true })
    t.teardown(() => redis.disconnect())
    await redis.call('XGROUP', 'CREATE', 'jobs', 'group', '0', 'MKSTREAM')
    return {
      port: server.port,
      consumer: port => ({
        address: `127.0.0.1:${port}`,
        streams: ['jobs'],
        consumer_group: 'group',
        visibility_timeout: '2s',
        io_timeout: '2s',
      }),
      async send(payloads) {
        const pipeline = redis.pipeline()
        for (const payload of payloads) pipeline.call('XADD', 'jobs', '*', 'payload', payload)
        await pipeline.exec()
      },
      async pending() {
        const [group] = /** @type {any[][]} */ (await redis.call('XINFO', 'GROUPS', 'jobs'))
        const at = name => Number(group[group.indexOf(name) + 1])
        return at('lag') + at('pending')
      },
      pause: () => server.stop(),
      resume: () => server.cont(),
    }
  },
})
