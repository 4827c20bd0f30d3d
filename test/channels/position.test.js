// Position checks (client protocol): a stream with a new epoch ends the subscriptions with an old position.

import { once } from 'node:events'
import { Centrifuge } from 'centrifuge'
import t from 'tap'
import WebSocket from 'ws'
import { makeToken } from '../clients/auth/jwt.js'
import { startGateway } from '../kit/gateway.js'
import { RawClient } from '../kit/raw-client.js'

const SECRET = 'secret'
const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
/** Long enough for the steps that need one epoch, even on a busy machine. */
const kept = { history_size: 10, history_ttl: '5s', history_meta_ttl: '5s' }

/** Longer than the lifetime of an unused stream. */
const LIFE = 5200

const config = {
  client: { allow_anonymous_connect_without_token: true, token: { hmac_secret_key: SECRET } },
  channel: {
    namespaces: [
      { name: 'rec', ...open, ...kept, force_recovery: true },
      { name: 'pos', ...open, ...kept, force_positioning: true },
      { name: 'loose', ...open, ...kept },
      { name: 'long', ...open, ...kept, history_ttl: '4s', history_meta_ttl: '4s', force_positioning: true },
    ],
  },
}

t.jobs = 3

const serverSide = (gateway, channel) =>
  RawClient.connected(gateway.ws, { token: makeToken({ sub: 'u', channels: [channel] }, SECRET) })

async function clientSide(gateway, channel) {
  const client = await RawClient.connected(gateway.ws)
  const { subscribe } = await client.subscribe(channel)
  return Object.assign(client, { epoch: subscribe.epoch })
}

t.test('a publication with a new epoch ends positioned subscriptions', async t => {
  const gateway = await startGateway(t, config)
  const publish = async channel => (await gateway.api('publish', { channel, data: 1 })).result

  const names = ['rec:a', 'pos:a', 'loose:a']
  const clients = await Promise.all(names.map(name => clientSide(gateway, name)))
  const servers = await Promise.all(names.map(name => serverSide(gateway, name)))
  const sdk = new Centrifuge(gateway.ws, { websocket: WebSocket })
  const subscription = sdk.newSubscription('rec:a', { minResubscribeDelay: 1, maxResubscribeDelay: 5 })
  t.teardown(() => sdk.disconnect())
  const began = once(/** @type {any} */ (subscription), 'subscribed')
  subscription.subscribe()
  sdk.connect()
  await began

  const first = Object.fromEntries(await Promise.all(names.map(async name => [name, await publish(name)])))
  for (const client of [...clients, ...servers]) t.equal((await client.push('pub')).pub.offset, 1)
  await new Promise(resolve => setTimeout(resolve, LIFE))
  const resubscribed = once(/** @type {any} */ (subscription), 'subscribed')
  const second = Object.fromEntries(await Promise.all(names.map(async name => [name, await publish(name)])))
  for (const name of names) {
    t.equal(second[name].offset, 1, name)
    t.not(second[name].epoch, first[name].epoch)
  }

  for (const i of [0, 1]) {
    t.strictSame(
      await clients[i].push(),
      { channel: names[i], unsubscribe: { code: 2500, reason: 'insufficient state' } },
      `${names[i]} client-side`,
    )
    t.strictSame(
      await servers[i].closed,
      { code: 3010, reason: 'insufficient state' },
      `${names[i]} server-side`,
    )
    t.same(servers[i].messages, [], 'and nothing behind the gap')
  }
  for (const client of [clients[2], servers[2]])
    t.strictSame(await client.push(), {
      channel: 'loose:a',
      pub: { data: 1, offset: 1, epoch: second['loose:a'].epoch },
    })

  const again = await clients[0].subscribe('rec:a', { recover: true, offset: 1, epoch: first['rec:a'].epoch })
  t.strictSame(again.subscribe, {
    recoverable: true,
    positioned: true,
    epoch: second['rec:a'].epoch,
    offset: 1,
    was_recovering: true,
  })
  await publish('rec:a')
  t.equal((await clients[0].push('pub')).pub.offset, 2)

  const [context] = await resubscribed
  t.match(
    context,
    { wasRecovering: true, recovered: false, streamPosition: { epoch: second['rec:a'].epoch } },
    'SDK',
  )
  for (const client of [...clients, servers[2]]) client.close()
})

t.test('positions are checked even without publications', async t => {
  const gateway = await startGateway(t, {
    ...config,
    client: { ...config.client, channel_position_check_delay: '5500ms', presence_update_interval: '200ms' },
  })
  const client = await clientSide(gateway, 'rec:a')
  const server = await serverSide(gateway, 'pos:a')
  const plain = await clientSide(gateway, 'loose:a')
  // A stream without publications does not expire while it has subscribers.
  for (const channel of ['rec:a', 'pos:a']) await gateway.api('publish', { channel, data: 1 })
  await client.push('pub')
  t.strictSame(await client.push(), {
    channel: 'rec:a',
    unsubscribe: { code: 2500, reason: 'insufficient state' },
  })
  t.strictSame(await server.closed, { code: 3010, reason: 'insufficient state' })
  const { subscribe } = await client.subscribe('rec:a', { recover: true, epoch: client.epoch })
  t.not(subscribe.epoch, client.epoch)
  t.notOk(subscribe.recovered)
  await gateway.api('publish', { channel: 'loose:a', data: 1 })
  t.equal((await plain.push()).pub.offset, 1)
  client.close()
  plain.close()
})

t.test('position checks keep the stream alive', async t => {
  const gateway = await startGateway(t, {
    ...config,
    workers: 1,
    client: { ...config.client, channel_position_check_delay: '100ms', presence_update_interval: '100ms' },
  })
  const client = await clientSide(gateway, 'long:a')
  await gateway.api('publish', { channel: 'long:a', data: 1 })
  // Longer than the stream lives unused. Each check is use, too: it lives on for as long as somebody relies on it.
  await new Promise(resolve => setTimeout(resolve, 4400))
  const { result } = await gateway.api('publish', { channel: 'long:a', data: 2 })
  t.strictSame(result, { offset: 2, epoch: client.epoch })
  t.equal((await client.push()).pub.offset, 1)
  t.equal((await client.push()).pub.offset, 2)
  client.close()
})
