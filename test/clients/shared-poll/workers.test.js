// The workers of a node share the poll of a channel.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { skipFile } from '../../kit/needs.js'
import { until } from '../../kit/wait.js'
import { RefreshBackend } from './refresh-backend.js'
import { namespace, newChannel, onBothWorkers, Poller, startPolls } from './rig.js'

// The kernel spreads its connections over the workers.
skipFile(t, skipDriver('uws'))

const backend = await RefreshBackend.start(t)
const gateway = await startPolls(
  t,
  { endpoint: backend.url },
  [
    namespace('poll'),
    namespace('pollvl', { mode: 'versionless' }),
    namespace('slow', { refresh_interval: '1h' }),
  ],
  { workers: 2, http_server: { driver: 'uws' } },
)

const keysOf = list => list.map(({ key }) => key).sort()

for (const name of ['poll', 'pollvl'])
  t.test(`${name}: one request for each key and interval`, async t => {
    const channel = newChannel(name)
    const all = await onBothWorkers(t, gateway, channel)
    t.equal(new Set(all.map(({ result }) => result.epoch)).size, 1, 'one epoch')
    backend.put(channel, {
      shared: { data: 1, version: 1 },
      ...Object.fromEntries(all.map((_, n) => [`own${n}`, { data: n, version: 1 }])),
    })
    for (const [n, poller] of all.entries()) {
      await poller.track({ shared: 0, [`own${n}`]: 0 })
      t.same(keysOf([await poller.next(), await poller.next()]), [`own${n}`, 'shared'])
    }
    // While a request is pending, nobody else sends one.
    const witness = await Poller.open(t, gateway, newChannel())
    backend.put(witness.channel, { a: { data: 0, version: 1 } })
    await witness.track({ a: 0 })
    await witness.next()
    /** @type {(value?: any) => void} */
    let release = () => {}
    backend.answers.set(channel, () => new Promise(resolve => (release = resolve)))
    const { items } = await backend.next(channel)
    t.same(keysOf(items), ['own0', 'own1', 'own2', 'own3', 'shared'], 'of the clients of both workers')
    const before = backend.of(channel).length
    await backend.next(witness.channel, 8)
    t.equal(backend.of(channel).length, before)
    backend.answers.delete(channel)
    backend.put(channel, { shared: { data: 2, version: 2 } })
    release()
    const versions = new Set()
    for (const poller of all) {
      const pub = await poller.next()
      t.match(pub, { key: 'shared', data: 2 })
      versions.add(pub.version)
    }
    t.equal(versions.size, 1)
  })

t.test('a key that another worker tracks comes at once', async t => {
  const channel = newChannel('slow')
  const [first, , last] = await onBothWorkers(t, gateway, channel)
  t.not(first.worker, last.worker)
  backend.put(channel, { a: { data: 1, version: 1 } })
  for (const poller of [first, last]) {
    await poller.track({ a: 0 })
    t.match(await poller.next(), { key: 'a', data: 1 })
  }
})

t.test('removals and epochs reach all workers', async t => {
  const channel = newChannel()
  const all = await onBothWorkers(t, gateway, channel)
  backend.epochs.set(channel, 'one')
  for (const poller of all) {
    await poller.track({ a: 0, b: 0 })
  }
  await backend.next(channel)
  // The first epoch of a channel may end the subscriptions.
  await backend.next(channel)
  for (const poller of all) {
    await poller.client.call('unsubscribe', { channel })
    await poller.subscribe()
    await poller.track({ a: 0, b: 0 })
  }
  backend.put(channel, { a: { data: 1, version: 9 }, b: { data: 1, version: 9 } })
  for (const poller of all) t.same(keysOf([await poller.next(), await poller.next()]), ['a', 'b'])
  backend.put(channel, { a: { removed: true } })
  for (const poller of all) t.match(await poller.next(), { key: 'a', removed: true })
  backend.epochs.set(channel, 'two')
  for (const poller of all) {
    t.match((await poller.client.push('unsubscribe')).unsubscribe, { code: 2500 })
    await poller.subscribe()
    t.equal(poller.result.epoch, 'two')
  }
})

t.test('a killed worker stops nothing, and its keys are given up', async t => {
  const channel = newChannel()
  const all = await onBothWorkers(t, gateway, channel)
  const keys = all.map((_, n) => `own${n}`)
  const put = version =>
    backend.put(
      channel,
      Object.fromEntries(['shared', ...keys].map(key => [key, { data: version, version }])),
    )
  put(1)
  for (const [n, poller] of all.entries()) {
    await poller.track({ shared: 0, [keys[n]]: 0 })
    await Promise.all([poller.next(), poller.next()])
  }
  // The first of the two workers, then the second one.
  for (const victim of [0, 1]) {
    /** @type {Set<Poller>} */
    const gone = new Set()
    const add = poller => poller.client.closed.then(() => gone.add(poller)).catch(() => {})
    for (const poller of all) add(poller)
    process.kill(gateway.workerPids[victim], 'SIGKILL')
    await until(
      () => gone.size === 2,
      () => 'the end of the connections of one worker',
    )
    const left = all.filter(poller => !gone.has(poller))
    const own = poller => keys[all.indexOf(poller)]
    await until(
      async () => keysOf((await backend.next(channel)).items).join() === [...left.map(own), 'shared'].join(),
      () => `rounds for ${left.map(own)} and shared alone`,
    )
    put(victim + 2)
    for (const poller of left)
      t.same(keysOf([await poller.next(), await poller.next()]), [own(poller), 'shared'])
    await until(() => gateway.workerPids.length === victim + 3)
    for (const [place, poller] of all.entries()) {
      if (!gone.has(poller)) continue
      const next = await Poller.open(t, gateway, channel, { stream: true })
      await next.track({ shared: 0, [own(poller)]: 0 })
      const pubs = [await next.next(), await next.next()]
      t.same(keysOf(pubs), [keys[place], 'shared'])
      t.ok(
        pubs.every(({ data }) => data === victim + 2),
        'a client that comes back gets the newest values',
      )
      all[place] = next
    }
    // Two clients of the worker that is killed next: others leave.
    const next = await onBothWorkers(t, gateway, channel)
    for (const poller of all) await poller.client.close()
    for (const [place, poller] of next.entries()) {
      await poller.track({ shared: 0, [keys[place]]: 0 })
      t.same(keysOf([await poller.next(), await poller.next()]), [keys[place], 'shared'])
      all[place] = poller
    }
  }
})
