import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { Store } from '../../../../src/channels/broker/embedded/store.js'

const HOUR = 3600_000
const KB = 1024

function start(maxBytes = 1024 * KB) {
  let now = 1_700_000_000_000
  const full = []
  const left = []
  const store = new Store({
    maxBytes,
    clock: () => now,
    onFull: (bytes, live) => full.push({ bytes, live }),
    onLeave: (channel, info) => left.push([channel.name, info, [...channel.links]]),
  })
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
  /** A client subscribes and leaves. @returns its position */
  const visit = (name, link = 'worker') => {
    store.subscribe(name, link)
    const { top, epoch } = store.stream(name, HOUR)
    store.unsubscribe(name, link)
    return { top, epoch }
  }
  return { store, full, left, add, pass, kept, visit, jump: ms => (now += ms) }
}

t.test('the sweep frees expired publications and streams', async t => {
  const { store, add, pass } = start()
  for (let i = 0; i < 100; i++) add(`ch${i}`, { bytes: KB, ttl: 5000, metaTtl: 20_000 })
  t.ok(store.bytes > 100 * KB)
  pass(6000)
  t.ok(store.bytes < 100 * KB, 'the publications')
  t.equal(store.channels.size, 100)
  pass(16_000)
  t.equal(store.channels.size, 0, 'offset and epoch expire later')
  t.equal(store.bytes, 0)
})

t.test('the sweep frees a busy channel after its last publication expires', async t => {
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
})

t.test('reads return no expired data between two sweeps', async t => {
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

t.test('a publication never outlives the position of its stream', async t => {
  const { add, kept, jump } = start()
  add('ch', { ttl: 60_000, metaTtl: 1000 })
  jump(30_000)
  t.same(kept('ch'), [1])
})

t.test('subscribers stay subscribed when their stream expires', async t => {
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

t.test('a new epoch resets the version', async t => {
  const { add, jump } = start()
  t.ok(add('ch', { version: 9n, metaTtl: 2000, ttl: 1000 }).added)
  t.notOk(add('ch', { version: 9n, metaTtl: 2000, ttl: 1000 }).added)
  jump(2500)
  t.ok(add('ch', { version: 1n }).added)
})

t.test('the least recently used channel without subscribers is dropped first', async t => {
  const { store, full, add, kept } = start(100 * KB)
  const first = add('ch1', { bytes: 10 * KB })
  for (const i of [0, 2, 3, 4, 5, 6, 7]) add(`ch${i}`, { bytes: 10 * KB })
  add('ch0', { bytes: 10 * KB })
  t.same(full, [])
  const { offset, epoch } = add('ch8', { bytes: 20 * KB })
  t.equal(full.length, 1)
  t.ok(full[0].bytes > 100 * KB)
  t.notOk(full[0].live)
  t.ok(store.bytes <= 100 * KB)
  t.same(kept('ch1'), [], 'the least recently used channel is dropped')
  t.not(store.stream('ch1', HOUR).epoch, first.epoch, 'a channel is dropped completely')
  t.same(kept('ch0'), [1, 2], 'a recently used channel is kept')
  t.same([store.stream('ch8', HOUR).top, store.stream('ch8', HOUR).epoch], [offset, epoch])
})

t.test('history of channels with subscribers is dropped last', async t => {
  const { store, full, add, kept, pass } = start(100 * KB)
  store.subscribe('live', 'worker')
  const { epoch } = add('live', { bytes: 10 * KB })
  store.subscribe('live2', 'worker')
  add('live2', { bytes: 10 * KB })
  store.keepResult('live', 'key', 1, epoch)
  pass(2000)
  for (let i = 0; i < 100; i++) {
    add(`dead${i}`, { bytes: 20 * KB })
    store.keepResult(`dead${i}`, 'key', 1, 'epoch')
  }
  t.same([kept('live'), kept('live2')], [[1], [1]])
  t.equal(store.result('live', 'key'), undefined, 'idempotency keys are dropped by age')
  t.match(store.result('dead99', 'key'), { offset: 1 })
  t.ok(full.every(({ live }) => !live))
  add('live2', { bytes: 85 * KB })
  t.same(kept('dead99'), [])
  t.same(kept('live'), [], 'of two the one published to less recently')
  t.same(kept('live2'), [1, 2])
  t.match(store.stream('live', HOUR), { top: 1, epoch })
  t.ok(full.at(-1).live)
  store.unsubscribe('live', 'worker')
  store.unsubscribe('live2', 'worker')
  add('other', { bytes: 10 * KB })
  t.same([kept('live2'), kept('other')], [[], [1]], 'without subscribers it is one of the others')
})

t.test('reading unused channels takes no memory', async t => {
  const { store, full, add, kept, visit } = start(100 * KB)
  let last
  for (let i = 0; i < 100; i++) last = add('test', { bytes: 100, size: 100 })
  const { bytes } = store
  const { epoch } = visit('name0')
  for (let i = 1; i < 20_000; i++) visit(`name${i}`)
  for (let i = 0; i < 20_000; i++) store.history(`other${i}`, { limit: 10 }, HOUR)
  t.equal(store.bytes, bytes)
  t.equal(store.channels.size, 1)
  t.same(full, [])
  t.equal(kept('test').length, 100)
  t.match(store.stream('test', HOUR), { top: 100, epoch: last.epoch })
  t.same(visit('name0'), { top: 0, epoch }, 'a returning client has missed nothing')
  t.equal(add('name0').epoch, epoch)
})

t.test('offset 0 of a dropped stream is not valid in the next one', async t => {
  const { store, add, pass, visit } = start()
  store.subscribe('used', 'worker')
  const used = store.stream('used', HOUR).epoch
  const before = visit('ch').epoch
  t.equal(before, used, 'channels without publications share one epoch')
  add('ch', { ttl: 1000, metaTtl: 2000 })
  t.equal(store.stream('ch', 2000).missed(0, before, 0), 1, 'the epoch stays with the first publication')
  pass(5000)
  const { epoch } = store.stream('ch', HOUR)
  t.not(epoch, before)
  t.equal(store.stream('ch', HOUR).missed(0, before, 0), -1)
  t.equal(store.stream('used', HOUR).epoch, used, 'channels with subscribers keep theirs')
  t.equal(add('ch', { ttl: 1000, metaTtl: 2000 }).epoch, epoch)
  pass(5000)
  add('ch', { ttl: 1000, metaTtl: 2000 })
  pass(5000)
  t.equal(store.stream('used', HOUR).epoch, used)

  // So does a channel whose only subscriber is reconnecting.
  store.unsubscribe('used', 'worker')
  t.ok(store.bytes > 0, 'kept data is counted')
  t.equal(visit('used').epoch, used)
  store.addPresence('used', 'c', { link: 'worker', user: '', info: '', leave: false })
  t.equal(store.bytes, 0)
  store.removePresence('used', 'c')
  t.ok(store.bytes > 0)
  pass(30_000)
  t.equal(store.stream('used', HOUR).epoch, used)
  pass(31_000)
  t.not(store.stream('used', HOUR).epoch, used, 'for a minute')
  t.equal(store.channels.size, 0)
  t.equal(store.bytes, 0)
})

t.test('epochs of unused channels are dropped first', async t => {
  const { store, full, add, pass, kept } = start(100 * KB)
  for (let i = 0; i < 1000; i++) {
    store.subscribe(`ch${i}`, 'worker')
    store.stream(`ch${i}`, HOUR)
  }
  add('brief', { ttl: 1000, metaTtl: 1000 })
  pass(2000)
  add('old', { bytes: 10 * KB, ttl: HOUR })
  for (let i = 0; i < 1000; i++) store.unsubscribe(`ch${i}`, 'worker')
  t.ok(full.length > 0)
  t.ok(store.bytes <= 100 * KB)
  t.ok(store.channels.size > 100)
  add('new', { bytes: 80 * KB, ttl: HOUR })
  t.same([kept('old'), kept('new')], [[1], [1]])
})

t.test('each kind of content stays within the limit', async t => {
  /** @type {Record<string, (rig: any, i: number) => void>} */
  const kinds = {
    'one channel': ({ add }, i) => t.equal(add('ch', { bytes: 2 * KB, size: 1000 }).offset, i + 1),
    positions: ({ store, add }, i) => {
      add(`ch${i}`, { ttl: HOUR })
      store.removeHistory(`ch${i}`)
    },
    'idempotency keys': ({ store }, i) => store.keepResult('ch', `key${i}`, i, 'epoch'),
  }
  for (const [kind, addOne] of Object.entries(kinds)) {
    const rig = start(100 * KB)
    for (let i = 0; i < 1000; i++) addOne(rig, i)
    t.ok(rig.store.bytes <= 100 * KB && rig.store.bytes > 50 * KB, kind)
    t.ok(rig.full.length > 0)
    t.notOk(rig.store.result('ch', 'key0'), 'the oldest is dropped')
    if (kind === 'positions') t.equal(rig.store.stream('ch999', HOUR).top, 1)
    if (kind === 'idempotency keys') t.match(rig.store.result('ch', 'key999'), { offset: 999 })
  }
})

t.test('an unused channel is removed', async t => {
  const { store } = start()
  store.subscribe('ch', 'a')
  store.subscribe('ch', 'a')
  store.subscribe('ch', 'b')
  store.addPresence('ch', 'c1', { link: 'a', user: '', info: '', leave: false })
  t.same(store.channels.get('ch')?.links, ['a', 'b'])
  store.unsubscribe('ch', 'a')
  store.unsubscribe('ch', 'a')
  store.unsubscribe('ch', 'b')
  t.equal(store.channels.size, 1)
  store.removePresence('ch', 'c1')
  t.equal(store.channels.size, 0)
})

t.test('removing a worker removes its subscriptions and clients', async t => {
  const { store, add, left } = start()
  for (const [name, link, client, leave] of /** @type {any[][]} */ ([
    ['x', 'a', 'a1', true],
    ['x', 'b', 'b1', true],
    ['x', 'a', 'a2', false],
    ['y', 'a', 'a3', true],
  ])) {
    store.subscribe(name, link)
    store.addPresence(name, client, { link, user: client, info: `info of ${client}`, leave })
  }
  add('y')
  store.removeLink('a')
  t.equal(store.removeSome(Infinity), false)
  t.same(left, [
    ['x', 'info of a1', ['b']],
    ['y', 'info of a3', []],
  ])
  t.same([...(store.presence('x')?.clients.keys() ?? [])], ['b1'])
  t.equal(store.presence('y'), null)
  t.equal(store.subscribed, 1)
  t.equal(store.stream('y', HOUR).top, 1, 'history stays')
})

t.test('a worker is removed in slices, but from presence immediately', async t => {
  const { store, left } = start()
  const info = i => `info of ${i}`
  for (let i = 0; i < 2000; i++) {
    for (const link of ['a', 'b', 'c']) {
      store.subscribe(`ch${i}`, link)
      store.addPresence(`ch${i}`, `${link}${i}`, { link, user: link, info: info(link + i), leave: true })
      store.addPresence('room', `${link}${i}`, { link, user: link, info: info(link + i), leave: true })
    }
  }
  for (const link of ['a', 'b']) store.removeLink(link)
  t.ok(store.removeSome(0))
  t.ok(left.length < 100, 'a few of 8,000')
  t.equal(store.presence('room')?.clients.size, 2000)
  t.equal(store.presence('room')?.users, 1)
  t.same([...(store.presence('ch1999')?.clients.keys() ?? [])], ['c1999'])
  // Clients of other workers, and channels, are added and removed meanwhile.
  store.addPresence('room', 'late', { link: 'c', user: 'c', info: '', leave: true })
  store.unsubscribe('ch1000', 'c')
  store.removePresence('ch1000', 'c1000')
  store.subscribe('new', 'c')
  let slices = 1
  while (store.removeSome(0)) slices++
  t.ok(slices > 50, `${slices} slices`)
  t.equal(new Set(left.map(([name, client]) => `${name} ${client}`)).size, 8000)
  t.equal(left.length, 8000, 'each leave once')
  t.equal(store.presence('room')?.clients.size, 2001)
  t.equal(store.channels.has('ch1000'), false)
  t.equal(store.channels.size, 2001)
  t.ok([...store.channels.values()].every(({ links }) => !links.includes('a') && !links.includes('b')))
  store.removeLink('c')
  while (store.removeSome(0));
  t.equal(store.channels.size, 0)
  t.equal(store.subscribed, 0)
})

t.test('counts of users stay correct while clients connect and disconnect', async t => {
  const { store } = start()
  let seed = 7
  const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  const present = new Map()
  const faults = []
  for (let step = 0; step < 3000; step++) {
    const client = `c${random(step % 500 < 100 ? 3 : 20)}`
    if (random(2)) {
      const user = random(5) ? `u${random(6)}` : ''
      present.set(client, user)
      store.addPresence('ch', client, { link: 'a', user, info: '', leave: false })
    } else {
      present.delete(client)
      store.removePresence('ch', client)
    }
    const presence = store.presence('ch')
    const [clients, users] = [presence?.clients.size ?? 0, presence?.users ?? 0]
    if (clients !== present.size || users !== new Set(present.values()).size) faults.push(step)
  }
  t.same(faults, [])
})

t.test('counted bytes match the heap', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const count = 20_000
  // As in frames: each text is a separate string.
  const text = value => Buffer.from(value).toString('latin1')
  const body = 'x'.repeat(100)
  const publication = { flags: 16, size: 100, ttl: HOUR, metaTtl: HOUR, version: 0n, versionEpoch: '' }
  const rows = {
    'streams of one publication': (store, i) =>
      store.append(text(`personal:channel${i}`), { ...publication, body: text(body) }),
    'streams of twenty': (store, i) =>
      store.append(text(`personal:channel${i % 1000}`), { ...publication, body: text(body) }),
    'idempotency keys': (store, i) =>
      store.keepResult(text(`channel${i}`), text(`some-key-${i}`), i, 'epochabc'),
  }
  for (const [name, add] of Object.entries(rows)) {
    const { store } = start(2 ** 30)
    const before = heap()
    for (let i = 0; i < count; i++) add(store, i)
    const used = heap() - before
    t.ok(used < store.bytes * 1.15 && used > store.bytes * 0.5, `${name}: ${used} of ${store.bytes}`)
  }
})
