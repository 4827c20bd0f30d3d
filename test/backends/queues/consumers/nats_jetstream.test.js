// JetStream messages reach their handler, and are acknowledged once handled.

import { headers } from '@nats-io/transport-node'
import t from 'tap'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { until } from '../../../kit/wait.js'
import { pluck } from '../../lists.js'
import { makeConsumer, startConsumer } from './rig.js'

const blockOf = (server, more) => ({
  url: server.url(),
  stream_name: 'ORDERS',
  durable_consumer_name: 'gateway',
  deliver_policy: 'all',
  ...more,
})

t.test('a JetStream stream', { skip: withoutNats() }, async t => {
  const server = await startNats(t)
  const start = (t, more, handle) => startConsumer(t, 'nats_jetstream', blockOf(server, more), handle)
  const send = (texts, subject = 'orders.a') =>
    server.with(async ({ js }) => {
      for (const text of texts) await js.publish(subject, text)
    })
  const info = () => server.with(({ manager }) => manager.consumers.info('ORDERS', 'gateway'))

  await t.test('the consumer does not start without its stream', async t => {
    const rig = await makeConsumer(t, 'nats_jetstream', blockOf(server, {}))
    await t.rejects(rig.consumer.start(), /^stream ORDERS: .*not found/)
  })
  await server.with(({ manager }) => manager.streams.add({ name: 'ORDERS', subjects: ['orders.>'] }))

  await t.test('messages arrive in order with their headers; a failed message is redelivered', async t => {
    await send(['one'])
    const sent = headers()
    sent.set('centrifugo-method', 'publish')
    sent.set('Other', 'x')
    await server.with(({ js }) => js.publish('orders.b', 'two', { headers: sent }))
    await send(['three'])
    let failed = false
    const rig = await start(t, {}, ({ text }) => {
      if (failed || text !== 'one') return 'done'
      failed = true
      return 'retry'
    })
    await until(() => rig.messages.length === 4)
    t.same(pluck(rig.messages, 'text'), ['one', 'two', 'three', 'one'])
    t.equal(rig.messages[1].method, 'publish')
    t.same(rig.messages[1].headers, { 'centrifugo-method': 'publish', Other: 'x' })
    t.ok(Math.abs(Date.now() - rig.messages[0].since) < 60_000)
    await rig.consumer.stop()
    t.match(await info(), { num_pending: 0, num_ack_pending: 0 })
  })

  await t.test('messages arrive after a server restart and after the consumer was deleted', async t => {
    const rig = await start(t, { subjects: ['orders.c'], max_ack_pending: 50 })
    await send(['before'], 'orders.c')
    await until(() => rig.messages.length === 1)
    await server.restart()
    await send(['not mine'], 'orders.d')
    await send(['after'], 'orders.c')
    await until(() => rig.texts.includes('after'))
    t.ok(rig.failures.length > 0)
    const failures = rig.failures.length
    // A restarted server may refuse this at first.
    const remove = () => server.with(({ manager }) => manager.consumers.delete('ORDERS', 'gateway'))
    await until(async () => await remove().catch(() => false))
    await until(() => rig.failures.length > failures)
    await send(['again'], 'orders.c')
    await until(() => rig.texts.includes('again'))
    t.notOk(rig.texts.includes('not mine'))
    await rig.consumer.stop()
  })
})

t.test('the token is sent; a wrong token prevents the start', { skip: withoutNats() }, async t => {
  const server = await startNats(t, { args: ['--auth', 'right'] })
  const connection = await server.connect({ token: 'right' })
  const { jetstreamManager } = await import('@nats-io/jetstream')
  await (await jetstreamManager(connection)).streams.add({ name: 'ORDERS', subjects: ['orders.>'] })
  await connection.close()
  const options = token => blockOf(server, { token })
  const wrong = await makeConsumer(t, 'nats_jetstream', options('wrong'))
  await t.rejects(wrong.consumer.start(), /Authorization/i)
  const rig = await startConsumer(t, 'nats_jetstream', options('right'))
  await rig.consumer.stop()
})

t.test(
  'multiple subjects are consumed (NATS 2.10 or newer)',
  {
    skip: !process.env.NATS_SERVER && 'NATS_SERVER names no server of version 2.10 or newer',
  },
  async t => {
    const server = await startNats(t)
    await server.with(({ manager }) => manager.streams.add({ name: 'ORDERS', subjects: ['orders.>'] }))
    const block = blockOf(server, { subjects: ['orders.a', 'orders.b'] })
    const rig = await startConsumer(t, 'nats_jetstream', block)
    for (const subject of ['orders.a', 'orders.c', 'orders.b'])
      await server.with(({ js }) => js.publish(subject, subject))
    await until(() => rig.messages.length === 2)
    t.same(rig.texts, ['orders.a', 'orders.b'])
    await rig.consumer.stop()
  },
)
