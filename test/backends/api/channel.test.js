import t from 'tap'
import { startApi } from './support.js'

const api = await startApi(t)

const error = code => ({ error: { code } })
/** Any worker may handle a call, so each call is repeated. */
const OFTEN = 6

t.test('presence and presence_stats return the clients of a channel', async t => {
  const clients = [
    await api.client('anna', { info: { name: 'Anna' } }),
    await api.client('anna'),
    await api.client('ben'),
  ]
  for (const client of clients) await client.subscribe('room')
  const [one, two, three] = clients.map(({ connect }) => connect.client)
  const expected = {
    [one]: { user: 'anna', client: one, conn_info: { name: 'Anna' } },
    [two]: { user: 'anna', client: two },
    [three]: { user: 'ben', client: three },
  }
  for (let n = 0; n < OFTEN; n++) {
    t.same(await api.call('presence', { channel: 'room' }), { result: { presence: expected } })
    t.same(await api.call('presence_stats', { channel: 'room' }), {
      result: { num_clients: 3, num_users: 2 },
    })
  }
  t.equal(await api.text('presence', { channel: 'empty' }), '{"result":{"presence":{}}}')
  t.equal(
    await api.text('presence_stats', { channel: 'empty' }),
    '{"result":{"num_clients":0,"num_users":0}}',
  )
  for (const name of ['presence', 'presence_stats']) {
    t.match(await api.call(name, {}), error(107))
    t.match(await api.call(name, { channel: 'nowhere:a' }), error(102))
    t.match(await api.call(name, { channel: 'off:a' }), error(108))
  }
})

t.test('history returns the requested range', async t => {
  let epoch
  for (let n = 1; n <= 7; n++)
    epoch = (await api.call('publish', { channel: 'his:h', data: { n } })).result.epoch
  const read = params => api.call('history', { channel: 'his:h', ...params })
  const kept = ns => ns.map(n => ({ data: { n }, offset: n }))
  const result = ns => ({ result: { publications: kept(ns), epoch, offset: 7 } })

  for (let n = 0; n < OFTEN; n++) t.same(await read({}), result([]), 'no limit: the position only')
  t.same(await read({ limit: 0 }), result([]))
  t.same(await read({ limit: -1 }), result([3, 4, 5, 6, 7]))
  t.same(await read({ limit: 2 }), result([3, 4]))
  t.same(await read({ limit: -1, since: { offset: 5, epoch } }), result([6, 7]))
  t.same(await read({ limit: 1, since: { offset: 5, epoch } }), result([6]))
  t.same(await read({ limit: -1, since: { offset: 5 } }), result([6, 7]), 'an empty epoch is not checked')
  t.same(await read({ limit: -1, since: { offset: 7, epoch } }), result([]))
  t.same(await read({ limit: 2, reverse: true }), result([7, 6]))
  t.same(await read({ limit: -1, reverse: true, since: { offset: 5, epoch } }), result([4, 3]))
  t.same(await read({ limit: -1, since: null }), result([3, 4, 5, 6, 7]))

  t.match(await read({ limit: 1, since: { offset: 5, epoch: 'other' } }), error(112))
  t.match(await read({ limit: 1, reverse: true, since: { offset: 0, epoch } }), error(107))
  t.match(await api.call('history', {}), error(107))
  t.match(await api.call('history', { channel: 'nowhere:a' }), error(102))
  t.match(await api.call('history', { channel: 'plain' }), error(108))

  const first = await api.call('history', { channel: 'his:new' })
  t.match(first, { result: { publications: [], epoch: /^\w+$/, offset: 0 } })
  t.equal((await api.call('publish', { channel: 'his:new', data: 1 })).result.epoch, first.result.epoch)
})

t.test('a history above 16 MB is read in parts', async t => {
  const data = 'x'.repeat(4_000_000)
  for (let n = 1; n <= 5; n++) await api.call('publish', { channel: 'his:large', data: `${n}${data}` })
  const read = params => api.call('history', { channel: 'his:large', ...params })
  t.match(await read({ limit: -1 }), error(106))
  t.match(await read({ limit: -1, reverse: true }), error(106))
  const offsets = async params => (await read(params)).result.publications.map(({ offset }) => offset)
  t.same(await offsets({ limit: 3 }), [1, 2, 3])
  t.same(await offsets({ limit: -1, since: { offset: 3 } }), [4, 5])
})

t.test('publications of clients are stored with their info', async t => {
  const client = await api.client('anna', { info: { a: 1.5 } })
  await client.subscribe('chat:a')
  t.same((await client.call('publish', { channel: 'chat:a', data: 'hello' })).publish, {})
  const { publications } = (await api.call('history', { channel: 'chat:a', limit: 1 })).result
  t.same(publications, [
    {
      data: 'hello',
      info: { user: 'anna', client: client.connect.client, conn_info: { a: 1.5 } },
      offset: 1,
    },
  ])
})

t.test('history_remove leaves offset and epoch', async t => {
  const { epoch } = (await api.call('publish', { channel: 'his:gone', data: 1 })).result
  t.equal(await api.text('history_remove', { channel: 'his:gone' }), '{"result":{}}')
  t.same(await api.call('history', { channel: 'his:gone', limit: -1 }), {
    result: { publications: [], epoch, offset: 1 },
  })
  t.same(await api.call('publish', { channel: 'his:gone', data: 2 }), { result: { offset: 2, epoch } })
  t.match(await api.call('history_remove', {}), error(107))
  t.match(await api.call('history_remove', { channel: 'nowhere:a' }), error(102))
  t.match(await api.call('history_remove', { channel: 'plain' }), error(108))
})

t.test('channels lists the channels of all workers', async t => {
  const channels = { 'off:x': 4, 'off:y': 1, off: 1 }
  for (const [channel, count] of Object.entries(channels)) {
    for (let n = 0; n < count; n++) await api.subscriber(channel)
  }
  await api.subscriber('__proto__', 'ben')
  const list = async pattern => JSON.parse(await api.text('channels', { pattern })).result.channels
  for (let n = 0; n < OFTEN; n++) {
    t.same(await list('off:*'), { 'off:x': { num_clients: 4 }, 'off:y': { num_clients: 1 } })
    t.same(await list('{off,off:x}'), { off: { num_clients: 1 }, 'off:x': { num_clients: 4 } })
  }
  t.same(await list('off:[!x]'), { 'off:y': { num_clients: 1 } })
  t.same(await list('nothing*'), {})
  const all = await api.text('channels', {})
  t.match(all, '"off:x":{"num_clients":4}')
  t.match(all, '"__proto__":{"num_clients":1}')
  t.equal((await api.text('channels', { pattern: '' })).length, all.length, 'the same in any order')
  for (const pattern of ['[', '{a', 'a\\'])
    t.match(await api.call('channels', { pattern }), error(100), pattern)
})

t.test('the gateway logged no errors', async t => t.same(api.failures(), []))
