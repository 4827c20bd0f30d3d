// Shared polls and the rest of the gateway: presence, the server API, one-way clients, reloads.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { StreamClient } from '../../kit/stream-client.js'
import { until } from '../../kit/wait.js'
import { RefreshBackend } from './refresh-backend.js'
import { namespace, newChannel, Poller, startPolls } from './rig.js'

const backend = await RefreshBackend.start(t)
const gateway = await startPolls(
  t,
  { endpoint: backend.url },
  [
    namespace('poll', {}, { presence: true, join_leave: true, force_push_join_leave: true }),
    namespace('slow', { refresh_interval: '1h' }),
    namespace('changing', { mode: 'versionless' }),
  ],
  { uni_sse: { enabled: true } },
)

/** @param {any} t @param {string} channel @param {object} [options] */
const open = (t, channel, options) => Poller.open(t, gateway, channel, options)

t.test('presence, joins and leaves', async t => {
  const channel = newChannel()
  const watcher = await open(t, channel, { user: 'ann' })
  t.match((await watcher.client.push('join')).join.info, { user: 'ann' })
  const other = await open(t, channel, { user: 'ben' })
  t.match((await watcher.client.push('join')).join.info, { user: 'ben' })
  const { result } = await gateway.api('presence_stats', { channel })
  t.same(result, { num_clients: 2, num_users: 2 })
  t.match((await gateway.api('channels', { pattern: channel })).result.channels, {
    [channel]: { num_clients: 2 },
  })
  other.client.close()
  t.match((await watcher.client.push('leave')).leave.info, { user: 'ben' })
})

t.test('the server API ends a subscription, and does not start one', async t => {
  const poller = await open(t, newChannel(), { user: 'cid' })
  const { channel } = poller
  await poller.track({ a: 0 })
  t.strictSame(await gateway.api('unsubscribe', { channel, user: 'cid' }), { result: {} })
  t.match((await poller.client.push('unsubscribe')).unsubscribe, { code: 2000 })
  t.equal((await poller.track({ a: 0 })).code, 103)
  t.equal((await gateway.api('subscribe', { channel, user: 'cid' })).error.code, 107)
  for (const method of ['history', 'history_remove'])
    t.ok((await gateway.api(method, { channel })).error?.code !== 100, method)
  const witness = await open(t, newChannel())
  await witness.track({ a: 0 })
  await until(async () => {
    const before = backend.of(channel).length
    await backend.next(witness.channel, 3)
    return backend.of(channel).length === before
  })
})

t.test('clients cannot publish', async t => {
  const poller = await open(t, newChannel())
  const { channel } = poller
  for (const type of [0, 1, 4]) {
    const { error } = await poller.client.call('publish', { channel, type, key: 'a', data: 1 })
    t.ok(error, `type ${type}`)
  }
})

t.test('one-way clients have no shared polls', async t => {
  const subs = { [newChannel()]: { type: 4 } }
  const query = encodeURIComponent(JSON.stringify({ subs }))
  const client = await StreamClient.open(gateway.url, `/connection/uni_sse?cf_connect=${query}`)
  t.teardown(() => client.close())
  const first = await client.next().catch(() => ({}))
  t.notOk(first.connect?.subs)
})

t.test('a reload changes the interval and the mode of open channels', async t => {
  const [slow, changing] = [await open(t, newChannel('slow')), await open(t, newChannel('changing'))]
  for (const poller of [slow, changing]) {
    backend.put(poller.channel, { a: { data: 1, version: 1 } })
    await poller.track({ a: 0 })
    await poller.next()
  }
  const file = join(gateway.folder, 'config.json')
  const config = JSON.parse(await readFile(file, 'utf8'))
  for (const { name, shared_poll } of config.channel.namespaces) {
    if (name === 'slow') shared_poll.refresh_interval = '50ms'
    if (name === 'changing') shared_poll.mode = 'versioned'
  }
  await writeFile(file, JSON.stringify(config))
  gateway.process.kill('SIGHUP')
  backend.put(slow.channel, { a: { data: 2, version: 2 } })
  t.match(await slow.next(), { data: 2, version: 2 })
  t.match((await changing.client.push('unsubscribe')).unsubscribe, { code: 2500 }, 'versions start again')
  await changing.subscribe()
  t.equal(changing.result.epoch, undefined)
  await changing.track({ a: 0 })
  t.match(await changing.next(), { data: 1, version: 1 })
})

t.test('a stop does not wait for the backend', async t => {
  const poller = await open(t, newChannel())
  backend.answers.set(poller.channel, () => null)
  await poller.track({ a: 0 })
  await until(() => backend.of(poller.channel).length > 0)
  const began = performance.now()
  t.match(await gateway.stop(), { code: 0 })
  t.ok(performance.now() - began < 10_000, 'the timeout of the call is 20 s')
})
