import t from 'tap'
import { Store } from '../../../src/broker/embedded/store.js'

const HOUR = 3600_000
const KB = 1024

function start(maxBytes = 1024 * KB) {
  let now = 1_700_000_000_000
  const full = []
  const store = new Store({ maxBytes, clock: () => now, onFull: bytes => full.push(bytes) })
  const add = (
    name,
    { bytes = 10, size = 10, ttl = 10_000, metaTtl = HOUR, version = 0n, versionEpoch = '' } = {},
  ) => store.append(name, { flags: 0, body: 'x'.repeat(bytes), size, ttl, metaTtl, version, versionEpoch })
  const pass = ms => {
    for (const end = now + ms; now < end; ) {
      now = Math.min(end, now + 1000)
      store.sweep()
    }
  }
  const kept = name => store.history(name, { limit: -1 }, HOUR).entries.map(({ offset }) => offset)
  return { store, full, add, pass, kept, jump: ms => (now += ms) }
}

t.test('what has ended gives its memory back by the sweep alone, without being looked at', async t => {
  const { store, add, pass } = start()
  for (let i = 0; i < 100; i++) add(`ch${i}`, { bytes: KB, ttl: 5000, metaTtl: 20_000 })
  t.ok(store.bytes > 100 * KB)
  pass(6000)
  t.ok(store.bytes < 100 * KB, 'the publications')
  t.equal(store.channels.size, 100)
  pass(16_000)
  t.equal(store.channels.size, 0, 'then offset and epoch')
  t.equal(store.bytes, 0)
})

t.test(
  'a channel that is published to all the time keeps its history, and the sweep finds its end',
  async t => {
    const { store, add, pass, kept } = start()
    for (let i = 0; i < 60; i++) {
      add('ch', { bytes: KB, size: 100, ttl: 5000, metaTtl: 20_000 })
      pass(1000)
    }
    t.equal(kept('ch').length, 60)
    // The read has extended offset and epoch by an hour.
    pass(6000)
    t.ok(store.bytes > 0 && store.bytes < KB)
    pass(HOUR)
    t.equal(store.bytes, 0)
  },
)

t.test('publications that expire long before their position are removed in time', async t => {
  const { store, add, pass } = start()
  store.stream('ch', HOUR)
  const empty = store.bytes
  add('ch', { bytes: KB, ttl: 60_000 })
  add('ch', { bytes: KB, ttl: 3000 })
  t.ok(store.bytes > 2 * KB)
  pass(5000)
  t.equal(store.bytes, empty)
  store.removeHistory('ch')
  pass(HOUR)
  t.equal(store.channels.size, 0)
})

t.test('time is kept exactly for who looks, also between two sweeps', async t => {
  const { add, kept, jump } = start()
  const { epoch } = add('ch', { ttl: 1500, metaTtl: 3000 })
  jump(1499)
  t.same(kept('ch'), [1])
  jump(1)
  t.same(kept('ch'), [])
  t.equal(add('ch', { ttl: 1500, metaTtl: 3000 }).epoch, epoch)
  jump(3000)
  const next = add('ch')
  t.equal(next.offset, 1)
  t.not(next.epoch, epoch)
})

t.test('a publication never outlives its position', async t => {
  const { add, kept, jump } = start()
  add('ch', { ttl: 60_000, metaTtl: 1000 })
  jump(30_000)
  t.same(kept('ch'), [1])
})

t.test('a stream with subscribers that ends leaves the subscribers', async t => {
  const { store, add, pass } = start()
  store.subscribe('ch', 'worker')
  const first = add('ch', { ttl: 1000, metaTtl: 2000 })
  pass(5000)
  t.same(store.channels.get('ch')?.links, ['worker'])
  t.equal(store.channels.get('ch')?.stream, null)
  const next = add('ch')
  t.equal(next.offset, 1)
  t.not(next.epoch, first.epoch)
  t.same(store.channels.get('ch')?.links, ['worker'], 'and the channel stays the same one')
})

t.test('a new life of a stream knows no version of the one before', async t => {
  const { add, jump } = start()
  t.ok(add('ch', { version: 9n, metaTtl: 2000, ttl: 1000 }).added)
  t.notOk(add('ch', { version: 9n, metaTtl: 2000, ttl: 1000 }).added)
  jump(2500)
  t.ok(add('ch', { version: 1n }).added)
})

t.test(
  'at the bound the channel published to least recently loses its history, and keeps its position',
  async t => {
    const { store, full, add, kept } = start(100 * KB)
    for (let i = 0; i < 8; i++) add(`ch${i}`, { bytes: 10 * KB })
    add('ch0', { bytes: 10 * KB })
    t.same(full, [])
    const { offset, epoch } = add('ch8', { bytes: 20 * KB })
    t.equal(full.length, 1)
    t.ok(full[0] > 100 * KB)
    t.ok(store.bytes <= 100 * KB)
    t.same(kept('ch1'), [], 'the one that waited longest')
    t.same(kept('ch0'), [1, 2], 'not the one published to since')
    t.equal(store.stream('ch1', HOUR).top, 1)
    t.same([store.stream('ch8', HOUR).top, store.stream('ch8', HOUR).epoch], [offset, epoch])
  },
)

t.test('one channel alone may not pass the bound either', async t => {
  const { store, full, add } = start(100 * KB)
  for (let i = 1; i <= 50; i++) {
    t.equal(add('ch', { bytes: 30 * KB, size: 1000 }).offset, i)
    if (store.bytes > 100 * KB) t.fail(`${store.bytes}`)
  }
  t.ok(full.length > 0)
})

t.test('positions alone are bounded, too: the oldest ones go', async t => {
  const { store } = start(100 * KB)
  const first = store.stream('first', HOUR).epoch
  for (let i = 0; i < 1000; i++) store.stream(`ch${i}`, HOUR)
  t.ok(store.bytes <= 100 * KB)
  t.ok(store.channels.size < 300)
  const last = store.stream('ch999', HOUR).epoch
  t.equal(store.stream('ch999', HOUR).epoch, last)
  t.not(store.stream('first', HOUR).epoch, first)
})

t.test('idempotency keys are bounded, too', async t => {
  const { store, full } = start(100 * KB)
  for (let i = 0; i < 2000; i++) store.keepResult('ch', `key${i}`, i, 'epoch')
  t.ok(store.bytes <= 100 * KB)
  t.equal(store.result('ch', 'key0'), undefined)
  t.match(store.result('ch', 'key1999'), { offset: 1999 })
  t.ok(full.length > 0)
})

t.test('nothing is left of a channel that nobody uses any more', async t => {
  const { store } = start()
  store.subscribe('ch', 'a')
  store.subscribe('ch', 'a')
  store.subscribe('ch', 'b')
  store.addPresence('ch', 'c1', { link: 'a', info: '', leave: false })
  t.same(store.channels.get('ch')?.links, ['a', 'b'])
  store.unsubscribe('ch', 'a')
  store.unsubscribe('ch', 'a')
  store.unsubscribe('ch', 'b')
  t.equal(store.channels.size, 1)
  store.removePresence('ch', 'c1')
  t.equal(store.channels.size, 0)
})

t.test('a worker that goes takes its subscriptions and its clients with it', async t => {
  const { store, add } = start()
  for (const [name, link, client, leave] of [
    ['x', 'a', 'a1', true],
    ['x', 'b', 'b1', true],
    ['x', 'a', 'a2', false],
    ['y', 'a', 'a3', true],
  ]) {
    store.subscribe(name, link)
    store.addPresence(name, client, { link, info: `info of ${client}`, leave })
  }
  add('y')
  const left = []
  store.removeLink('a', (channel, info) => left.push([channel.name, info, [...channel.links]]))
  t.same(left, [
    ['x', 'info of a1', ['b']],
    ['y', 'info of a3', []],
  ])
  t.same([...(store.channels.get('x')?.presence?.keys() ?? [])], ['b1'])
  t.equal(store.channels.get('y')?.presence, null)
  t.equal(store.stream('y', HOUR).top, 1, 'history stays')
})
