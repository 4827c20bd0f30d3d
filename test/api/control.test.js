import t from 'tap'
import { startGateway } from './gateway.js'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const error = code => ({ error: { code } })
const base64 = text => Buffer.from(text).toString('base64')
const pushOf = (channel, kind) => frame => frame.push?.channel === channel && frame.push[kind] !== undefined

/** Every connection of a user, on whatever worker it is. */
const clientsOf = (user, count = 5) => Promise.all(Array.from({ length: count }, () => gateway.client(user)))

/** What was done to others has not been done to this one: it still answers, and nothing came before that. */
async function untouched(t, client, message) {
  const seen = client.frames.length
  const answer = await client.send({ presence_stats: { channel: 'nowhere:a' } })
  t.equal(answer.error.code, 102, message)
  t.equal(client.frames.length, seen + 1, message)
}

t.test('subscribe: all connections of the user, and nobody else', async t => {
  const clients = await clientsOf('anna')
  const other = await gateway.client('ben')
  t.equal(
    await gateway.text('subscribe', '{"user":"anna","channel":"given","data":{ "n":1.0 },"info":{"i":1}}'),
    '{"result":{}}',
  )
  for (const client of clients) {
    const { push } = await client.find(pushOf('given', 'subscribe'))
    t.same(push.subscribe.data, { n: 1 })
  }
  t.ok(
    clients[0].texts.some(text => text.includes('"data":{ "n":1.0 }')),
    'the payload as it was written',
  )
  await gateway.call('publish', { channel: 'given', data: 'x' })
  for (const client of clients) t.same(await client.publications('given', 1), [{ data: 'x' }])
  await untouched(t, other)
  const { presence } = (await gateway.call('presence', { channel: 'given' })).result
  t.same(Object.keys(presence).sort(), clients.map(({ id }) => id).sort())
  t.same(presence[clients[0].id], { user: 'anna', client: clients[0].id, chan_info: { i: 1 } })
})

t.test('subscribe: one connection, base64, an override', async t => {
  const [one, two] = await clientsOf('carl', 2)
  await gateway.call('subscribe', {
    user: 'carl',
    client: one.id,
    channel: 'given',
    b64data: base64('[1]'),
    b64info: base64('"b"'),
  })
  t.same((await one.find(pushOf('given', 'subscribe'))).push.subscribe.data, [1])
  t.same((await gateway.call('presence', { channel: 'given' })).result.presence[one.id].chan_info, 'b')
  await gateway.call('subscribe', {
    user: 'carl',
    client: two.id,
    channel: 'his:given',
    override: { presence: { value: false }, force_positioning: { value: true }, join_leave: null },
  })
  t.match((await two.find(pushOf('his:given', 'subscribe'))).push.subscribe, {
    positioned: true,
    epoch: String,
  })
  await gateway.call('subscribe', { user: 'dora', client: one.id, channel: 'wrong user' })
  await untouched(t, one, 'the client id alone is not enough')
})

t.test('subscribe: an empty user is the anonymous ones', async t => {
  const nobody = await gateway.client('')
  const somebody = await gateway.client('emil')
  t.same(await gateway.call('subscribe', { channel: 'lobby' }), { result: {} })
  await nobody.find(pushOf('lobby', 'subscribe'))
  await untouched(t, somebody)
})

t.test('subscribe: recovery delivers what was missed', async t => {
  const { epoch } = (await gateway.call('publish', { channel: 'his:rec', data: 1 })).result
  for (const data of [2, 3]) await gateway.call('publish', { channel: 'his:rec', data })
  const client = await gateway.client('fred')
  await gateway.call('subscribe', { user: 'fred', channel: 'his:rec', recover_since: { offset: 1, epoch } })
  await client.find(pushOf('his:rec', 'subscribe'))
  t.same(await client.publications('his:rec', 2), [
    { data: 2, offset: 2 },
    { data: 3, offset: 3 },
  ])
})

t.test('subscribe: what is refused', async t => {
  t.match(await gateway.call('subscribe', { user: 'anna' }), error(107))
  t.match(await gateway.call('subscribe', { user: 'anna', channel: 'nowhere:a' }), error(102))
  t.match(await gateway.call('subscribe', { user: 'anna', channel: 'a', b64data: '!' }), error(107))
  t.match(await gateway.call('subscribe', { user: 'anna', channel: 'a', b64info: base64('{') }), error(107))
  t.same(await gateway.call('subscribe', { user: 'no such user', channel: 'a' }), { result: {} })
})

t.test('unsubscribe: client-side and server-side subscriptions', async t => {
  const clients = await clientsOf('gina', 4)
  for (const client of clients) await client.send({ subscribe: { channel: 'leave' } })
  await gateway.call('subscribe', { user: 'gina', channel: 'leave too' })
  for (const client of clients) await client.find(pushOf('leave too', 'subscribe'))
  const other = await gateway.subscriber('leave', 'hugo')

  for (const channel of ['leave', 'leave too']) {
    t.equal(await gateway.text('unsubscribe', { user: 'gina', channel }), '{"result":{}}')
    for (const client of clients) {
      const { push } = await client.find(pushOf(channel, 'unsubscribe'))
      t.same(push.unsubscribe, { code: 2000, reason: 'server unsubscribe' })
    }
  }
  t.same((await gateway.call('presence_stats', { channel: 'leave' })).result, {
    num_clients: 1,
    num_users: 1,
  })
  await untouched(t, other)

  t.same(await gateway.call('unsubscribe', { user: 'no such user', channel: 'leave' }), { result: {} })
  t.match(await gateway.call('unsubscribe', { user: 'gina', channel: 'nowhere:a' }), error(102))
  t.match(await gateway.call('unsubscribe', { user: 'gina' }), error(107))
  await untouched(t, clients[0], 'an empty channel sends nobody anything')
})

t.test('disconnect: everywhere, with a code of its own, but for a whitelist', async t => {
  const clients = await clientsOf('ida')
  const other = await gateway.client('jan')
  const [kept, ...gone] = clients
  t.equal(
    await gateway.text('disconnect', {
      user: 'ida',
      whitelist: [kept.id],
      disconnect: { code: 4100, reason: 'no more' },
    }),
    '{"result":{}}',
  )
  for (const client of gone) t.same(await client.closing, { code: 4100, reason: 'no more' })
  await untouched(t, kept)
  await untouched(t, other)
  t.same(await gateway.call('disconnect', { user: 'ida' }), { result: {} })
  t.same(await kept.closing, { code: 3503, reason: 'force disconnect' })
})

t.test('disconnect: one client; a code without a reason', async t => {
  const [one, two] = await clientsOf('karl', 2)
  await gateway.call('disconnect', { user: 'karl', client: one.id, disconnect: { code: 4500 } })
  const { code, reason } = await one.closing
  t.equal(code, 4500)
  t.not(reason, '', 'SDKs need one')
  await gateway.call('disconnect', { user: 'karl', client: 'no such client' })
  await untouched(t, two)
  await gateway.call('disconnect', { user: 'karl', disconnect: {} })
  t.equal((await two.closing).code, 3503)
})

t.test('disconnect: codes that no close frame can carry', async t => {
  for (const disconnect of [
    { code: 5 },
    { code: 1000, reason: 'x' },
    { code: 5000 },
    { code: 4000, reason: 'x'.repeat(124) },
  ]) {
    t.match(await gateway.call('disconnect', { user: 'karl', disconnect }), error(107))
  }
})

t.test('refresh: moves, ends or lifts the expiry of a connection', async t => {
  const exp = Math.floor(Date.now() / 1000) + 1000
  const clients = await Promise.all([1, 2, 3, 4].map(() => gateway.client('lena', { exp })))
  t.equal(
    await gateway.text('refresh', { user: 'lena', expire_at: exp + 1000, info: { n: 1 } }),
    '{"result":{}}',
  )
  for (const client of clients) {
    const { push } = await client.find(frame => frame.push?.refresh)
    t.equal(push.refresh.expires, true)
    t.ok(push.refresh.ttl > 1000 && push.refresh.ttl <= 2000)
  }
  await clients[0].send({ subscribe: { channel: 'refreshed' } })
  t.same(
    (await gateway.call('presence', { channel: 'refreshed' })).result.presence[clients[0].id].conn_info,
    { n: 1 },
  )

  await gateway.call('refresh', { user: 'lena', client: clients[1].id })
  await clients[1].find(frame => frame.push?.refresh && frame.push.refresh.expires === undefined)

  await gateway.call('refresh', { user: 'lena', client: clients[2].id, expired: true })
  t.equal((await clients[2].closing).code, 3005)
  await untouched(t, clients[3])
})

t.test('nothing of this was an error of the gateway', async t => t.equal(gateway.output(), ''))
