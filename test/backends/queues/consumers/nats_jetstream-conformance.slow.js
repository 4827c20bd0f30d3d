import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { conformance } from './conformance.js'

t.setTimeout(300_000)

/** Shorter than the 30 s of the gateway: messages of a killed node are redelivered to another one. */
const ACK_WAIT_NS = 2_000_000_000

const skip = withoutNats()
if (skip) t.plan(0, String(skip))
else
  conformance(t, {
    type: 'nats_jetstream',
    ordered: false,
    backlog: 20_000,
    async start(t) {
      const server = await startNats(t)
      const connection = await server.connect({ reconnect: true, maxReconnectAttempts: -1 })
      t.teardown(() => connection.close())
      const manager = await jetstreamManager(connection)
      await manager.streams.add({ name: 'JOBS', subjects: ['jobs'] })
      await manager.consumers.add('JOBS', {
        durable_name: 'group',
        ack_policy: AckPolicy.Explicit,
        ack_wait: ACK_WAIT_NS,
        max_ack_pending: 1000,
      })
      const js = jetstream(connection)
      return {
        port: server.port,
        consumer: port => ({
          url: server.url(port),
          stream_name: 'JOBS',
          durable_consumer_name: 'group',
          use_existing_consumer: true,
        }),
        async send(payloads) {
          await Promise.all(payloads.map(payload => js.publish('jobs', payload)))
        },
        async pending() {
          const { num_pending: waiting, num_ack_pending: working } = await manager.consumers.info(
            'JOBS',
            'group',
          )
          return waiting + working
        },
        pause: () => server.pause(),
        resume: () => server.resume(),
      }
    },
  })
