// The conformance suite of republishing for Kafka, and what only Kafka has.

import t from 'tap'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { until } from '../../../kit/wait.js'
import { numbers } from '../../lists.js'
import { conformance } from './conformance.js'
import { republication, startRepublishers } from './rig.js'

conformance(t, 'kafka')

t.test('Kafka', { skip: withoutKafka(), timeout: 240_000 }, async t => {
  const server = await startKafka(t)
  await server.createTopic('out', 2)
  const kafka = { brokers: [server.broker], topic: 'out', max_in_flight: 50 }
  const { all, figures } = await startRepublishers(t, { type: 'kafka', kafka })

  t.test('a message to a missing topic is refused', async t => {
    const lone = await startRepublishers(t, { type: 'kafka', kafka: { ...kafka, topic: 't.{channel}' } })
    lone.all.take(republication('x y', 1))
    for (const n of numbers(20)) lone.all.take(republication('a', n))
    await until(() => lone.figures().refused === 21)
    t.equal(lone.figures().up, true)
  })

  t.test('only a message above the limit of the server is refused', async t => {
    for (const n of numbers(100)) all.take(republication('a', n))
    all.take(republication('b', 'x'.repeat(1_100_000)))
    for (const n of numbers(100)) all.take(republication('b', n))
    await until(() => figures().queued === 0)
    t.match(figures(), { confirmed: 200, refused: 1, up: true })
  })
})
