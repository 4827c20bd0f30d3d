import t from 'tap'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { conformance } from './conformance.js'

t.setTimeout(500_000)

t.test('kafka', { skip: withoutKafka() }, async t => {
  const proxy = await TcpProxy.start(t, 0)
  const server = await startKafka(t, { proxy })
  let topics = 0
  conformance(t, {
    type: 'kafka',
    ordered: true,
    backlog: 20_000,
    restarts: true,
    still: 30_000,
    // Offsets are committed every 5 s.
    acknowledges: 5500,
    async start() {
      const topic = `jobs-${++topics}`
      const group = `group-${topics}`
      await server.createTopic(topic)
      let sent = 0
      return {
        port: proxy.port,
        proxy,
        // A static member returns immediately; partitions of another one are free after its session of 30 s.
        consumer: (port, node = '') => ({
          brokers: [`127.0.0.1:${port}`],
          topics: [topic],
          consumer_group: group,
          instance_id: node,
        }),
        async send(payloads) {
          sent += payloads.length
          await server.send(
            topic,
            payloads.map(value => ({ value })),
          )
        },
        async pending() {
          const [found] = await server.with(admin => admin.listConsumerGroupOffsets({ groups: [group] }))
          const committed = Number(found?.topics[0]?.partitions[0]?.committedOffset ?? 0)
          return sent - Math.max(0, committed)
        },
        pause: () => server.pause(),
        resume: () => server.resume(),
        restart: () => server.restart(),
      }
    },
  })
})
