// Values that the backend publishes between rounds, on several workers.

import t from 'tap'
import { defaultDriver } from '../../kit/drivers.js'
import { RefreshBackend } from './refresh-backend.js'
import { namespace, newChannel, onBothWorkers, Poller, startPolls } from './rig.js'

const backend = await RefreshBackend.start(t)
const gateway = await startPolls(
  t,
  { endpoint: backend.url },
  [
    namespace('poll'),
    namespace('pollvl', { mode: 'versionless' }),
    namespace('push', { publish_enabled: true, refresh_interval: '1h' }),
    namespace('both', { publish_enabled: true }),
    { name: 'stream' },
    { name: 'map', subscription_type: 'map', map: { mode: 'persistent' } },
  ],
  { workers: defaultDriver === 'uws' ? 2 : 1, http_server: { driver: defaultDriver } },
)

/** @param {string} channel @param {string} key @param {number} version @param {any} data @param {object} [more] */
const publish = (channel, key, version, data, more) =>
  gateway.api('shared_poll_publish', { channel, key, data, version, ...more })

/** @param {any} t @param {string} channel */
const open = (t, channel) => Poller.open(t, gateway, channel)

t.test('errors', async t => {
  const code = async (channel, key, version, data, more) =>
    (await publish(channel, key, version, data, more)).error?.code
  t.equal(await code('push:e', 'a', 0, 1), 107, 'version 0')
  t.equal(await code('push:e', '', 1, 1), 107)
  t.equal(await code('', 'a', 1, 1), 107)
  t.equal(await code('none:e', 'a', 1, 1), 102)
  t.equal(await code('stream:e', 'a', 1, 1), 107)
  t.equal(await code('map:e', 'a', 1, 1), 107)
  t.equal(await code('poll:e', 'a', 1, 1), 108, 'publish_enabled is off')
  t.equal(await code('pollvl:e', 'a', 1, 1), 108)
  t.strictSame(await publish('push:e', 'a', 1, 1), { result: {} }, 'nobody tracks it')
  for (const method of ['publish', 'map_publish'])
    t.equal((await gateway.api(method, { channel: 'push:e', key: 'a', data: 1 })).error.code, 107)
})

t.test('a publication reaches those who track the key, on all workers', async t => {
  const channel = newChannel('push')
  const all =
    defaultDriver === 'uws'
      ? await onBothWorkers(t, gateway, channel)
      : [await open(t, channel), await open(t, channel)]
  const other = await open(t, channel)
  await Promise.all([...all.map(poller => poller.track({ a: 0 })), other.track({ b: 0 })])
  for (let version = 1; version <= 5; version++)
    t.strictSame(await publish(channel, 'a', version, { text: 'ü🎈', version }), { result: {} })
  for (const poller of all)
    for (let version = 1; version <= 5; version++)
      t.strictSame(await poller.next(), { key: 'a', data: { text: 'ü🎈', version }, version })
  await publish(channel, 'b', 1, 'end')
  t.match(await other.next(), { key: 'b' })
})

t.test('a publication may be bytes', async t => {
  const poller = await open(t, newChannel('push'))
  await poller.track({ a: 0 })
  const b64data = Buffer.from('{"of":"bytes"}').toString('base64')
  await publish(poller.channel, 'a', 1, undefined, { b64data })
  t.match(await poller.next(), { key: 'a', data: { of: 'bytes' }, version: 1 })
})

t.test('older versions are dropped', async t => {
  const poller = await open(t, newChannel('push'))
  const { channel } = poller
  await poller.track({ a: 5, end: 0 })
  for (const version of [4, 5, 7, 6, 7, 9]) await publish(channel, 'a', version, version)
  await publish(channel, 'end', 1, 'end')
  t.same(
    (await poller.until('end')).map(({ version }) => version),
    [7, 9, 1],
  )
})

t.test('rounds and publications do not overtake each other', async t => {
  const poller = await open(t, newChannel('both'))
  const { channel } = poller
  backend.put(channel, { a: { data: 'round', version: 1 } })
  await poller.track({ a: 0 })
  t.match(await poller.next(), { data: 'round' })
  await publish(channel, 'a', 3, 'published')
  t.match(await poller.next(), { data: 'published', version: 3 })
  backend.put(channel, { a: { data: 'behind', version: 2 } })
  await backend.next(channel, 3)
  t.match(backend.of(channel).at(-1)?.items, [{ key: 'a', version: 3 }])
  backend.put(channel, { a: { data: 'ahead', version: 4 } })
  t.match(await poller.next(), { data: 'ahead', version: 4 })
})

t.test('a publication of another epoch ends the subscriptions', async t => {
  const channel = newChannel('push')
  const all = [await open(t, channel), await open(t, channel)]
  backend.epochs.set(channel, 'one')
  for (const poller of all) await poller.track({ a: 0 })
  await publish(channel, 'a', 9, 1, { epoch: 'one' })
  for (const poller of all) {
    await poller.client.next(message => message.push)
    await poller.client.call('unsubscribe', { channel })
    await poller.subscribe()
    await poller.track({ a: 9 })
  }
  backend.epochs.set(channel, 'two')
  await publish(channel, 'a', 1, 2, { epoch: 'two' })
  for (const poller of all) {
    t.match((await poller.client.push('unsubscribe')).unsubscribe, { code: 2500 })
    await poller.subscribe()
    t.equal(poller.result.epoch, 'two')
    await poller.track({ a: 0 })
  }
  await publish(channel, 'a', 2, 3, { epoch: 'two' })
  for (const poller of all) t.match((await poller.until('a', 2)).at(-1), { data: 3 })
})

t.test('publications of keys that nobody tracks leave nothing', async t => {
  const channel = newChannel('push')
  await publish(channel, 'a', 5, 'lost')
  const poller = await open(t, channel)
  await poller.track({ a: 0, end: 0 })
  await publish(channel, 'end', 1, 1)
  t.same(
    (await poller.until('end')).map(({ key }) => key),
    ['end'],
  )
  await poller.untrack(['a'])
  await publish(channel, 'a', 6, 'untracked')
  await publish(channel, 'end', 2, 2)
  t.match(await poller.next(), { key: 'end', version: 2 })
})
