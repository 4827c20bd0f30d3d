// The servers that the tests of consumers stand on.

import { CreateQueueCommand, ListQueuesCommand } from '@aws-sdk/client-sqs'
import t from 'tap'
import { startKafka, withoutKafka } from './kafka.js'
import { startNats, withoutNats } from './nats.js'
import { startPostgres, withoutPostgres } from './postgres.js'
import { startRabbit, withoutRabbit } from './rabbitmq.js'
import { startSqs } from './sqs.js'

/** @param {Promise<any>} answer */
const within50ms = answer =>
  Promise.race([answer, new Promise(resolve => setTimeout(resolve, 50, 'nothing'))])

t.test(
  'PostgreSQL keeps its rows when it is killed, and goes on where it stood still',
  {
    skip: withoutPostgres(),
  },
  async t => {
    const server = await startPostgres(t)
    const { port, pid } = server
    await server.query('CREATE TABLE a (n int)')
    await server.query('INSERT INTO a VALUES (1)')
    await server.kill()
    t.equal(server.pid, 0)
    await t.rejects(server.query('SELECT 1'))
    await server.restart()
    t.equal(server.port, port)
    t.not(server.pid, pid)
    t.same(await server.query('SELECT n FROM a'), [{ n: 1 }])
    server.pause()
    const answer = server.query('SELECT 2 AS n')
    t.equal(await within50ms(answer), 'nothing')
    server.resume()
    t.same(await answer, [{ n: 2 }])
  },
)

t.test(
  'NATS keeps its streams when it is killed, and goes on where it stood still',
  {
    skip: withoutNats(),
  },
  async t => {
    const server = await startNats(t)
    await server.with(({ manager }) => manager.streams.add({ name: 'S', subjects: ['s.>'] }))
    await server.with(({ js }) => js.publish('s.a', 'one'))
    await server.restart()
    const { state } = await server.with(({ manager }) => manager.streams.info('S'))
    t.equal(state.messages, 1)
    const connection = await server.connect()
    server.pause()
    const answer = connection.rtt()
    t.equal(await within50ms(answer), 'nothing')
    server.resume()
    t.type(await answer, 'number')
    await connection.close()
  },
)

t.test('SQS has queues', async t => {
  const server = await startSqs(t)
  const client = server.client()
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: 'orders' }))
  t.same((await client.send(new ListQueuesCommand({}))).QueueUrls, [QueueUrl])
  client.destroy()
})

t.test('RabbitMQ keeps persistent messages when it is killed', { skip: withoutRabbit() }, async t => {
  const server = await startRabbit(t)
  const { port, pid } = server
  await server.declare('orders')
  await server.send('orders', ['one', 'two'])
  await server.kill()
  t.equal(server.pid, 0)
  await t.rejects(server.ready('orders'))
  await server.restart()
  t.equal(server.port, port)
  t.not(server.pid, pid)
  t.equal(await server.ready('orders'), 2)
  server.pause()
  const answer = server.ready('orders')
  t.equal(await within50ms(answer), 'nothing')
  server.resume()
  t.equal(await answer, 2)
})

t.test('Kafka keeps what it acknowledged when it is killed', { skip: withoutKafka() }, async t => {
  const server = await startKafka(t)
  const { port, pid } = server
  await server.createTopic('orders', 2)
  await server.send('orders', [{ value: 'one' }, { value: null, partition: 1, headers: { a: 'b' } }])
  await server.kill()
  await server.restart()
  t.equal(server.port, port)
  t.not(server.pid, pid)
  t.same(await server.with(admin => admin.listTopics()), ['orders'])
  server.pause()
  const answer = server.with(admin => admin.listTopics())
  t.equal(await within50ms(answer), 'nothing')
  server.resume()
  t.same(await answer, ['orders'])
})
