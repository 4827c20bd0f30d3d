// Messages of a JetStream stream reach their handler, and are acknowledged when they are finished.

import { headers } from '@nats-io/transport-node'
import t from 'tap'
import { create } from '../../../../src/backends/queues/nats/consumer.js'
import { startNats, withoutNats } from '../../../kit/servers/nats.js'
import { until } from '../../../kit/wait.js'
import { makeConsumer as make } from './rig.js'

const DEFAULTS = {
  credentials_file: '',
  username: '',
  password: '',
  token: '',
  tls: { enabled: false },
  stream_name: 'ORDERS',
  durable_consumer_name: 'gateway',
  subjects: [],
  deliver_policy: 'all',
  max_ack_pending: 100,
  use_existing_consumer: false,
  method_header: 'centrifugo-method',
}

t.test('a stream of JetStream', { skip: withoutNats() }, async t => {
  const server = await startNats(t)
  /** @type {(t: any, options?: object, handle?: (message: any) => any) => ReturnType<typeof make>} */
  const makeConsumer = (t, options, handle) =>
    make(t, create, { ...DEFAULTS, url: server.url(), ...options }, handle)
  const send = (/** @type {string[]} */ texts, subject = 'orders.a') =>
    server.with(async ({ js }) => {
      for (const text of texts) await js.publish(subject, text)
    })
  const info = () => server.with(({ manager }) => manager.consumers.info('ORDERS', 'gateway'))
  const texts = (/** @type {any} */ rig) =>
    rig.messages.map((/** @type {any} */ { payload }) => payload.toString())

  await t.test('without its stream it does not start', async t => {
    await t.rejects(makeConsumer(t).consumer.start(), /^stream ORDERS: .*not found/)
  })
  await server.with(({ manager }) => manager.streams.add({ name: 'ORDERS', subjects: ['orders.>'] }))

  await t.test('messages come in order with their headers; one that failed comes again', async t => {
    await send(['one'])
    const sent = headers()
    sent.set('centrifugo-method', 'publish')
    sent.set('Other', 'x')
    await server.with(({ js }) => js.publish('orders.b', 'two', { headers: sent }))
    await send(['three'])
    let failed = false
    const rig = makeConsumer(t, {}, ({ payload }) => {
      if (failed || payload.toString() !== 'one') return 'done'
      failed = true
      return 'retry'
    })
    await rig.consumer.start()
    await rig.until(() => rig.messages.length === 4)
    t.same(texts(rig), ['one', 'two', 'three', 'one'])
    t.equal(rig.messages[1].method, 'publish')
    t.same({ ...rig.messages[1].headers }, { 'centrifugo-method': 'publish', Other: 'x' })
    t.ok(Math.abs(Date.now() - rig.messages[0].since) < 60_000)
    await rig.consumer.stop()
    t.match(await info(), { num_pending: 0, num_ack_pending: 0 })
  })

  await t.test('a server that is killed, and a consumer that is deleted, come back', async t => {
    const rig = makeConsumer(t, { subjects: ['orders.c'], max_ack_pending: 50 })
    await rig.consumer.start()
    await send(['before'], 'orders.c')
    await rig.until(() => rig.messages.length === 1)
    await server.restart()
    await send(['not mine'], 'orders.d')
    await send(['after'], 'orders.c')
    await rig.until(() => rig.messages.some(({ payload }) => payload.toString() === 'after'))
    t.ok(rig.failures.length > 0)
    const failures = rig.failures.length
    // A server that has just come back may refuse it at first.
    const remove = () => server.with(({ manager }) => manager.consumers.delete('ORDERS', 'gateway'))
    await until(async () => await remove().catch(() => false))
    await rig.until(() => rig.failures.length > failures)
    await send(['again'], 'orders.c')
    await rig.until(() => rig.messages.some(({ payload }) => payload.toString() === 'again'))
    t.notOk(texts(rig).includes('not mine'))
    await rig.consumer.stop()
  })
})

t.test('a token is sent; a wrong one refuses the start', { skip: withoutNats() }, async t => {
  const server = await startNats(t, { args: ['--auth', 'right'] })
  const connection = await server.connect({ token: 'right' })
  const { jetstreamManager } = await import('@nats-io/jetstream')
  await (await jetstreamManager(connection)).streams.add({ name: 'ORDERS', subjects: ['orders.>'] })
  await connection.close()
  const options = { ...DEFAULTS, url: server.url() }
  await t.rejects(make(t, create, { ...options, token: 'wrong' }).consumer.start(), /Authorization/i)
  const rig = make(t, create, { ...options, token: 'right' })
  await rig.consumer.start()
  await rig.consumer.stop()
})

t.test(
  'several subjects need a newer server',
  {
    skip: !process.env.NATS_SERVER && 'NATS_SERVER names no server of version 2.10 or newer',
  },
  async t => {
    const server = await startNats(t)
    await server.with(({ manager }) => manager.streams.add({ name: 'ORDERS', subjects: ['orders.>'] }))
    const rig = make(t, create, { ...DEFAULTS, url: server.url(), subjects: ['orders.a', 'orders.b'] })
    await rig.consumer.start()
    for (const subject of ['orders.a', 'orders.c', 'orders.b'])
      await server.with(({ js }) => js.publish(subject, subject))
    await rig.until(() => rig.messages.length === 2)
    t.same(
      rig.messages.map(({ payload }) => payload.toString()),
      ['orders.a', 'orders.b'],
    )
    await rig.consumer.stop()
  },
)
