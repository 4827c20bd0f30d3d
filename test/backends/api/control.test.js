import t from 'tap'
import { roundTrip } from '../../clients/session/support.js'
import { publications, startApi } from './support.js'

const api = await startApi(t)

const error = code => ({ error: { code } })
const base64 = text => Buffer.from(text).toString('base64')
const pushOf = (channel, kind) => frame => frame.push?.channel === channel && frame.push[kind] !== undefined

/** All connections of a user, on any worker. */
const clientsOf = (user, count = 5) => Promise.all(Array.from({ length: count }, () => api.client(user)))

/** A client that was not affected: it still gets replies, and received nothing before. */
async function untouched(t, client, message) {
  await roundTrip(client)
  t.same(client.messages, [], message)
}

t.test('subscribe affects only the connections of the user', async t => {
  const clients = await clientsOf('anna')
  const other = await api.client('ben')
  t.equal(
    await api.text('subscribe', '{"user":"anna","channel":"given","data":{ "n":1.0 },"info":{"i":1}}'),
    '{"result":{}}',
  )
  for (const client of clients) {
    const { push } = await client.next(pushOf('given', 'subscribe'))
    t.same(push.subscribe.data, { n: 1 })
  }
  t.ok(
    clients[0].frames.some(text => text.includes('"data":{ "n":1.0 }')),
    'the payload as it was written',
  )
  await api.call('publish', { channel: 'given', data: 'x' })
  for (const client of clients) t.same(await publications(client, 'given', 1), [{ data: 'x' }])
  await untouched(t, other)
  const { presence } = (await api.call('presence', { channel: 'given' })).result
  t.same(Object.keys(presence).sort(), clients.map(({ connect }) => connect.client).sort())
  t.same(presence[clients[0].connect.client], {
    user: 'anna',
    client: clients[0].connect.client,
    chan_info: { i: 1 },
  })
})

t.test('subscribe accepts one client, base64 data and overrides', async t => {
  const [one, two] = await clientsOf('carl', 2)
  await api.call('subscribe', {
    user: 'carl',
    client: one.connect.client,
    channel: 'given',
    b64data: base64('[1]'),
    b64info: base64('no JSON'),
  })
  t.same((await one.next(pushOf('given', 'subscribe'))).push.subscribe.data, [1])
  t.same(
    (await api.call('presence', { channel: 'given' })).result.presence[one.connect.client].chan_info,
    'no JSON',
  )
  await api.call('subscribe', {
    user: 'carl',
    client: two.connect.client,
    channel: 'his:given',
    override: { presence: { value: false }, force_positioning: { value: true }, join_leave: null },
  })
  t.match((await two.next(pushOf('his:given', 'subscribe'))).push.subscribe, {
    positioned: true,
    epoch: String,
  })
  await api.call('subscribe', { user: 'dora', client: one.connect.client, channel: 'wrong user' })
  await untouched(t, one, 'the client id alone is not enough')
})

t.test('subscribe with an empty user selects anonymous connections', async t => {
  const nobody = await api.client('')
  const somebody = await api.client('emil')
  t.same(await api.call('subscribe', { channel: 'lobby' }), { result: {} })
  await nobody.next(pushOf('lobby', 'subscribe'))
  await untouched(t, somebody)
})

t.test('subscribe with recover_since delivers missed publications', async t => {
  const { epoch } = (await api.call('publish', { channel: 'his:rec', data: 1 })).result
  for (const data of [2, 3]) await api.call('publish', { channel: 'his:rec', data })
  const client = await api.client('fred')
  await api.call('subscribe', { user: 'fred', channel: 'his:rec', recover_since: { offset: 1, epoch } })
  await client.next(pushOf('his:rec', 'subscribe'))
  t.same(await publications(client, 'his:rec', 2), [
    { data: 2, offset: 2 },
    { data: 3, offset: 3 },
  ])
})

t.test('subscribe refuses invalid requests', async t => {
  t.match(await api.call('subscribe', { user: 'anna' }), error(107))
  t.match(await api.call('subscribe', { user: 'anna', channel: 'nowhere:a' }), error(102))
  t.match(await api.call('subscribe', { user: 'anna', channel: 'a', b64data: '!' }), error(107))
  t.match(await api.call('subscribe', { user: 'anna', channel: 'a', b64info: 'a' }), error(107))
  t.same(await api.call('subscribe', { user: 'no such user', channel: 'a' }), { result: {} })
})

t.test('unsubscribe ends client-side and server-side subscriptions', async t => {
  const clients = await clientsOf('gina', 4)
  for (const client of clients) await client.subscribe('leave')
  await api.call('subscribe', { user: 'gina', channel: 'leave too' })
  for (const client of clients) await client.next(pushOf('leave too', 'subscribe'))
  const other = await api.subscriber('leave', 'hugo')

  for (const channel of ['leave', 'leave too']) {
    t.equal(await api.text('unsubscribe', { user: 'gina', channel }), '{"result":{}}')
    for (const client of clients) {
      const { push } = await client.next(pushOf(channel, 'unsubscribe'))
      t.same(push.unsubscribe, { code: 2000, reason: 'server unsubscribe' })
    }
  }
  t.same((await api.call('presence_stats', { channel: 'leave' })).result, {
    num_clients: 1,
    num_users: 1,
  })
  await untouched(t, other)

  t.same(await api.call('unsubscribe', { user: 'no such user', channel: 'leave' }), { result: {} })
  t.match(await api.call('unsubscribe', { user: 'gina', channel: 'nowhere:a' }), error(102))
  t.match(await api.call('unsubscribe', { user: 'gina' }), error(107))
  await untouched(t, clients[0], 'an empty channel affects no client')
})

t.test('disconnect reaches all workers, with a custom code and a whitelist', async t => {
  const clients = await clientsOf('ida')
  const other = await api.client('jan')
  const [kept, ...gone] = clients
  t.equal(
    await api.text('disconnect', {
      user: 'ida',
      whitelist: [kept.connect.client],
      disconnect: { code: 4100, reason: 'no more' },
    }),
    '{"result":{}}',
  )
  for (const client of gone) t.same(await client.closed, { code: 4100, reason: 'no more' })
  await untouched(t, kept)
  await untouched(t, other)
  t.same(await api.call('disconnect', { user: 'ida' }), { result: {} })
  t.same(await kept.closed, { code: 3503, reason: 'force disconnect' })
})

t.test('disconnect accepts one client, and a code without a reason', async t => {
  const [one, two] = await clientsOf('karl', 2)
  await api.call('disconnect', { user: 'karl', client: one.connect.client, disconnect: { code: 4500 } })
  const { code, reason } = await one.closed
  t.equal(code, 4500)
  t.not(reason, '', 'SDKs need one')
  await api.call('disconnect', { user: 'karl', client: 'no such client' })
  await untouched(t, two)
  await api.call('disconnect', { user: 'karl', disconnect: {} })
  t.equal((await two.closed).code, 3503)
})

t.test('disconnect refuses codes and reasons that do not fit in a close frame', async t => {
  for (const disconnect of [
    { code: 5 },
    { code: 1000, reason: 'x' },
    { code: 5000 },
    { code: 4000, reason: 'x'.repeat(124) },
  ]) {
    t.match(await api.call('disconnect', { user: 'karl', disconnect }), error(107))
  }
})

t.test('refresh changes, ends or removes the expiry of a connection', async t => {
  const exp = Math.floor(Date.now() / 1000) + 1000
  const clients = await Promise.all([1, 2, 3, 4].map(() => api.client('lena', { exp })))
  t.equal(await api.text('refresh', { user: 'lena', expire_at: exp + 1000, info: { n: 1 } }), '{"result":{}}')
  for (const client of clients) {
    const { push } = await client.next(frame => frame.push?.refresh)
    t.equal(push.refresh.expires, true)
    t.ok(push.refresh.ttl > 1000 && push.refresh.ttl <= 2000)
  }
  await clients[0].subscribe('refreshed')
  t.same(
    (await api.call('presence', { channel: 'refreshed' })).result.presence[clients[0].connect.client]
      .conn_info,
    { n: 1 },
  )

  await api.call('refresh', { user: 'lena', client: clients[1].connect.client })
  await clients[1].next(frame => frame.push?.refresh && frame.push.refresh.expires === undefined)

  await api.call('refresh', { user: 'lena', client: clients[2].connect.client, expired: true })
  t.equal((await clients[2].closed).code, 3005)
  await untouched(t, clients[3])
})

t.test('the gateway logged no errors', async t => t.same(api.failures(), []))
