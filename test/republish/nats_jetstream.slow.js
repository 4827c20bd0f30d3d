// A republisher with a real NATS server.

import t from 'tap'
import { startNats, withoutNats } from '../servers/nats.js'
import { republication, startRepublishers, until } from './rig.js'

const numbers = (/** @type {number} */ count, first = 0) => Array.from({ length: count }, (_, i) => first + i)

/** @param {any} server @param {string} stream @returns {Promise<any[]>} its messages */
const read = (server, stream) =>
  server.with(async (/** @type {any} */ { manager }) => {
    const messages = []
    const { state } = await manager.streams.info(stream)
    for (let seq = 1; seq <= state.last_seq; seq++)
      messages.push(await manager.streams.getMessage(stream, { seq }))
    return messages
  })

t.test('NATS JetStream', { skip: withoutNats(), timeout: 120_000 }, async t => {
  const server = await startNats(t)
  await server.with(({ manager }) => manager.streams.add({ name: 's', subjects: ['out.>'] }))
  const nats_jetstream = { url: server.url(), subject: 'out.{channel}', max_in_flight: 50 }
  const { all, figures } = await startRepublishers(t, { type: 'nats_jetstream', nats_jetstream })

  t.test('messages in order, with id and headers', async t => {
    for (const n of numbers(200)) all.take(republication('a', n))
    await until(() => figures().confirmed === 200)
    const messages = await read(server, 's')
    t.same(
      messages.map(message => message.json().data),
      numbers(200),
    )
    t.equal(messages[0].subject, 'out.a')
    t.equal(messages[0].header.get('Nats-Msg-Id'), 'r-1')
    t.equal(messages[0].header.get('centrifugo-channels'), 'a')
    t.equal(messages[0].header.get('halley-origin'), 'here')
  })

  t.test('a channel that is no subject, a subject without a stream: refused, others go on', async t => {
    for (const channel of ['x y', 'x\r\nPUB z 0', '*', 'x..y', 'x.']) all.take(republication(channel, 1))
    all.take(republication('a', 200))
    await until(() => figures().queued === 0)
    t.match(figures(), { refused: 5, confirmed: 201, up: true })
    const lone = await startRepublishers(t, {
      type: 'nats_jetstream',
      nats_jetstream: { ...nats_jetstream, subject: 'nowhere.{channel}' },
    })
    for (const n of numbers(20)) lone.all.take(republication('a', n))
    await until(() => lone.figures().refused === 20)
    t.equal(lone.figures().up, true)
  })

  t.test('a server that was away gets everything, in order', async t => {
    await server.kill()
    await until(() => !figures().up)
    for (const n of numbers(100, 201)) all.take(republication('a', n))
    t.equal(figures().queued, 100)
    await server.start()
    await until(() => figures().confirmed === 301)
    t.same(
      (await read(server, 's')).map(message => message.json().data),
      numbers(301),
    )
    t.match(figures(), { dropped: 0, queued: 0, queued_bytes: 0 })
  })
})
