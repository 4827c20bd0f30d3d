// What only consumers of RabbitMQ have, against a real server; witness.test.js and rabbitmq-conformance.slow.js have
// the rest.

import t from 'tap'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { turn, until } from '../../../kit/wait.js'
import { makeConsumer, numbered, startConsumer } from './rig.js'

t.test('RabbitMQ', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  let queues = 0
  /** @param {object} [args] @returns {Promise<string>} a queue of its own */
  const newQueue = async (args = {}) => {
    const queue = `orders-${++queues}`
    await server.declare(queue, args)
    return queue
  }
  const start = (t, queue, more, handle) =>
    startConsumer(t, 'rabbitmq', { urls: [server.url()], queues: [queue], ...more }, handle)

  t.test('concurrency handles several messages at a time', async t => {
    const queue = await newQueue()
    await server.send(queue, numbered(50))
    const rig = await start(t, queue, { concurrency: 8 }, () => turn('done'))
    await until(() => rig.done.length === 50)
    t.equal(rig.concurrent, 8)
    await rig.consumer.stop()
    t.equal(await server.ready(queue), 0)
  })

  t.test('a message in backoff is returned on stop', async t => {
    const queue = await newQueue()
    await server.send(queue, ['one'])
    const rig = await start(t, queue, {}, () => 'retry')
    await until(() => rig.messages.length > 2)
    await rig.consumer.stop()
    t.equal(await server.ready(queue), 1)
  })

  t.test('waits for a missing or deleted queue', async t => {
    const rig = await start(t, 'later')
    await until(() => rig.failures.length > 0)
    t.match(rig.failures[0].message, /no queue 'later'/)
    await server.send(await server.declare('later').then(() => 'later'), ['one'])
    await until(() => rig.done.length === 1)
    await server.with(channel => channel.deleteQueue('later'))
    await server.declare('later')
    await server.send('later', ['two'])
    await until(() => rig.done.length === 2)
    t.same(rig.texts, ['one', 'two'])
  })

  t.test(
    'declares queues with bindings for one consumer at a time, so that two nodes keep the order',
    async t => {
      await server.with(channel => channel.assertExchange('events', 'topic'))
      const more = {
        declare: true,
        bindings: [{ queue: 'bound', exchange: 'events', routing_key: 'order.*' }],
      }
      const rigs = [await start(t, 'bound', more), await start(t, 'bound', more)]
      await until(() => rigs.every(({ lags }) => lags.length > 0))
      const publish = payloads =>
        server.with(async channel => {
          for (const payload of payloads) channel.publish('events', 'order.new', Buffer.from(payload))
          await channel.waitForConfirms()
        })
      await publish(numbered(100))
      await until(() => rigs.some(({ done }) => done.length === 100))
      const [active, other] = rigs[0].done.length > 0 ? rigs : rigs.reverse()
      t.same(active.texts, numbered(100))
      t.same(other.texts, [])
      await active.consumer.stop()
      await publish(['last'])
      await until(() => other.done.length === 1)
      t.same(other.texts, ['last'])
    },
  )

  t.test('an unreachable server fails the start', async t => {
    await server.kill()
    const rig = await makeConsumer(t, 'rabbitmq', { urls: [server.url()], queues: ['orders'] })
    await t.rejects(rig.consumer.start(), /127\.0\.0\.1:\d+: .*ECONNREFUSED/)
  })
})
