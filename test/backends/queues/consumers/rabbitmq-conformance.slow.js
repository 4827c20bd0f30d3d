import t from 'tap'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { conformance } from './conformance.js'

t.setTimeout(300_000)

t.test('rabbitmq', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  let queues = 0
  conformance(t, {
    type: 'rabbitmq',
    ordered: true,
    backlog: 20_000,
    restarts: true,
    dead: 'rejected',
    still: 30_000,
    async start() {
      const queue = `jobs-${++queues}`
      const dead = `dead-${queues}`
      await server.declare(dead)
      await server.declare(queue, {
        'x-single-active-consumer': true,
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': dead,
      })
      return {
        port: server.port,
        consumer: port => ({ urls: [server.url(port)], queues: [queue], on_malformed: 'reject' }),
        send: payloads => server.send(queue, payloads),
        // Those that are delivered and not acknowledged are not among them, while the connection is there.
        pending: () => server.ready(queue),
        dead: () =>
          server.with(async channel => {
            const found = []
            for (;;) {
              const message = await channel.get(dead, { noAck: true })
              if (message === false) return found
              const [{ reason }] = /** @type {any} */ (message.properties.headers)['x-death']
              found.push({ payload: message.content.toString(), reason })
            }
          }),
        pause: () => server.pause(),
        resume: () => server.resume(),
        restart: () => server.restart(),
      }
    },
  })
})
