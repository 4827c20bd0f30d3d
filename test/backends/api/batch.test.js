import t from 'tap'
import { numbers } from '../lists.js'
import { publications, startApi } from './support.js'

const api = await startApi(t)

const publish = (channel, data) => ({ publish: { channel, data } })

t.test('replies are in the order of the commands, without an enclosing result', async t => {
  const answer = await api.text('batch', {
    commands: [
      publish('plain', 1),
      publish('nowhere:a', 1),
      { presence_stats: { channel: 'plain' } },
      {},
      { nothing: {} },
      null,
      { publish: null },
      { broadcast: { channels: ['a', 'nowhere:a'], data: {} } },
      { history: { channel: 'plain' } },
      { channels: {} },
    ],
  })
  t.same(JSON.parse(answer), {
    replies: [
      { publish: {} },
      { error: { code: 102, message: 'unknown channel' } },
      { presence_stats: { num_clients: 0, num_users: 0 } },
      { error: { code: 104, message: 'not found' } },
      { error: { code: 104, message: 'not found' } },
      { error: { code: 107, message: 'bad request' } },
      { error: { code: 104, message: 'not found' } },
      { broadcast: { responses: [{ result: {} }, { error: { code: 102, message: 'unknown channel' } }] } },
      { error: { code: 108, message: 'not available' } },
      { channels: { channels: {} } },
    ],
  })
})

t.test('an empty batch is allowed', async t => {
  t.equal(await api.text('batch', {}), '{}')
  t.equal(await api.text('batch', { commands: [], parallel: true }), '{}')
  t.equal(await api.text('batch', { commands: null }), '{}')
})

t.test('payloads are unchanged in a batch', async t => {
  const subscriber = await api.subscriber('raw')
  const body = `{"commands" : [ {"publish":{"data":{ "x": "}]{\\"", "y":1.0 },"channel":"raw"}} , null,
    {"broadcast":{"channels":["raw"],"data":12345678901234567890}}]}`
  t.match(JSON.parse(await api.text('batch', body)), {
    replies: [{ publish: {} }, { error: { code: 107 } }, {}],
  })
  await publications(subscriber, 'raw', 2)
  const text = subscriber.frames.join('\n')
  t.match(text, '"data":{ "x": "}]{\\"", "y":1.0 }')
  t.match(text, '"data":12345678901234567890')
})

t.test('commands run in sequence and see the effects of earlier ones', async t => {
  const commands = []
  for (let n = 1; n <= 30; n++)
    commands.push(publish('his:seq', n), { history: { channel: 'his:seq', limit: 0 } })
  const { replies } = await api.call('batch', { commands })
  for (let n = 1; n <= 30; n++) {
    t.equal(replies[2 * n - 2].publish.offset, n)
    t.equal(replies[2 * n - 1].history.offset, n)
  }
})

t.test('with parallel, the publications of a channel stay in order', async t => {
  const commands = Array.from({ length: 200 }, (_, n) => publish('his:par', n))
  const { replies } = await api.call('batch', { commands, parallel: true })
  t.same(
    replies.map(reply => reply.publish.offset),
    numbers(200, 1),
  )
})

t.test('an invalid batch has no effect', async t => {
  const body = JSON.stringify({ commands: [publish('his:none', 1), publish(1, 1)] })
  t.equal((await api.request('POST', '/api/batch', body)).status, 400)
  t.equal((await api.call('history', { channel: 'his:none' })).result.offset, 0)
})

t.test('a batch may include control commands', async t => {
  const client = await api.client('dora')
  const { replies } = await api.call('batch', {
    commands: [
      { subscribe: { user: 'dora', channel: 'pushed' } },
      publish('pushed', 'hi'),
      { disconnect: { user: 'dora' } },
    ],
  })
  t.same(replies, [{ subscribe: {} }, { publish: {} }, { disconnect: {} }])
  t.same(await publications(client, 'pushed', 1), [{ data: 'hi' }])
  t.equal((await client.closed).code, 3503)
})

t.test('the gateway logged no errors', async t => t.same(api.failures(), []))
