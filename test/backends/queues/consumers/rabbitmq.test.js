// A short witness of consumers of RabbitMQ; rabbitmq.slow.js and rabbitmq-conformance.slow.js have the rest.

import t from 'tap'
import * as rabbitmq from '../../../../src/backends/queues/rabbitmq/consumer.js'
import { startRabbit, withoutRabbit } from '../../../kit/servers/rabbitmq.js'
import { optionsOf } from './rabbitmq-rig.js'
import { numbered, TypeRig } from './type-rig.js'

t.test(
  'runs one message at a time, in order, tries one again in place, and leaves none',
  { skip: withoutRabbit() },
  async t => {
    const server = await startRabbit(t)
    await server.declare('orders', {})
    const headers = { 'centrifugo-method': 'publish', number: 5, nested: { a: 1 } }
    await server.send('orders', numbered(500), headers)
    const rig = new TypeRig(rabbitmq, optionsOf([server.url()], 'orders'))
    let failures = 3
    rig.answer = ({ payload }) => (payload === '250' && failures-- > 0 ? 'retry' : 'done')
    await rig.start(t)
    await rig.until(() => rig.calls.length === 500)
    t.same(rig.payloads, numbered(500))
    t.equal(rig.concurrent, 1)
    t.same(rig.calls[0].headers, { 'centrifugo-method': 'publish', number: '5' })
    t.equal(rig.calls[0].method, 'publish')
    await rig.consumer.stop()
    t.equal(await server.ready('orders'), 0)
    t.same(rig.failures, [])
  },
)
