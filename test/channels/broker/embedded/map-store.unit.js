// Keyed state in the memory of the primary: order of keys, expiry, full memory.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { Flag } from '../../../../src/channels/broker/embedded/frames.js'
import { SortedEntries } from '../../../../src/channels/broker/embedded/map-entries.js'
import { Store } from '../../../../src/channels/broker/embedded/store.js'

const HOUR = 3600_000
const KB = 1024
const RULES = { keyTtl: HOUR, streamSize: 5, streamTtl: HOUR, metaTtl: 2 * HOUR }
const ALL = { cursor: '', limit: 100_000, key: '', epoch: '', upTo: 0, maxBytes: 0 }

/** What a call throws. @param {() => void} call */
function fault(call) {
  try {
    call()
  } catch (error) {
    return error
  }
}

/** @param {string} key @param {string} data @returns {string} the body of a change, see map-frames.js */
function bodyOf(key, data) {
  const bytes = Buffer.alloc(4 + data.length + 9 + 4 + key.length)
  let at = bytes.writeUInt32LE(data.length)
  at += bytes.write(data, at, 'latin1')
  at = bytes.writeUInt32LE(key.length, at + 9)
  bytes.write(key, at, 'latin1')
  return bytes.toString('latin1')
}

/** @param {{maxBytes?: number, mayExpire?: () => boolean}} [options] */
function start({ maxBytes = 1024 * KB, mayExpire = () => true } = {}) {
  let now = 1_700_000_000_000
  const changes = []
  let refused = 0
  const store = new Store({
    maxBytes,
    clock: () => now,
    onFull: () => {},
    onLeave: () => {},
    onChange: (_channel, _flags, body, { offset }) => changes.push({ key: body.slice(-3), offset }),
    onMapsFull: () => refused++,
    mayExpire,
  })
  const write = (name, key, data, more) => {
    const body = bodyOf(key, data)
    const dataEnd = 4 + data.length
    const options = {
      removed: false,
      append: false,
      rules: RULES,
      version: 0n,
      versionEpoch: '',
      keyMode: '',
    }
    const none = {
      idempotencyKey: '',
      refresh: false,
      owned: false,
      maxBytes: 0,
      expected: null,
      value: null,
    }
    const change = { flags: Flag.KEYED, body, dataEnd, keyedAt: dataEnd, json: true, bytes: false }
    return store.maps.write(
      /** @type {any} */ ({ name, key, ...options, ...none, ...change, ...more }),
      'worker',
    )
  }
  return {
    store,
    changes,
    get refused() {
      return refused
    },
    put: (name, key, data = '1', more = {}) => write(name, key, data, more),
    remove: (name, key, more = {}) => write(name, key, '', { removed: true, ...more }),
    keys: name => store.maps.page(name, ALL, RULES).entries.map(({ key }) => key),
    /** A second of the primary, in as many slices as it takes. */
    second(done = () => true) {
      now += 1000
      store.sweep()
      for (let slices = 0; !done() && slices < 10_000; slices++) store.sweep()
    },
    jump: ms => (now += ms),
  }
}

t.test('entries are in byte order of their keys, whatever is added and removed', async t => {
  let seed = 7
  const random = below => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const entries = new SortedEntries()
  const model = new Map()
  const check = () => {
    const sorted = [...model.keys()].sort()
    t.same(
      [...entries.after('')].map(({ key }) => key),
      sorted,
    )
    t.equal(entries.size, sorted.length)
    for (let n = 0; n < 20; n++) {
      const key = String.fromCharCode(1 + random(255)) + random(5000)
      t.equal(entries.get(key), model.get(key))
      t.equal(
        entries.after(key).next().value?.key,
        sorted.find(other => other > key),
      )
    }
  }
  // Growing over many chunks, then shrinking until they are joined, and to none.
  for (const [steps, removals] of [
    [6000, 2],
    [9000, 7],
    [12_000, 10],
  ]) {
    for (let n = 0; n < steps; n++) {
      const key = String.fromCharCode(1 + random(255)) + random(5000)
      if (random(10) < removals) {
        const [some] = model.has(key) ? [key] : model.keys()
        if (some === undefined) continue
        entries.delete(model.get(some))
        model.delete(some)
      } else if (!model.has(key)) {
        const entry = { key }
        entries.add(entry)
        model.set(key, entry)
      }
    }
    check()
  }
  t.equal(entries.size, 0)
  for (let n = 0; n < 2000; n++) entries.add({ key: String(n).padStart(4, '0') })
  const taken = []
  for (let some = entries.takeSome(); some.length > 0; some = entries.takeSome()) taken.push(...some)
  t.equal(new Set(taken.map(({ key }) => key)).size, 2000)
  t.equal(entries.size, 0)
})

t.test('keys expire in the order of their lifetimes, not of their writes', async t => {
  const { put, changes, second, keys } = start()
  const ttl = keyTtl => ({ rules: { ...RULES, keyTtl } })
  put('m', 'k30', '1', ttl(30_000))
  put('m', 'k10', '1', ttl(10_000))
  put('m', 'k20', '1', ttl(20_000))
  put('m', 'new', '1', ttl(5000))
  put('m', 'off', '1', ttl(5000))
  put('m', 'off', '1', ttl(0))
  put('m', 'cut', '1', ttl(40_000))
  put('m', 'cut', '1', ttl(15_000))
  const written = changes.length
  for (let n = 0; n < 4; n++) second()
  put('m', 'new', '2', ttl(21_000))
  for (let n = 0; n < 60; n++) second()
  t.same(
    changes.slice(written + 1).map(({ key }) => key),
    ['k10', 'cut', 'k20', 'new', 'k30'],
  )
  t.same(
    changes.map(({ offset }) => offset),
    changes.map((_, n) => n + 1),
  )
  t.same(keys('m'), ['off'])
})

t.test('a page as text has the present entries after every change', async t => {
  const { put, remove, store, jump } = start({ mayExpire: () => false })
  const query = { ...ALL, limit: 3 }
  const pageOf = (/** @type {boolean} */ text) => store.maps.page('m', { ...query, text }, RULES)
  let reads = 0
  const check = () => {
    const { entries, cursor, offset, epoch } = pageOf(false)
    for (let n = 0; n < 2; n++) {
      const page = pageOf(true)
      const keys = page.text === null ? [] : JSON.parse(String(page.text))
      t.same(
        keys.map((/** @type {any} */ { key, offset, data }) => [key, offset, data]),
        entries.map(({ key, offset, body }) => [key, offset, JSON.parse(body.slice(4, 5))]),
      )
      t.same([page.cursor, page.offset, page.epoch], [cursor, offset, epoch])
      reads++
    }
  }
  check()
  for (const [n, key] of ['b', 'a', 'd', 'c', 'b'].entries()) {
    put('m', key, String(n), { rules: { ...RULES, keyTtl: 1000 * (n + 1) } })
    check()
  }
  remove('m', 'c')
  check()
  put('m', 'd', '1', { keyMode: 'if_new', refresh: true, rules: { ...RULES, keyTtl: 500 } })
  check()
  for (let n = 0; n < 12; n++) {
    jump(500)
    check()
  }
  store.clear('m')
  check()
  put('m', 'x', '7')
  check()
  put('m', 'y', '8', { json: false, flags: Flag.KEYED | Flag.NOT_JSON })
  const { text, entries } = pageOf(true)
  t.same([text, entries.length], [null, 2], 'not JSON')
  t.equal(reads, 44)
})

t.test('an expired key is hidden before its removal is due', async t => {
  let may = false
  const { put, changes, second, keys, store, jump } = start({ mayExpire: () => may })
  put('m', 'old', '1', { rules: { ...RULES, keyTtl: 1000 } })
  put('m', 'now', '1', { rules: { ...RULES, keyTtl: 1000 } })
  for (let n = 0; n < 3; n++) second()
  t.equal(changes.length, 2, 'a slow subscriber')
  t.same(keys('m'), [])
  t.equal(store.maps.page('m', { ...ALL, key: 'old' }, RULES).entries.length, 0)
  t.match(put('m', 'now', '2', { keyMode: 'if_new' }), { suppressed: '', offset: 4 }, 'removed first')
  may = true
  for (let n = 0; n < 3; n++) second()
  t.same(
    changes.map(({ key }) => key),
    ['old', 'now', 'now', 'now', 'old'],
  )
  jump(HOUR)
  t.same(keys('m'), [])
})

t.test('many keys that expire together are removed in slices', async t => {
  const rig = start({ maxBytes: 2 ** 30 })
  const count = 60_000
  for (let n = 0; n < count; n++) rig.put('m', `k${n}`, '1', { rules: { ...RULES, keyTtl: 10_000 } })
  rig.jump(10_000)
  const begun = performance.now()
  rig.second()
  const slice = performance.now() - begun
  const { expiries } = rig.store.maps.counter
  t.ok(expiries > 0 && expiries < count, `${expiries} in ${slice.toFixed(1)} ms`)
  t.same(rig.keys('m'), [], 'the others are hidden')
  for (let slices = 0; rig.store.maps.keys > 0 && slices < 10_000; slices++) rig.store.sweep()
  t.equal(rig.store.maps.counter.expiries, count)
  t.equal(rig.store.channels.get('m')?.map, null)
  t.equal(rig.store.maps.bytes, 0)
})

t.test('full memory refuses new keys and larger values, and keeps the stored ones', async t => {
  const rig = start({ maxBytes: 100 * KB })
  const { store, put, remove, keys } = rig
  let count = 0
  const fill = () => {
    for (;;) put('m', `k${String(count).padStart(5, '0')}`, 'x'.repeat(200)) && count++
  }
  t.equal(fault(fill), errors.internal)
  t.equal(rig.refused, 1)
  t.ok(count > 100 && store.bytes <= 100 * KB, `${count} keys`)
  const before = store.stream('m', HOUR).top
  t.equal(
    fault(() => put('m', 'k00000', 'x'.repeat(5000))),
    errors.internal,
  )
  t.equal(
    fault(() => put('other', 'k', 'x'.repeat(5000))),
    errors.internal,
  )
  t.equal(store.channels.has('other'), false, 'nothing remains of it')
  t.equal(store.stream('m', HOUR).top, before, 'no change')
  t.equal(keys('m').length, count)
  t.equal(store.maps.page('m', { ...ALL, key: 'k00000' }, RULES).entries[0].body.length, 223)
  t.match(put('m', 'k00000', 'x'.repeat(100)), { suppressed: '' }, 'a smaller value')
  for (let n = 1; n < 40; n++) remove('m', `k${String(n).padStart(5, '0')}`)
  t.match(put('other', 'k', 'x'.repeat(5000)), { suppressed: '' }, 'removed keys make room')
  t.equal(keys('m').length, count - 39)
  t.ok(store.bytes <= 100 * KB)
})

t.test('the entries of a cleared map are disposed of in small parts', async t => {
  const entries = new SortedEntries()
  const keys = Array.from({ length: 10_000 }, (_, n) => `k${(n * 7919) % 10_000}`)
  for (const key of keys) entries.add({ key })
  const taken = []
  for (let some = entries.takeSome(); some.length > 0; some = entries.takeSome()) {
    t.ok(some.length <= 1024, `${some.length} at once`)
    taken.push(...some.map(({ key }) => key))
  }
  t.same(taken.sort(), keys.sort())
  t.equal(entries.size, 0)
})

t.test('history makes room for keys, and keys never for history', async t => {
  const { store, put, keys } = start({ maxBytes: 100 * KB })
  const append = (name, bytes) =>
    store.append(name, {
      ...{ flags: 0, body: 'x'.repeat(bytes), size: 100, ttl: HOUR, metaTtl: HOUR },
      ...{ version: 0n, versionEpoch: '' },
    })
  store.subscribe('subscribed', 'worker')
  for (let n = 0; n < 10; n++) for (const name of ['subscribed', 'unused']) append(name, 4 * KB)
  put('m', 'k', 'x'.repeat(90 * KB))
  t.equal(store.history('unused', { limit: -1 }, HOUR).entries.length, 0)
  t.ok(store.bytes <= 100 * KB)
  for (let n = 0; n < 100; n++) append('subscribed', 4 * KB)
  t.same(keys('m'), ['k'])
  t.ok(store.history('subscribed', { limit: -1 }, HOUR).entries.length <= 2)
  t.ok(store.bytes <= 100 * KB, `${store.bytes} bytes`)
})

t.test('all bytes are counted, and given back', async t => {
  const { store, put, remove, second } = start()
  const sizes = new Map()
  for (let n = 0; n < 3000; n++) {
    const key = `k${(n * 7919) % 100}`
    if (n % 3 === 0) {
      remove('m', key)
      sizes.delete(key)
    } else {
      put('m', key, 'x'.repeat((n * 31) % 500))
      sizes.set(key, (n * 31) % 500)
    }
  }
  let listed = 0
  for (const entry of store.maps.page('m', ALL, RULES).entries) listed += entry.bytes
  t.equal(store.maps.keys, sizes.size)
  t.ok(store.maps.bytes > listed && store.maps.bytes < listed + KB, 'the entries and the map')
  store.clear('m')
  t.equal(store.maps.bytes, 0)
  t.equal(store.maps.keys, 0)
  second()
  t.equal(store.bytes, 0)
})
