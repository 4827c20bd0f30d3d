// The lifecycle log of a gateway, to a file and to a webhook.

import { join } from 'node:path'
import t from 'tap'
import { testdir } from '../../kit/folders.js'
import { startGateway } from '../../kit/gateway.js'
import { RawClient } from '../../kit/raw-client.js'
import { pause, until } from '../../kit/wait.js'
import { pluck } from '../lists.js'
import { byClient, faultsOf, readLog } from './book.js'
import { Endpoint } from './endpoint.js'

const open = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }

t.test('every connect has a disconnect, even when a worker is killed', async t => {
  const path = join(testdir(t), 'clients.log')
  const endpoint = await Endpoint.start(t)
  const gateway = await startGateway(t, {
    lifecycle: { file: { path }, webhook: { url: endpoint.url, secret: 'hush' } },
    client: { allow_anonymous_connect_without_token: true },
    channel: { without_namespace: open },
    prometheus: { enabled: true },
  })

  const left = await RawClient.connected(gateway.ws)
  await left.subscribe('news')
  await left.call('unsubscribe', { channel: 'news' })
  await left.subscribe('rest')
  await left.close()

  // Until each worker has clients.
  const clients = []
  const ids = () => clients.map(({ connect }) => connect.client)
  const workers = () => {
    const connects = byClient(readLog(path), 'connected')
    return new Set(ids().map(id => connects.get(id)?.[0].worker))
  }
  do {
    const client = await RawClient.connected(gateway.ws)
    await client.subscribe('one')
    await client.subscribe('two')
    clients.push(client)
    await pause(20)
  } while (workers().size < 2 || workers().has(undefined))

  const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
  t.match(metrics, /^halley_lifecycle_journal_clients \d/m)
  const victim = byClient(readLog(path), 'connected').get(ids()[0])?.[0].worker
  const pid = gateway.lines.find(({ msg, worker }) => msg === 'worker is listening' && worker === victim).pid
  process.kill(pid, 'SIGKILL')
  await clients[0].closed
  await until(() => byClient(readLog(path), 'disconnected').has(ids()[0]))

  await gateway.stop()

  const records = readLog(path)
  const [start, ...rest] = records
  t.match(start, { type: 'started', node_name: String })
  t.match(rest.at(-1), { type: 'stopped', node: start.node })
  const all = [left.connect.client, ...ids()]
  t.same(faultsOf(records, all), [])

  const ofLeft = records.filter(({ client }) => client === left.connect.client)
  t.match(ofLeft, [
    { type: 'connected', node: start.node, user: '', transport: 'websocket' },
    { type: 'subscribed', channel: 'news' },
    { type: 'unsubscribed', channel: 'news', code: 0, reason: 'client unsubscribed' },
    { type: 'subscribed', channel: 'rest' },
    { type: 'disconnected', code: 3000, reason: 'connection closed', channels: ['rest'], duration: Number },
  ])
  t.ok(ofLeft[4].duration <= ofLeft[4].time - ofLeft[0].time)

  const ends = byClient(records, 'disconnected')
  const killed = byClient(records, 'connected')
  for (const id of ids()) {
    const [end] = /** @type {any[]} */ (ends.get(id))
    const died = killed.get(id)?.[0].worker === victim
    t.match(end, died ? { code: 0, reason: 'worker died' } : { code: 3001, reason: 'shutdown' })
    t.same(end.channels.sort(), ['one', 'two'])
  }

  const posted = endpoint.batches.flatMap(({ events }) => events)
  t.same(
    pluck(posted, 'id'),
    records.map(({ id }) => id),
    'the webhook receives the same events',
  )
})
