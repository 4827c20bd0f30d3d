// Clients of a gateway at the old master move to one at the new master, which lacks some of their publications.

import t from 'tap'
import { transports } from '../../../guarantees/receivers.js'
import { RawClient } from '../../../kit/raw-client.js'
import { needsRedis } from '../../../kit/servers/redis.js'
import { StreamClient } from '../../../kit/stream-client.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { poll } from '../../../kit/uni-poll-client.js'
import { until } from '../../../kit/wait.js'
import { open, startNode } from './nodes.js'
import { Pair } from './pair.js'

needsRedis(t)

const kept = { ...open, history_size: 100, history_ttl: '60s', force_recovery: true }
const config = {
  ...transports,
  client: { token: { hmac_secret_key: 'secret' } },
  channel: {
    namespaces: [
      { name: 'kept', ...kept, allowed_delta_types: ['fossil'] },
      { name: 'value', ...kept, force_recovery_mode: 'cache' },
      { name: 'batched', ...kept, batch_max_delay: '20ms' },
    ],
  },
}
const options = { workers: 1, config }
const NAMES = ['kept:a', 'value:a', 'batched:a']

/** @typedef {import('../../../kit/gateway.js').TestGateway} TestGateway */

/** @param {TestGateway} gateway @param {unknown} data @param {string[]} [names] @returns {Promise<any[]>} results */
const publish = (gateway, data, names = NAMES) =>
  Promise.all(
    names.map(async channel => (await gateway.api('publish', { channel, data: { text: data } })).result),
  )

/** @param {any} t @param {TestGateway} gateway @param {Record<string, string>} [headers] */
async function openSse(t, gateway, headers) {
  const subs = encodeURIComponent(JSON.stringify({ subs: { 'kept:a': {}, 'batched:a': {} } }))
  const client = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${subs}`, { headers })
  t.teardown(() => client.request.destroy())
  const { connect } = await client.next()
  return { client, subs: connect.subs }
}

const textsOf = publications => publications?.map((/** @type {any} */ { data }) => data.text)

const pair = await Pair.start(t)
const proxy = await TcpProxy.start(t, pair.master.port)
const [old, moving] = await Promise.all([
  startNode(t, pair.master.address, options),
  startNode(t, `redis://127.0.0.1:${proxy.port}`, options),
])

// Subscribers of a gateway that will switch masters, including a channel without losses.
const names = [...NAMES.map(name => name.replace(':a', ':same')), 'kept:lost']
const live = await RawClient.connected(moving.ws)
for (const channel of names) await live.subscribe(channel, { recoverable: true })
const delta = await RawClient.connected(moving.ws)
await delta.subscribe('kept:same', { recoverable: true, delta: 'fossil' })

const sse = await openSse(t, old)
await publish(old, 'one')
const [{ epoch }] = await publish(old, 'two')
await publish(old, 'two', names)
const sseId = async (/** @type {string} */ text) => {
  for (const seen = new Set(); seen.size < 2; )
    await sse.client.next(({ pub, channel }) => pub?.data.text === text && Boolean(seen.add(channel)))
  return sse.client.ids.at(-1) ?? ''
}
const idBefore = await sseId('two')
const cursorBefore = (await poll(old, { channel: 'kept:a', since: 'earliest', timeout: '0' })).cursor
await pair.split()
await publish(old, 'lost')
await publish(old, 'lost', ['kept:lost'])
await live.next(({ push }) => push?.channel === 'kept:lost' && push.pub?.data.text === 'lost')
const idLost = await sseId('lost')
const cursorLost = (await poll(old, { channel: 'kept:a', cursor: cursorBefore, timeout: '0' })).cursor
const fresh = await startNode(t, pair.replica.address, options)
const [top, value] = await publish(fresh, 'new')
const position = (await fresh.api('history', { channel: 'value:a', limit: 0 })).result

t.test('only clients without lost publications are recovered', async t => {
  const client = await RawClient.connected(fresh.ws)
  const recover = async (/** @type {string} */ channel, /** @type {object} */ since) => {
    const { subscribe } = await client.call('subscribe', {
      channel,
      recoverable: true,
      recover: true,
      ...since,
    })
    await client.call('unsubscribe', { channel })
    return { ...subscribe, texts: textsOf(subscribe.publications) }
  }
  const lost = await recover('kept:a', { epoch, offset: 3 })
  t.match(lost, { was_recovering: true, epoch, offset: top.offset })
  t.notOk(lost.recovered)
  t.match(await recover('kept:a', { epoch, offset: 2 }), { recovered: true, epoch, texts: ['new'] })
  t.match(await recover('kept:a', { epoch, offset: 1 }), { recovered: true, texts: ['two', 'new'] })

  t.match(await recover('value:a', { epoch: position.epoch, offset: 3 }), { recovered: true, texts: ['new'] })
  const current = await recover('value:a', { epoch: position.epoch, offset: value.offset })
  t.match(current, { recovered: true, texts: undefined }, 'the client has the newest value')

  const withDelta = await client.call('subscribe', {
    ...{ channel: 'kept:a', recoverable: true, recover: true, epoch, offset: 1, delta: 'fossil' },
  })
  const [, second] = withDelta.subscribe.publications
  t.notOk(second.delta)
  t.match(JSON.parse(second.data), { text: 'new' })
  const history = (/** @type {object} */ since) =>
    fresh.api('history', { channel: 'kept:a', limit: 10, since })
  t.match(await history({ epoch, offset: 3 }), { error: { code: 112 } })
  t.match(await history({ epoch, offset: 2 }), {
    result: { publications: [{ data: { text: 'new' }, offset: top.offset }] },
  })
  client.close()
})

t.test('uni_sse: the last event id recovers only clients without lost publications', async t => {
  for (const [id, texts] of /** @type {[string, string[] | undefined][]} */ ([
    [idBefore, ['new']],
    [idLost, undefined],
  ])) {
    const { subs } = await openSse(t, fresh, { 'Last-Event-ID': id })
    for (const channel of ['kept:a', 'batched:a']) {
      t.equal(Boolean(subs[channel].recovered), texts !== undefined)
      t.same(textsOf(subs[channel].publications), texts)
    }
  }
})

t.test('uni_poll: a cursor recovers only clients without lost publications', async t => {
  const next = (/** @type {string} */ cursor) => poll(fresh, { channel: 'kept:a', cursor, timeout: '0' })
  for (let round = 0; round < 2; round++) {
    const recovered = await next(cursorBefore)
    t.same(recovered.data, [{ text: 'new' }])
    t.notOk(recovered.body.lost)
    const lost = await next(cursorLost)
    t.same(lost.body.lost, ['kept:a'])
    t.same(lost.data, [{ text: 'one' }, { text: 'two' }, { text: 'new' }])
    const after = await next(lost.cursor)
    t.same([after.data, after.body.lost], [[], undefined])
  }
})

t.test('a gateway keeps its clients and notifies them of lost publications', async t => {
  const closed = { live: false }
  live.socket.once('close', () => {
    closed.live = true
  })
  proxy.targets = [pair.replica.port]
  proxy.cut()
  const unsubscribed = await live.push('unsubscribe')
  t.match(unsubscribed, { channel: 'kept:lost', unsubscribe: { code: 2500 } })
  await until(async () => (await moving.api('publish', { channel: 'kept:ready', data: 1 })).result)
  await publish(fresh, 'three', names)
  const seen = new Set()
  while (seen.size < 3) {
    const { channel } = (await live.next(({ push }) => push?.pub?.data.text === 'three' || push?.unsubscribe))
      .push
    seen.add(channel)
  }
  t.same([...seen].sort(), ['batched:same', 'kept:same', 'value:same'])
  t.notOk(closed.live)
  for (const expected of ['two', 'three']) {
    const { pub } = await delta.push('pub')
    t.same([JSON.parse(pub.data).text, pub.delta], [expected, undefined])
  }
})
