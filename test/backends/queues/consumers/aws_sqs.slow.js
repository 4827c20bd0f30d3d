// Messages of SQS queues reach their handler, and are deleted when they are finished. moto is the service.

import { CreateQueueCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { CREDENTIALS, startSqs } from '../../../kit/servers/sqs.js'
import { leftIn, sqsConsumer } from './sqs-rig.js'

Object.assign(process.env, CREDENTIALS)

t.test('queues of SQS', async t => {
  const server = await startSqs(t)
  const client = server.client()
  t.teardown(() => client.destroy())
  const queue = async (/** @type {string} */ name, attributes = {}) => {
    const made = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }))
    return /** @type {string} */ (made.QueueUrl)
  }
  const send = (/** @type {string} */ url, /** @type {string} */ text, more = {}) =>
    client.send(new SendMessageCommand({ QueueUrl: url, MessageBody: text, ...more }))
  const left = (/** @type {string} */ url) => leftIn(client, url)
  /** @type {(t: any, options: object, handle?: (message: any) => any) => ReturnType<typeof sqsConsumer>} */
  const makeConsumer = (t, options, handle) => sqsConsumer(t, server, options, handle)
  const texts = (/** @type {any} */ rig) => rig.messages.map((/** @type {any} */ { payload }) => payload)

  await t.test('a queue that is not there refuses the start', async t => {
    const rig = makeConsumer(t, { queues: [`${server.endpoint}/123456789012/none`] })
    await t.rejects(rig.consumer.start(), /^queue .*none/)
  })

  await t.test('attributes are headers; one that fails is tried in place, then comes again', async t => {
    const url = await queue('plain')
    await send(url, 'one', {
      MessageAttributes: { 'centrifugo-method': { DataType: 'String', StringValue: 'publish' } },
    })
    await send(url, 'two')
    let tries = 0
    const rig = makeConsumer(t, { queues: [url] }, ({ payload }) =>
      payload === 'one' && ++tries <= 5 ? 'retry' : 'done',
    )
    await rig.consumer.start()
    await rig.until(() => rig.messages.filter(({ outcome }) => outcome === 'done').length === 2)
    t.equal(tries, 6)
    const one = rig.messages.find(({ payload }) => payload === 'one')
    t.equal(one.method, 'publish')
    t.ok(Math.abs(Date.now() - one.since) < 60_000)
    await rig.consumer.stop()
    t.equal(await left(url), 0)
  })

  await t.test('a group keeps its order over a failure that passes', async t => {
    const url = await queue('line.fifo', { FifoQueue: 'true', ContentBasedDeduplication: 'true' })
    for (const text of ['a1', 'b1', 'a2', 'b2', 'a3']) await send(url, text, { MessageGroupId: text[0] })
    let tries = 0
    const rig = makeConsumer(t, { queues: [url], max_concurrency: 4 }, ({ payload }) =>
      payload === 'a1' && ++tries <= 3 ? 'retry' : 'done',
    )
    await rig.consumer.start()
    await rig.until(() => rig.messages.filter(({ outcome }) => outcome === 'done').length === 5)
    const done = rig.messages.filter(({ outcome }) => outcome === 'done').map(({ payload }) => payload)
    for (const group of ['a', 'b'])
      t.same(
        done.filter(text => text[0] === group),
        ['a1', 'a2', 'a3', 'b1', 'b2'].filter(text => text[0] === group),
      )
    await rig.consumer.stop()
    t.equal(await left(url), 0)
  })

  await t.test('what SNS has wrapped is unwrapped; what is not wrapped has no payload', async t => {
    const url = await queue('sns')
    await send(
      url,
      JSON.stringify({ Message: '{"a":1}', MessageAttributes: { x: { Type: 'String', Value: 'y' } } }),
    )
    await send(url, 'bare')
    const rig = makeConsumer(t, { queues: [url], sns_envelope: true })
    await rig.consumer.start()
    await rig.until(() => rig.messages.length === 2)
    t.same(texts(rig), ['{"a":1}', null])
    t.equal(rig.messages[0].headers.x, 'y')
    await rig.consumer.stop()
  })

  await t.test('a service that is away is tried again', async t => {
    const url = await queue('away')
    const rig = makeConsumer(t, { queues: [url] })
    await rig.consumer.start()
    await server.restart()
    await rig.until(() => rig.failures.length > 0)
    await queue('away')
    await send(url, 'late')
    await rig.until(() => rig.messages.length === 1)
    await rig.consumer.stop()
    t.same(texts(rig), ['late'])
  })
})
