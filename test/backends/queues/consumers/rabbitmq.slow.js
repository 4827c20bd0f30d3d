// What only consumers of RabbitMQ have, against a real server; rabbitmq.test.js and rabbitmq-conformance.slow.js have
// the rest.

import t from 'tap'
import * as rabbitmq from '../../../../src/backends/queues/rabbitmq/consumer.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { optionsOf } from './rabbitmq-rig.js'
import { numbered, TypeRig } from './type-rig.js'

t.test('RabbitMQ', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  let queues = 0
  /** @param {object} [args] @returns {Promise<string>} a queue of its own */
  const newQueue = async (args = {}) => {
    const queue = `orders-${++queues}`
    await server.declare(queue, args)
    return queue
  }
  /** @param {any} t @param {string} queue @param {object} [more] @param {number} [port] */
  const start = async (t, queue, more = {}, port) => {
    const rig = new TypeRig(rabbitmq, optionsOf([server.url(port)], queue, more))
    await rig.start(t)
    return rig
  }

  t.test('concurrency runs several at a time', async t => {
    const queue = await newQueue()
    await server.send(queue, numbered(50))
    const rig = new TypeRig(rabbitmq, optionsOf([server.url()], queue, { concurrency: 8 }))
    rig.answer = async () => {
      await new Promise(resolve => setImmediate(resolve))
      return /** @type {const} */ ('done')
    }
    await rig.start(t)
    await rig.until(() => rig.calls.length === 50)
    t.equal(rig.concurrent, 8)
    await rig.consumer.stop()
    t.equal(await server.ready(queue), 0)
  })

  t.test('stop finishes the message in work and gives the others back', async t => {
    const queue = await newQueue()
    await server.send(queue, numbered(20))
    const rig = new TypeRig(rabbitmq, optionsOf([server.url()], queue))
    /** @type {(outcome: 'done') => void} */
    let finish = () => {}
    const begun = new Promise(began => {
      rig.answer = () =>
        new Promise(resolve => {
          finish = resolve
          began(null)
        })
    })
    await rig.start(t)
    await begun
    const stopped = rig.consumer.stop()
    finish('done')
    await stopped
    t.same(rig.payloads, ['0'])
    t.equal(await server.ready(queue), 19)
  })

  t.test('a message in back-off is given back at the end', async t => {
    const queue = await newQueue()
    await server.send(queue, ['one'])
    const rig = new TypeRig(rabbitmq, optionsOf([server.url()], queue))
    let tries = 0
    rig.answer = () => {
      tries++
      return 'retry'
    }
    await rig.start(t)
    await rig.until(() => tries > 2)
    await rig.consumer.stop()
    t.equal(await server.ready(queue), 1)
  })

  t.test('a queue that is missing, and one that is deleted, is waited for', async t => {
    const rig = await start(t, 'later')
    await rig.until(() => rig.failures.length > 0)
    t.match(rig.failures[0].message, /no queue 'later'/)
    await server.send(await server.declare('later').then(() => 'later'), ['one'])
    await rig.until(() => rig.calls.length === 1)
    await server.with(channel => channel.deleteQueue('later'))
    await server.declare('later')
    await server.send('later', ['two'])
    await rig.until(() => rig.calls.length === 2)
    t.same(rig.payloads, ['one', 'two'])
  })

  t.test(
    'declares queues for one consumer at a time, with their bindings: two nodes keep the order',
    async t => {
      await server.with(channel => channel.assertExchange('events', 'topic'))
      const more = {
        declare: true,
        bindings: [{ queue: 'bound', exchange: 'events', routing_key: 'order.*' }],
      }
      const rigs = [await start(t, 'bound', more), await start(t, 'bound', more)]
      for (const rig of rigs) await rig.until(() => rig.lag >= 0)
      /** @param {string[]} payloads */
      const publish = payloads =>
        server.with(async channel => {
          for (const payload of payloads) channel.publish('events', 'order.new', Buffer.from(payload))
          await channel.waitForConfirms()
        })
      await publish(numbered(100))
      await Promise.race(rigs.map(rig => rig.until(() => rig.calls.length === 100)))
      const [active, other] = rigs[0].calls.length > 0 ? rigs : rigs.reverse()
      t.same(active.payloads, numbered(100))
      t.same(other.payloads, [])
      await active.consumer.stop()
      await publish(['last'])
      await other.until(() => other.calls.length === 1)
      t.same(other.payloads, ['last'])
    },
  )

  t.test('without a server the start is refused', async t => {
    await server.kill()
    const rig = new TypeRig(rabbitmq, optionsOf([server.url()], 'orders'))
    await t.rejects(rig.consumer.start(), /127\.0\.0\.1:\d+: .*ECONNREFUSED/)
  })
})
