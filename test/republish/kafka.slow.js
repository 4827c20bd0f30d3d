// A republisher with a real Kafka server.

import t from 'tap'
import { loadKafka } from '../../src/kafka-client.js'
import { startKafka, withoutKafka } from '../servers/kafka.js'
import { republication, startRepublishers, until } from './rig.js'

const numbers = (/** @type {number} */ count, first = 0) => Array.from({ length: count }, (_, i) => first + i)

t.test('Kafka', { skip: withoutKafka(), timeout: 240_000 }, async t => {
  const server = await startKafka(t)
  await server.createTopic('out', 2)
  const kafka = { brokers: [server.broker], topic: 'out', max_in_flight: 50 }
  const { all, figures } = await startRepublishers(t, { type: 'kafka', kafka })

  t.test('a topic that is missing: refused', async t => {
    const lone = await startRepublishers(t, { type: 'kafka', kafka: { ...kafka, topic: 't.{channel}' } })
    lone.all.take(republication('x y', 1))
    for (const n of numbers(20)) lone.all.take(republication('a', n))
    await until(() => lone.figures().refused === 21)
    t.equal(lone.figures().up, true)
  })

  t.test('a message larger than the server takes is refused, and no other', async t => {
    for (const n of numbers(100)) all.take(republication('a', n))
    all.take(republication('b', 'x'.repeat(1_100_000)))
    for (const n of numbers(100)) all.take(republication('b', n))
    await until(() => figures().queued === 0)
    t.match(figures(), { confirmed: 200, refused: 1, up: true })
  })

  t.test('a server that was away gets everything; channels keep their order', async t => {
    await server.kill()
    for (const n of numbers(100, 100)) all.take(republication('a', n))
    await until(() => !figures().up)
    await server.start()
    await until(() => figures().confirmed === 300)
    const { Consumer } = await loadKafka()
    const consumer = new Consumer({ clientId: 'test', groupId: 'reader', bootstrapBrokers: [server.broker] })
    const stream = await consumer.consume({ topics: ['out'], mode: 'earliest', autocommit: false })
    /** @type {Map<string, number[]>} */
    const seen = new Map([
      ['a', []],
      ['b', []],
    ])
    /** @type {any[]} */
    const records = []
    stream.on('data', record => {
      records.push(record)
      const { channel, data } = JSON.parse(record.value.toString())
      // A repeat after the outage is no fault.
      if (!seen.get(channel)?.includes(data)) seen.get(channel)?.push(data)
    })
    await until(() => seen.get('a')?.length === 200 && seen.get('b')?.length === 100)
    t.same(seen.get('a'), numbers(200))
    t.same(seen.get('b'), numbers(100))
    const first = records.find(({ key }) => key.toString() === 'a')
    const headers = Object.fromEntries([...first.headers].map(([name, value]) => [`${name}`, `${value}`]))
    t.same(headers, { id: 'r-1', 'centrifugo-channels': 'a', 'halley-origin': 'here' })
    t.match(figures(), { dropped: 0, queued: 0, queued_bytes: 0 })
    await consumer.close(true)
  })
})
