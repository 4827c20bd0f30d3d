// A short witness of consumers of Kafka; kafka.slow.js has the faults.

import t from 'tap'
import { startKafka, withoutKafka } from '../../../kit/servers/kafka.js'
import { memberOf } from './kafka-rig.js'
import { numbered } from './type-rig.js'

t.test(
  'runs the records of a partition in order, and reads on where it stopped',
  { skip: withoutKafka() },
  async t => {
    const server = await startKafka(t)
    await server.createTopic('orders', 2)
    const headers = { 'centrifugo-method': 'publish' }
    await server.send(
      'orders',
      numbered(100).map(value => ({ value, headers })),
    )
    const first = memberOf([server.broker], 'orders')
    let failures = 3
    first.answer = ({ payload }) => (payload === '50' && failures-- > 0 ? 'retry' : 'done')
    await first.start(t)
    await first.until(() => first.calls.length === 100)
    t.same(first.payloads, numbered(100))
    t.equal(first.calls[0].method, 'publish')
    t.same(first.calls[0].headers, headers)
    t.ok(Math.abs(/** @type {number} */ (first.calls[0].since) - Date.now()) < 60_000)
    await first.consumer.stop()
    await server.send('orders', [{ value: 'next' }, { value: null, partition: 1 }])
    const second = memberOf([server.broker], 'orders')
    await second.start(t)
    await second.until(() => second.calls.length === 2)
    t.same([...second.payloads].sort(), ['next', null])
    t.same(second.failures, [])
  },
)
