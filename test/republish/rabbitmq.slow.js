// Republishers with a real RabbitMQ server.

import { connect } from 'amqplib'
import t from 'tap'
import { loadRepublishers, Republishers } from '../../src/republish/index.js'
import { startRabbit, withoutRabbit } from '../servers/rabbitmq.js'
import { entry, quietLog, republication } from './rig.js'

/** @param {() => unknown} condition */
async function until(condition) {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 5))
}

/** @param {any} t @param {any[]} options entries of `republish` */
async function start(t, ...options) {
  const log = quietLog()
  /** @type {[number, boolean][]} */
  const confirms = []
  /** @type {number[]} */
  const reports = []
  const config = { republish: options.map(entry), channel: { namespace_boundary: ':' } }
  const all = new Republishers(config, await loadRepublishers(config), {
    origin: 'here',
    ids: 'run1-',
    log: /** @type {any} */ (log),
    republishing: {
      full: 0,
      hand() {},
      confirm: (number, ok) => void confirms.push([number, ok]),
      report: full => void reports.push(full),
    },
  })
  all.start()
  t.teardown(() => all.stop(0))
  const figures = (i = 0) => all.figures(Date.now())[i]
  return { all, log, confirms, reports, figures }
}

/**
 * A fanout exchange with a queue of its own.
 * @param {any} t @param {any} server @param {string} exchange @param {object} [args] of the queue
 */
async function listen(t, server, exchange, args) {
  /** @type {import('amqplib').ConsumeMessage[]} */
  const messages = []
  const queue = `of ${exchange}`
  const open = async () => {
    const connection = await connect(server.url())
    connection.on('error', () => {})
    const channel = await connection.createChannel()
    await channel.assertExchange(exchange, 'fanout', { durable: true })
    await channel.assertQueue(queue, { durable: true, arguments: args })
    await channel.bindQueue(queue, exchange, '')
    const receive = (/** @type {import('amqplib').ConsumeMessage | null} */ message) => {
      if (message === null) return
      messages.push(message)
      channel.ack(message)
    }
    if (!args) await channel.consume(queue, receive)
    t.teardown(() => connection.close().catch(() => {}))
  }
  await open()
  const ids = () => messages.map(({ properties }) => properties.messageId)
  const data = () => messages.map(({ content }) => JSON.parse(content.toString()).data)
  return { messages, ids, data, open }
}

t.test('RabbitMQ', { skip: withoutRabbit(), timeout: 300_000 }, async t => {
  const server = await startRabbit(t)
  const rabbitmq = { urls: [server.url()] }

  t.test(
    'Carotene layout: a fanout exchange named like the channel, messages with all properties',
    async t => {
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
    },
  )

  t.test('a missing exchange harms no other message, and is found when it is there', async t => {
    const queue = await listen(t, server, 'there')
    const { all, figures } = await start(t, { rabbitmq })
    for (let n = 0; n < 100; n++) {
      all.take(republication('there', n))
      all.take(republication(`missing-${n % 10}`, n))
      if (n === 50) all.take(republication('x'.repeat(300), n))
    }
    await until(() => figures().queued === 0)
    await until(() => queue.messages.length === 100)
    t.same(
      queue.data(),
      Array.from({ length: 100 }, (_, n) => n),
    )
    t.match(figures(), { confirmed: 100, refused: 101, up: true })
  })

  t.test('an exchange that is deleted meanwhile', async t => {
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
    await until(() => stays.data().at(-1) === 20)
    t.same(
      [...new Set(stays.data())],
      Array.from({ length: 21 }, (_, n) => n),
      'all arrive, in order, some maybe twice',
    )
    t.equal(figures().refused, 20)
  })

  t.test('returned and refused', async t => {
    await server.with(channel => channel.assertExchange('nobody', 'fanout'))
    await listen(t, server, 'small', { 'x-max-length': 1, 'x-overflow': 'reject-publish' })
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

  t.test('server killed and started again: nothing is lost, same ids, order kept', async t => {
    const queue = await listen(t, server, 'crash')
    const { all, figures } = await start(t, {
      rabbitmq: { ...rabbitmq, max_in_flight: 50 },
      queue_max_size: 1_000_000,
      queue_max_bytes: 2 ** 30,
    })
    let n = 0
    const feed = setInterval(() => {
      for (let i = 0; i < 20; i++) all.take(republication('crash', n++))
    }, 5)
    t.teardown(() => clearInterval(feed))
    await until(() => queue.messages.length > 200)
    await server.kill()
    const before = n
    await until(() => n > before + 500)
    t.notOk(figures().up)
    await server.start()
    await queue.open()
    clearInterval(feed)
    await until(() => figures().queued === 0)
    await until(() => queue.data().at(-1) === n - 1)
    t.equal(figures().dropped, 0)
    const seen = [...new Set(queue.ids())]
    const missing = Array.from({ length: n }, (_, i) => `run1-${(i + 1).toString(36)}`).filter(
      id => !seen.includes(id),
    )
    t.same(missing, [], `all of ${n} arrive`)
    const sorted = [...new Set(queue.data())]
    t.same(
      sorted,
      [...sorted].sort((a, b) => a - b),
      'in order',
    )
  })

  t.test('server stands still: the queue is bounded, and goes on after it', async t => {
    const queue = await listen(t, server, 'pause')
    const { all, figures, reports } = await start(
      t,
      { rabbitmq, queue_max_size: 100 },
      { name: 'new', rabbitmq, queue_max_size: 100, overflow: 'drop_new' },
      { name: 'block', rabbitmq, queue_max_size: 100, overflow: 'block' },
    )
    await until(() => [0, 1, 2].every(i => figures(i).up))
    all.take(republication('pause', -1, { to: 7 }))
    await until(() => queue.messages.length === 3 && [0, 1, 2].every(i => figures(i).queued === 0))
    server.pause()
    for (let n = 0; n < 150; n++) all.take(republication('pause', n, { to: 7 }))
    t.match(figures(0), { queued: 100, dropped: 50 })
    t.match(figures(1), { queued: 100, dropped: 50 })
    t.match(figures(2), { queued: 150, dropped: 0 })
    t.same(reports, [4])
    server.resume()
    await until(() => [0, 1, 2].every(i => figures(i).queued === 0))
    all.checkFull()
    t.same(reports, [4, 0])
  })

  t.test('without confirms', async t => {
    const queue = await listen(t, server, 'fire')
    const { all, figures } = await start(t, { rabbitmq: { ...rabbitmq, confirm: false } })
    for (let n = 0; n < 2000; n++) all.take(republication('fire', n))
    await until(() => figures().queued === 0 && queue.messages.length === 2000)
    t.same(
      queue.data(),
      Array.from({ length: 2000 }, (_, n) => n),
    )
  })

  t.test('the end waits until all is confirmed', async t => {
    const queue = await listen(t, server, 'end')
    const { all } = await start(t, { rabbitmq })
    for (let n = 0; n < 500; n++) all.take(republication('end', n))
    await all.stop(30_000)
    await until(() => queue.messages.length === 500)
    t.equal(all.figures(Date.now())[0].confirmed, 500)
  })
})
