// What only consumers of Kafka have, against a real server: partitions, rebalances, transactions;
// kafka-conformance.slow.js has the rest.

import t from 'tap'
import { loadKafka } from '../../../../src/backends/queues/kafka/client.js'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { memberOf } from './kafka-rig.js'
import { numbered } from './type-rig.js'

/** @param {string[]} values @param {number} [partition] */
const records = (values, partition = 0) => values.map(value => ({ value, partition }))

/** @param {import('./type-rig.js').TypeRig} rig @param {string} prefix of a partition's records */
const of = (rig, prefix) => rig.payloads.filter(payload => payload?.startsWith(prefix))

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
  /** @param {any} t @param {string} topic @param {object} [more] */
  const start = async (t, topic, more) => {
    const rig = memberOf(brokers, topic, more)
    await rig.start(t)
    return rig
  }

  t.test('a record that fails delays its partition only, however much waits', async t => {
    const topic = await newTopic(2)
    await server.send(topic, records(numbered(5000, 'a')))
    await server.send(topic, records(numbered(5000, 'b'), 1))
    const rig = memberOf(brokers, topic, { partition_queue_max_size: 10 })
    let broken = true
    rig.answer = ({ payload }) => (broken && payload === 'a7' ? 'retry' : 'done')
    await rig.start(t)
    await rig.until(() => of(rig, 'b').length === 5000)
    t.same(of(rig, 'a'), numbered(7, 'a'))
    broken = false
    await rig.until(() => rig.calls.length === 10_000)
    t.same(of(rig, 'a'), numbered(5000, 'a'))
    t.same(of(rig, 'b'), numbered(5000, 'b'))
    await rig.until(() => rig.lag === 0)
  })

  t.test('a topic that is missing is waited for', async t => {
    const rig = await start(t, 'later')
    await rig.until(() => rig.failures.length > 0)
    t.match(rig.failures[0].message, /Unknown topic later/)
    await server.createTopic('later')
    await server.send('later', records(['one']))
    await rig.until(() => rig.calls.length === 1)
  })

  t.test('stop finishes the record in work and commits it; one in back-off comes again', async t => {
    const topic = await newTopic(2)
    await server.send(topic, records(numbered(5, 'a')))
    await server.send(topic, records(numbered(5, 'b'), 1))
    const rig = memberOf(brokers, topic)
    /** @type {(outcome: 'done') => void} */
    let finish = () => {}
    let tries = 0
    rig.answer = ({ payload }) => {
      if (payload === 'a2') return new Promise(resolve => (finish = resolve))
      if (payload !== 'b1') return 'done'
      tries++
      return 'retry'
    }
    await rig.start(t)
    await rig.until(() => tries > 1 && of(rig, 'a').length === 2)
    const stopped = rig.consumer.stop()
    finish('done')
    await stopped
    const next = await start(t, topic)
    await next.until(() => next.calls.length === 6)
    t.same(of(next, 'a'), ['a3', 'a4'])
    t.same(of(next, 'b'), ['b1', 'b2', 'b3', 'b4'])
  })

  t.test('records of aborted transactions are left out', async t => {
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
    await rig.until(() => rig.payloads.includes('e'))
    t.same(rig.payloads, ['b', 'd', 'e'])
    const uncommitted = await start(t, topic, { fetch_read_uncommitted: true, consumer_group: 'uncommitted' })
    await uncommitted.until(() => uncommitted.payloads.includes('e'))
    t.same(uncommitted.payloads, ['a', 'b', 'c', 'd', 'e'])
  })

  t.test('members share the partitions; records keep their order when one comes and goes', async t => {
    const topic = await newTopic(4)
    const prefixes = ['a', 'b', 'c', 'd']
    const sent = prefixes.map(() => 0)
    const send = async () => {
      for (const [partition, prefix] of prefixes.entries()) {
        const values = Array.from({ length: 50 }, () => `${prefix}${sent[partition]++}`)
        await server.send(topic, records(values, partition))
      }
    }
    /** @type {string[]} of both members, in the order of their effect */
    const effects = []
    const members = [memberOf(brokers, topic), memberOf(brokers, topic)]
    for (const member of members) {
      member.answer = async ({ payload }) => {
        await new Promise(resolve => setImmediate(resolve))
        effects.push(/** @type {string} */ (payload))
        return /** @type {const} */ ('done')
      }
    }
    await send()
    await members[0].start(t)
    await members[0].until(() => effects.length > 20)
    await members[1].start(t)
    // The group has its second member after two heartbeats of the first one.
    while (members[1].calls.length === 0) {
      await send()
      const total = sent.reduce((sum, count) => sum + count)
      const all = () => new Set(effects).size === total
      await Promise.race(members.map(member => member.until(all)))
    }
    await members[0].consumer.stop()
    await send()
    const total = sent.reduce((sum, count) => sum + count)
    await members[1].until(() => new Set(effects).size === total)
    for (const [partition, prefix] of prefixes.entries()) {
      const seen = effects.filter(effect => effect.startsWith(prefix))
      t.same(seen, numbered(sent[partition], prefix), 'each once: nobody was killed')
    }
  })

  t.test('a static member takes its partitions back without a rebalance', async t => {
    const topic = await newTopic()
    const more = { instance_id: 'node-a' }
    const first = await start(t, topic, more)
    await server.send(topic, records(['one']))
    await first.until(() => first.calls.length === 1)
    await first.consumer.stop()
    await server.send(topic, records(['two']))
    const second = await start(t, topic, more)
    await second.until(() => second.calls.length === 1)
    t.same(second.payloads, ['two'])
  })

  t.test('without a server the start is refused', async t => {
    await server.kill()
    const rig = memberOf([server.broker], 'orders')
    await t.rejects(rig.consumer.start(), /ECONNREFUSED|127\.0\.0\.1/)
  })
})
