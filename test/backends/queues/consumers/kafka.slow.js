// What only consumers of Kafka have, against a real server: partitions, rebalances, transactions;
// kafka-conformance.slow.js has the rest.

import t from 'tap'
import { loadKafka } from '../../../../src/backends/queues/kafka/client.js'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { turn, until } from '../../../kit/wait.js'
import { makeConsumer, numbered, startConsumer } from './rig.js'

const records = (values, partition = 0) => values.map(value => ({ value, partition }))

/** Texts of a partition's records. */
const of = (rig, prefix) => rig.texts.filter(text => text?.startsWith(prefix))

t.test('Kafka', { skip: withoutKafka() }, async t => {
  const server = await startKafka(t)
  const brokers = [server.broker]
  let topics = 0
  /** @param {number} [partitions] @returns {Promise<string>} a topic of its own */
  const newTopic = async partitions => {
    const topic = `orders-${++topics}`
    await server.createTopic(topic, partitions)
    return topic
  }
  const blockOf = (topic, more) => ({
    brokers,
    topics: [topic],
    consumer_group: `group-of-${topic}`,
    ...more,
  })
  const start = (t, topic, more, handle) => startConsumer(t, 'kafka', blockOf(topic, more), handle)

  t.test('a failed record delays only its partition', async t => {
    const topic = await newTopic(2)
    await server.send(topic, records(numbered(5000, 'a')))
    await server.send(topic, records(numbered(5000, 'b'), 1))
    let broken = true
    const rig = await start(t, topic, { partition_queue_max_size: 10 }, ({ text }) =>
      broken && text === 'a7' ? 'retry' : 'done',
    )
    await until(() => of(rig, 'b').length === 5000)
    t.same(of(rig, 'a'), numbered(7, 'a'))
    broken = false
    await until(() => rig.done.length === 10_000)
    t.same(of(rig, 'a'), numbered(5000, 'a'))
    t.same(of(rig, 'b'), numbered(5000, 'b'))
    await until(() => rig.lags.at(-1) === 0)
  })

  t.test('waits for a missing topic', async t => {
    const rig = await start(t, 'later')
    await until(() => rig.failures.length > 0)
    t.match(rig.failures[0].message, /Unknown topic later/)
    await server.createTopic('later')
    await server.send('later', [...records(['one']), { value: null, partition: 0 }])
    await until(() => rig.done.length === 2)
    t.same(rig.texts, ['one', null])
  })

  t.test('stop finishes the current record and commits it; one in backoff is redelivered', async t => {
    const topic = await newTopic(2)
    await server.send(topic, records(numbered(5, 'a')))
    await server.send(topic, records(numbered(5, 'b'), 1))
    let finish = outcome => outcome
    let tries = 0
    const rig = await start(t, topic, {}, ({ text }) => {
      if (text === 'a2') return new Promise(resolve => (finish = resolve))
      if (text !== 'b1') return 'done'
      tries++
      return 'retry'
    })
    await until(() => tries > 1 && of(rig, 'a').length === 2)
    const stopped = rig.consumer.stop()
    finish('done')
    await stopped
    const next = await start(t, topic)
    await until(() => next.done.length === 6)
    t.same(of(next, 'a'), ['a3', 'a4'])
    t.same(of(next, 'b'), ['b1', 'b2', 'b3', 'b4'])
  })

  t.test('records of aborted transactions are skipped', async t => {
    const topic = await newTopic()
    const { Producer } = await loadKafka()
    const producer = new Producer({
      clientId: 'test',
      bootstrapBrokers: [server.broker],
      transactionalId: 'transactions',
      idempotent: true,
    })
    for (const [value, commits] of /** @type {[string, boolean][]} */ ([
      ['a', false],
      ['b', true],
      ['c', false],
      ['d', true],
    ])) {
      const transaction = await producer.beginTransaction()
      await transaction.send({ messages: [{ topic, partition: 0, value: Buffer.from(value) }] })
      await (commits ? transaction.commit() : transaction.abort())
    }
    await producer.close()
    await server.send(topic, records(['e']))
    const rig = await start(t, topic)
    await until(() => rig.texts.includes('e'))
    t.same(rig.texts, ['b', 'd', 'e'])
    const uncommitted = await start(t, topic, { fetch_read_uncommitted: true, consumer_group: 'uncommitted' })
    await until(() => uncommitted.texts.includes('e'))
    t.same(uncommitted.texts, ['a', 'b', 'c', 'd', 'e'])
  })

  t.test('members share the partitions; records keep their order when members change', async t => {
    const topic = await newTopic(4)
    const prefixes = ['a', 'b', 'c', 'd']
    const sent = prefixes.map(() => 0)
    const send = async () => {
      for (const [partition, prefix] of prefixes.entries()) {
        const values = Array.from({ length: 50 }, () => `${prefix}${sent[partition]++}`)
        await server.send(topic, records(values, partition))
      }
    }
    const total = () => sent.reduce((sum, count) => sum + count)
    /** Of both members, in the order of handling. */
    const effects = []
    const member = () =>
      makeConsumer(t, 'kafka', blockOf(topic, {}), async ({ text }) => {
        await turn()
        effects.push(text)
        return 'done'
      })
    const [first, second] = [await member(), await member()]
    await send()
    await first.consumer.start()
    await until(() => effects.length > 20)
    await second.consumer.start()
    // The group has its second member after two heartbeats of the first one.
    while (second.done.length === 0) {
      await send()
      await until(() => new Set(effects).size === total())
    }
    await first.consumer.stop()
    await send()
    await until(() => new Set(effects).size === total())
    for (const [partition, prefix] of prefixes.entries()) {
      const seen = effects.filter(effect => effect.startsWith(prefix))
      t.same(seen, numbered(sent[partition], prefix), 'each once')
    }
  })

  t.test('a static member takes its partitions back without a rebalance', async t => {
    const topic = await newTopic()
    const more = { instance_id: 'node-a' }
    const first = await start(t, topic, more)
    await server.send(topic, records(['one']))
    await until(() => first.done.length === 1)
    await first.consumer.stop()
    await server.send(topic, records(['two']))
    const second = await start(t, topic, more)
    await until(() => second.done.length === 1)
    t.same(second.texts, ['two'])
  })

  t.test('an unreachable server fails the start', async t => {
    await server.kill()
    const rig = await makeConsumer(t, 'kafka', blockOf('orders', {}))
    await t.rejects(rig.consumer.start(), /ECONNREFUSED|127\.0\.0\.1/)
  })
})
