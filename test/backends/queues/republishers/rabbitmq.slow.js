// The conformance suite of republishing for RabbitMQ, and what only RabbitMQ has.

import t from 'tap'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { until } from '../../../kit/wait.js'
import { numbers } from '../../lists.js'
import { conformance } from './conformance.js'
import { bind, listen } from './exchanges.js'
import { republication, startRepublishers } from './rig.js'

conformance(t, 'rabbitmq')

/** @param {any} t @param {...any} options entries of `republish` */
const start = (t, ...options) => startRepublishers(t, options, 'run1-')

t.test('RabbitMQ', { skip: withoutRabbit(), timeout: 300_000 }, async t => {
  const server = await startRabbit(t)
  const rabbitmq = { urls: [server.url()] }

  t.test('Carotene layout: each channel has a fanout exchange, messages have all properties', async t => {
    const queue = await listen(t, server, 'chat:1')
    const { all, figures } = await start(t, { rabbitmq, format: 'carotene' })
    for (let n = 0; n < 3; n++) all.take(republication('chat:1', { n }))
    await until(() => queue.messages.length === 3 && figures().confirmed === 3)
    const [{ content, properties, fields }] = queue.messages
    t.same(JSON.parse(content.toString()), {
      type: 'message',
      message: { n: 0 },
      channel: 'chat:1',
      user_id: '7',
      user_data: null,
    })
    t.equal(fields.routingKey, '')
    t.match(properties, {
      contentType: 'application/json',
      deliveryMode: 2,
      appId: 'halley',
      messageId: 'run1-1',
    })
    t.same(properties.headers, { 'centrifugo-channels': 'chat:1', 'halley-origin': 'here' })
    t.match(figures(), { sent: 3, confirmed: 3, queued: 0, queued_bytes: 0, up: true })
  })

  t.test('a missing exchange affects no other message, and is used once it exists', async t => {
    const queue = await listen(t, server, 'there')
    const { all, figures } = await start(t, { rabbitmq })
    for (let n = 0; n < 100; n++) {
      all.take(republication('there', n))
      all.take(republication(`missing-${n % 10}`, n))
      if (n === 50) all.take(republication('x'.repeat(300), n))
    }
    await until(() => figures().queued === 0)
    await until(() => queue.messages.length === 100)
    t.same(queue.data, numbers(100))
    t.match(figures(), { confirmed: 100, refused: 101, up: true })
  })

  t.test('deleting an exchange in use affects only its own messages', async t => {
    const [stays, goes] = [await listen(t, server, 'stays'), await listen(t, server, 'goes')]
    const { all, figures } = await start(t, { rabbitmq })
    all.take(republication('goes', 0))
    all.take(republication('stays', 0))
    await until(() => goes.messages.length === 1 && stays.messages.length === 1)
    await server.with(channel => channel.deleteExchange('goes'))
    for (let n = 1; n <= 20; n++) {
      all.take(republication('goes', n))
      all.take(republication('stays', n))
    }
    await until(() => figures().queued === 0)
    await until(() => stays.data.at(-1) === 20)
    t.same([...new Set(stays.data)], numbers(21), 'all arrive, in order, some maybe twice')
    t.equal(figures().refused, 20)
  })

  t.test('returned and refused messages are counted', async t => {
    await server.with(channel => channel.assertExchange('nobody', 'fanout'))
    await bind(server, 'small', { 'x-max-length': 1, 'x-overflow': 'reject-publish' })
    const { all, figures, confirms } = await start(t, {
      rabbitmq: { ...rabbitmq, mandatory: true },
      required: true,
    })
    all.take(republication('nobody', 1, { number: 1 }))
    await until(() => confirms.length === 1)
    for (const number of [2, 3, 4]) {
      all.take(republication('small', 1, { number }))
      await until(() => confirms.length === number)
    }
    t.same(confirms[0], [1, false])
    t.same(confirms[1], [2, true])
    t.same(confirms.at(-1), [4, false])
    t.match(figures(), { returned: 1 })
    t.equal(figures().confirmed + figures().refused, 3)
  })

  t.test('without confirms, all messages are sent', async t => {
    const queue = await listen(t, server, 'fire')
    const { all, figures } = await start(t, { rabbitmq: { ...rabbitmq, confirm: false } })
    for (let n = 0; n < 2000; n++) all.take(republication('fire', n))
    await until(() => figures().queued === 0 && queue.messages.length === 2000)
    t.same(queue.data, numbers(2000))
  })

  t.test('a missing exchange with a long name is checked once, and reported', async t => {
    // The server cuts its error text at 255 bytes, within the name.
    const name = 'n'.repeat(250)
    const { all, figures, log } = await start(t, { rabbitmq })
    all.take(republication(name, 1))
    await until(() => figures().queued === 0)
    t.match(figures(), { refused: 1 })
    const reports = log.lines.filter(({ message }) => message === 'exchange cannot be used')
    t.match(reports, [{ fields: { exchange: name, reason: /NOT_FOUND/ } }])
  })

  t.test('the reason of a refusal is the one of the server', async t => {
    await server.with(channel => channel.assertExchange('direct', 'direct'))
    const { all, figures, log } = await start(t, { rabbitmq: { ...rabbitmq, declare: true } })
    all.take(republication('direct', 1))
    await until(() => figures().queued === 0)
    all.take(republication('direct', 2))
    await until(() => figures().refused === 2)
    const refusals = log.lines.filter(({ fields }) => fields.outcome === 'refused')
    t.match(refusals, [
      { fields: { reason: /PRECONDITION_FAILED/ } },
      { fields: { reason: /PRECONDITION_FAILED/ } },
    ])
  })

  t.test('without confirms, mandatory has no effect', async t => {
    await server.with(channel => channel.assertExchange('unbound', 'fanout'))
    const proxy = await TcpProxy.start(t, server.port)
    let received = 0
    proxy.onAnswer = ({ length }) => {
      received += length
    }
    const url = server.url(proxy.port)
    const { all, figures } = await start(t, {
      rabbitmq: { ...rabbitmq, urls: [url], confirm: false, mandatory: true },
    })
    all.take(republication('unbound', 'x'.repeat(100_000)))
    await until(() => figures().queued === 0)
    // The server has handled the message when it refuses the next one.
    const sent = received
    await server.with(channel => channel.deleteExchange('unbound'))
    all.take(republication('unbound', 'y'))
    await until(() => received > sent)
    t.ok(received < 100_000, `${received} bytes came from the server`)
  })
})
