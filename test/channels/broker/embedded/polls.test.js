import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { PollFanout } from '../../../../src/channels/hub/polls.js'
import { JsonCodec } from '../../../../src/clients/protocol/json.js'
import { until, within } from '../../../kit/wait.js'
import { startEmbedded } from './rig.js'

const RULES = { interval: 50, batchSize: 10, concurrency: 4, shutdownDelay: 20, versioned: true }

/** A worker whose backend is a Map of `{version, data}`; `asked`: the calls it made. */
async function join(rig, backend, asked = [], answer = result => result) {
  const worker = {
    asked,
    updates: [],
    epochs: [],
    broker: null,
    open: (rules = {}, channel = 'poll') =>
      new Promise((resolve, reject) =>
        worker.broker.polls.open(channel, { ...RULES, ...rules }, (error, epoch) =>
          error ? reject(error) : resolve(epoch),
        ),
      ),
    track: (versions, channel = 'poll') =>
      new Promise((resolve, reject) => {
        const items = Object.entries(versions).map(([key, version]) => ({ key, version }))
        worker.broker.polls.track(channel, items, error => (error ? reject(error) : resolve(undefined)))
      }),
    of: key => worker.updates.filter(update => update.key === key),
  }
  const events = {
    pollUpdate: (channel, { data, ...rest }) => {
      worker.updates.push({ channel, ...rest, data: String(data) })
      worker.fanout?.update(channel, { ...rest, data })
    },
    pollEpoch: (_channel, epoch) => worker.epochs.push(epoch),
    refresh: (channel, items, all, done) => {
      asked.push({ channel, items, all, worker })
      const changes = items.flatMap(({ key }) => {
        const value = backend.get(key)
        return value
          ? [{ key, hash: '', removed: false, json: true, ...value, data: Buffer.from(value.data ?? '') }]
          : []
      })
      done(answer({ changes, epoch: backend.epoch ?? '' }))
    },
  }
  worker.broker = await rig.join(events)
  return worker
}

const keysAsked = asked => asked.flatMap(({ items }) => items.map(({ key }) => key))

t.test('workers share the calls of a node: one per key and interval', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = new Map([['a', { version: 1n, data: '1' }]])
  const asked = []
  const [a, b] = [await join(rig, backend, asked), await join(rig, backend, asked)]
  await Promise.all([a.open(), b.open()])
  await Promise.all([a.track({ a: 1n }), b.track({ a: 1n })])
  await until(() => asked.length >= 4)
  const before = asked.length
  const began = performance.now()
  await until(() => asked.length >= before + 6)
  t.ok((performance.now() - began) / RULES.interval > 4.5, 'six calls take five intervals')
  t.ok(new Set(asked.map(({ worker }) => worker)).size === 2, 'the workers take turns')
})

t.test('a key without data is asked for at once, a known version is not', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = new Map([['a', { version: 3n, data: '"ü"' }]])
  const worker = await join(rig, backend)
  await worker.open({ interval: 60_000 })
  await worker.track({ a: 0n, b: 7n })
  await until(() => worker.updates.length === 1)
  t.same(worker.updates, [
    { channel: 'poll', key: 'a', removed: false, version: 3n, json: true, data: '"ü"' },
  ])
  t.same(keysAsked(worker.asked), ['a'])
  t.same(worker.asked[0].items, [{ key: 'a', version: 0n, hash: '' }])
  await worker.track({ a: 3n })
  await worker.track({ a: 2n })
  await until(() => worker.updates.length === 2)
  t.same(keysAsked(worker.asked), ['a', 'a'], 'an older version is')
})

t.test('a key is not asked for again while a call for it is in progress', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const asked = []
  const updates = []
  let finish = () => {}
  const broker = await rig.join({
    pollUpdate: (_channel, { key, version }) => updates.push(`${key} ${version}`),
    refresh: (_channel, items, all, done) => {
      asked.push(...items.map(({ key }) => key))
      const data = { hash: '', removed: false, json: true, data: Buffer.from('1') }
      if (!all) return done({ changes: [], epoch: '' })
      finish = () => done({ changes: items.map(({ key }) => ({ key, version: 5n, ...data })), epoch: '' })
    },
  })
  const call = (/** @type {(done: (error: Error | null) => void) => void} */ made) =>
    new Promise((resolve, reject) => made(error => (error ? reject(error) : resolve(null))))
  await call(done => broker.polls.open('poll', RULES, done))
  const track = (/** @type {string} */ key, /** @type {bigint} */ version) =>
    call(done => broker.polls.track('poll', [{ key, version }], done))
  await track('slow', 0n)
  await track('other', 1n)
  const rounds = () => asked.filter(key => key === 'other').length
  await until(() => rounds() >= 2)
  await track('slow', 0n)
  await until(() => rounds() >= 4)
  t.equal(asked.filter(key => key === 'slow').length, 1, 'neither by the next cycles nor for another client')
  finish()
  await until(() => updates.length > 0)
  t.same(updates, ['slow 5'])
  await until(() => asked.filter(key => key === 'slow').length >= 2)
})

t.test('large polls are spread over the interval in batches', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const worker = await join(rig, new Map())
  await worker.open({ interval: 200, batchSize: 3 })
  await worker.track(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`k${i}`, 1n])))
  await until(() => worker.asked.length >= 6)
  for (const round of [0, 3]) {
    const keys = keysAsked(worker.asked.slice(round, round + 3))
    t.equal(new Set(keys).size, 9, 'each key once per cycle')
    for (const { items } of worker.asked.slice(round, round + 3)) t.equal(items.length, 3)
  }
})

t.test('calls of all channels together are limited', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  let open = 0
  let most = 0
  const events = {
    refresh: async (_channel, _items, _all, done) => {
      most = Math.max(most, ++open)
      await pause(20)
      open--
      done({ changes: [], epoch: '' })
    },
  }
  const broker = await rig.join(events)
  let answered = 0
  for (let i = 0; i < 20; i++)
    broker.polls.open(`c${i}`, { ...RULES, concurrency: 3 }, () =>
      broker.polls.track(`c${i}`, [{ key: 'k', version: 0n }], () => answered++),
    )
  await until(() => rig.host.polls.counts.calls >= 40)
  t.equal(answered, 20)
  t.equal(most, 3)
})

t.test('without versions, the node numbers the changes of a value', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = new Map([['a', { hash: 'one', version: 0n, data: '1' }]])
  const worker = await join(rig, backend)
  const epoch = await worker.open({ versioned: false })
  t.match(epoch, /^[A-Za-z]{8}$/)
  await worker.track({ a: 0n })
  await until(() => worker.of('a').length >= 1)
  backend.set('a', { hash: 'two', version: 0n, data: '2' })
  await until(() => worker.of('a').some(({ data }) => data === '2'))
  const versions = data =>
    new Set(
      worker
        .of('a')
        .filter(update => update.data === data)
        .map(({ version }) => version),
    )
  t.same([...versions('1')], [1n])
  t.same([...versions('2')], [2n])
})

t.test('a new epoch resets all versions', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = Object.assign(new Map([['a', { version: 9n, data: 'old' }]]), { epoch: 'one' })
  const worker = await join(rig, backend)
  await worker.open()
  await worker.track({ a: 0n })
  await until(() => worker.of('a').length === 1)
  t.same(worker.epochs, ['one'])
  backend.epoch = 'two'
  backend.set('a', { version: 1n, data: 'new' })
  await until(() => worker.of('a').length === 2)
  t.same(worker.epochs, ['one', 'two'])
  t.match(worker.of('a')[1], { version: 1n, data: 'new' })
  worker.broker.polls.published('poll', 'a', 5n, 'three')
  await until(() => worker.epochs.length >= 3)
  t.equal(worker.epochs[2], 'three', 'of a direct publication, too')
})

t.test('the calls and keys of an ended worker go to the others', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = new Map([['a', { version: 1n, data: '1' }]])
  const asked = []
  const [a, b] = [await join(rig, backend, asked, () => null), await join(rig, backend, asked)]
  await Promise.all([a.open(), b.open()])
  await a.track({ a: 1n, b: 1n })
  await b.track({ a: 1n })
  rig.cut(a.broker)
  await until(() => rig.host.polls.keys === 1)
  const before = asked.length
  await until(() => asked.length >= before + 3)
  for (const { items, worker } of asked.slice(before + 1)) {
    t.same(
      items.map(({ key }) => key),
      ['a'],
    )
    t.equal(worker, b)
  }
})

t.test('a poll without subscribers ends after its delay; versions are kept until then', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const worker = await join(rig, new Map())
  const epoch = await worker.open({ versioned: false, shutdownDelay: 60_000 })
  worker.broker.polls.close('poll')
  t.equal(await worker.open({ versioned: false, shutdownDelay: 0 }), epoch)
  worker.broker.polls.close('poll')
  await until(async () => {
    const next = await worker.open({ versioned: false, shutdownDelay: 0 })
    worker.broker.polls.close('poll')
    return next !== epoch
  })
})

t.test('a node tracks a limited amount of keys', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const worker = await join(rig, new Map())
  await worker.open({ interval: 600_000 })
  let number = 0
  const many = () =>
    Object.fromEntries(Array.from({ length: 2000 }, () => [`${number++}`.padEnd(1024, 'x'), 1n]))
  let refused = null
  while (refused === null && number < 200_000) await worker.track(many()).catch(error => (refused = error))
  t.equal(refused, errors.limitExceeded)
  t.ok(rig.host.polls.keys > 100_000 && rig.host.polls.keys < 130_000)
})

/** A subscriber of a PollFanout that records its messages. */
function subscriber(fanout, delta = false, channel = 'poll') {
  const codec = new JsonCodec()
  const got = []
  const session = {
    codec,
    send: message => got.push(JSON.parse(String(message)).push.pub),
    inappropriateProtocol() {},
    positionLost: () => got.push('lost'),
  }
  return new Promise((resolve, reject) =>
    fanout.subscribe(session, channel, { ...RULES, interval: 60_000 }, delta, (error, tracking) =>
      error ? reject(error) : resolve({ tracking, got }),
    ),
  )
}

const track = (tracking, ...keys) =>
  new Promise((resolve, reject) =>
    tracking.track(
      keys.map(key => ({ key, version: 0n, expireAt: 0 })),
      error => (error ? reject(error) : resolve(undefined)),
    ),
  )

t.test('a subscriber that leaves a key does not end the updates of one that is joining it', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const backend = new Map([['a', { version: 1n, data: '1' }]])
  const worker = await join(rig, backend)
  const fanout = new PollFanout({ delivered: 0 }, worker.broker.polls)
  worker.fanout = fanout
  const [one, two] = [await subscriber(fanout), await subscriber(fanout)]
  await track(one.tracking, 'a')
  const joining = track(two.tracking, 'a')
  one.tracking.untrack(['a'])
  await joining
  await until(() => two.got.length >= 1)
  t.match(two.got[0], { key: 'a', data: 1, version: 1 })
  t.equal(rig.host.polls.keys, 1)

  // The same with a subscription that ends while its request is pending, and one that begins.
  const ending = track(two.tracking, 'b')
  two.tracking.end()
  one.tracking.end()
  const three = await subscriber(fanout)
  await Promise.all([ending, track(three.tracking, 'b')])
  t.same(rig.host.polls.keys, 1)
  backend.set('b', { version: 4n, data: '4' })
  await track(three.tracking, 'b')
  await within(
    until(() => three.got.length >= 1),
    'an update',
  )
  three.tracking.end()
  await until(() => rig.host.polls.keys === 0)
})

t.test('a delta refers to the value that the subscriber has', async t => {
  const rig = await startEmbedded(t)
  t.teardown(() => rig.host.end())
  const long = 'x'.repeat(200)
  const backend = new Map([['a', { version: 1n, data: JSON.stringify(`${long}1`) }]])
  const worker = await join(rig, backend)
  const fanout = new PollFanout({ delivered: 0 }, worker.broker.polls)
  worker.fanout = fanout
  const one = await subscriber(fanout, true)
  await track(one.tracking, 'a')
  await until(() => one.got.length === 1)
  t.notOk(one.got[0].delta)
  const update = (version, data) =>
    fanout.update('poll', {
      key: 'a',
      version,
      removed: false,
      json: true,
      data: Buffer.from(JSON.stringify(data)),
    })
  update(2n, `${long}2`)
  t.equal(one.got[1].delta, true)
  const two = await subscriber(fanout, true)
  await track(two.tracking, 'a')
  update(3n, `${long}3`)
  t.equal(one.got.at(-1).delta, true)
  t.notOk(two.got.at(-1).delta, 'the first value is whole')
  t.match(two.got.at(-1), { version: 3 })
  update(3n, 'again')
  t.equal(one.got.filter(({ version }) => version === 3).length, 1, 'a version that is not newer is not sent')
})
