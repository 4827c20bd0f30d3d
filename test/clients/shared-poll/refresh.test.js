// Rounds: what the backend is asked, and what clients get from good, late and broken answers.

import t from 'tap'
import { json } from '../../backends/hooks/backend.js'
import { until } from '../../kit/wait.js'
import { RefreshBackend } from './refresh-backend.js'
import { namespace, newChannel, Poller, startPolls } from './rig.js'

/** @import { Round } from './refresh-backend.js' */

/** Of the proxy with a short timeout, bytes. */
const LARGEST = 20_000

const backend = await RefreshBackend.start(t)
const gateway = await startPolls(
  t,
  { endpoint: backend.url },
  [
    namespace('poll'),
    namespace('pollvl', { mode: 'versionless' }),
    namespace('slow', { refresh_interval: '1h' }),
    namespace('pairs', { refresh_batch_size: 2 }),
    namespace('short', { proxy_name: 'short' }),
    namespace('delta', {}, { allowed_delta_types: ['fossil'] }),
    namespace('deltavl', { mode: 'versionless' }, { allowed_delta_types: ['fossil'] }),
    namespace('soon', { mode: 'versionless', channel_shutdown_delay: '0s' }),
    namespace('lasting', { mode: 'versionless', channel_shutdown_delay: '1h' }),
  ],
  {
    proxies: [
      {
        name: 'short',
        endpoint: backend.url,
        timeout: '200ms',
        max_response_size: LARGEST,
        breaker: { failures: 0 },
      },
    ],
  },
)

/** @param {any} t @param {string} channel @param {object} [options] */
const open = (t, channel, options) => Poller.open(t, gateway, channel, options)

const keysOf = list => list.map(({ key }) => key)

t.test('a request has the channel, the keys and their versions', async t => {
  for (const name of ['poll', 'pollvl']) {
    const poller = await open(t, newChannel(name))
    backend.put(poller.channel, { 'ключ 🎈': { data: 1, version: 7 } })
    await poller.track({ 'ключ 🎈': 0 })
    await poller.next()
    const [first] = backend.of(poller.channel)
    t.match(first, { path: '/refresh', channel: poller.channel })
    t.equal(first.items.length, 1)
    t.equal(first.items[0].version ?? 0, 0, 'nothing is known')
    const { items } = await backend.next(poller.channel, 2)
    t.strictSame(items, [{ key: 'ключ 🎈', version: name === 'poll' ? 7 : 0 }], 'versionless: always 0')
  }
})

t.test('a new key is asked for at once', async t => {
  const poller = await open(t, newChannel('slow'))
  backend.put(poller.channel, { a: { data: 1, version: 1 }, b: { data: 2, version: 1 } })
  await poller.track({ a: 0, b: 0 })
  t.same(keysOf([await poller.next(), await poller.next()]).sort(), ['a', 'b'])
  const second = await open(t, poller.channel)
  await second.track({ a: 0 })
  t.match(await second.next(), { key: 'a', data: 1, version: 1 }, 'for a later client too')
  t.match(backend.of(poller.channel, 'a').at(-1)?.items[0].version ?? 0, 0)
  const old = await open(t, poller.channel)
  backend.put(poller.channel, { end: { data: 'end', version: 1 } })
  await old.track({ a: 1 })
  await old.track({ end: 0 })
  t.same(keysOf(await old.until('end')), ['end'], 'an up-to-date client gets nothing')
})

t.test('keys are asked for in batches, once in each cycle', async t => {
  const poller = await open(t, newChannel('pairs'))
  const keys = ['d', 'b', 'e', 'a', 'c']
  backend.put(poller.channel, Object.fromEntries(keys.map(key => [key, { data: key, version: 1 }])))
  await poller.track(Object.fromEntries(keys.map(key => [key, 0])))
  const pubs = []
  for (const _ of keys) pubs.push(await poller.next())
  t.same(keysOf(pubs).sort(), keys.toSorted())
  // A whole cycle begins after the rounds for the new keys.
  await backend.next(poller.channel)
  await backend.next(poller.channel, 5)
  const rounds = backend.of(poller.channel).map(({ items }) => keysOf(items))
  t.ok(rounds.every(({ length }) => length <= 2))
  t.same(rounds.slice(-3).flat().sort(), keys.toSorted())
})

t.test('versions decide what is sent', async t => {
  const channel = newChannel()
  const [ahead, behind] = [await open(t, channel), await open(t, channel)]
  backend.put(channel, { a: { data: 'five', version: 5 } })
  await ahead.track({ a: 9 })
  await behind.track({ a: 4 })
  t.match(await behind.next(), { key: 'a', data: 'five', version: 5 })
  backend.put(channel, { a: { data: 'three', version: 3 } })
  await backend.next(channel, 2)
  backend.put(channel, { a: { data: 'ten', version: 10 } })
  for (const poller of [ahead, behind]) t.match(await poller.next(), { key: 'a', data: 'ten', version: 10 })
  backend.put(channel, { a: { data: 'large', version: Number.MAX_SAFE_INTEGER } })
  t.match(await ahead.next(), { data: 'large', version: Number.MAX_SAFE_INTEGER })
})

t.test('all JSON values arrive unchanged', async t => {
  for (const name of ['poll', 'pollvl']) {
    const poller = await open(t, newChannel(name))
    const values = [0, '', false, null, [], {}, 'ü🎈\u2028', [1, { a: [null] }], 'x'.repeat(100_000)]
    backend.put(poller.channel, Object.fromEntries(values.map((data, n) => [`k${n}`, { data, version: 1 }])))
    await poller.track(Object.fromEntries(values.map((_, n) => [`k${n}`, 0])))
    const got = new Map()
    while (got.size < values.length) {
      const { key, data } = await poller.next()
      got.set(key, data)
    }
    for (const [n, data] of values.entries()) t.strictSame(got.get(`k${n}`), data)
  }
})

t.test('versionless: only changed data is sent', async t => {
  const channel = newChannel('pollvl')
  const poller = await open(t, channel)
  backend.put(channel, { a: { data: { v: 'A' } }, end: { data: 0 } })
  await poller.track({ a: 0, end: 0 })
  const versions = []
  for (const v of ['A', 'B', 'A']) {
    if (v !== 'A' || versions.length > 0) backend.put(channel, { a: { data: { v } } })
    const pub = (await poller.until('a')).at(-1)
    t.strictSame(pub.data, { v })
    versions.push(pub.version)
  }
  t.same(
    versions,
    versions.toSorted((a, b) => a - b),
  )
  t.equal(new Set(versions).size, 3)
  await backend.next(channel, 3)
  backend.put(channel, { end: { data: 1 } })
  t.notOk(keysOf(await poller.until('end')).includes('a'), 'equal data is not sent again')
  backend.put(channel, { a: { data: { v: 'C' }, version: 1 } })
  t.ok((await poller.next()).version > Math.max(...versions), 'versions of the backend do not count')
})

t.test('versionless: one epoch for all subscribers of a channel', async t => {
  const channel = newChannel('lasting')
  const all = await Promise.all(Array.from({ length: 3 }, () => open(t, channel)))
  t.equal(new Set(all.map(({ result }) => result.epoch)).size, 1)
  t.not((await open(t, newChannel('lasting'))).result.epoch, all[0].result.epoch)
  t.equal((await open(t, newChannel('poll'))).result.epoch, undefined, 'versioned: none at first')
})

t.test('versioned: keys that the backend leaves out are unchanged', async t => {
  const channel = newChannel()
  const poller = await open(t, channel)
  backend.put(channel, { a: { data: 1, version: 1 }, b: { data: 1, version: 1 } })
  await poller.track({ a: 0, b: 0 })
  await Promise.all([poller.next(), poller.next()])
  const items = [{ key: 'b', data: 2, version: 2 }]
  backend.answers.set(channel, () => json({ result: { items } }))
  t.match(await poller.next(), { key: 'b', version: 2 })
  await backend.next(channel, 5)
  items[0] = { key: 'b', data: 3, version: 3 }
  t.match(await poller.next(), { key: 'b', version: 3 })
  t.ok((await backend.next(channel)).items.some(({ key, version }) => key === 'a' && version === 1))
})

t.test('a removed key is sent once and no longer tracked', async t => {
  for (const name of ['poll', 'pollvl']) {
    const channel = newChannel(name)
    const all = [await open(t, channel), await open(t, channel)]
    backend.put(channel, { a: { data: 1, version: 1 }, end: { data: 0, version: 1 } })
    for (const poller of all) {
      await poller.track({ a: 0, end: 0 })
      t.same(keysOf([await poller.next(), await poller.next()]).sort(), ['a', 'end'])
    }
    backend.put(channel, { a: { version: 2, removed: true } })
    for (const poller of all) {
      const pub = await poller.next()
      t.match(pub, { key: 'a', removed: true })
      t.equal(pub.data, undefined)
    }
    const { items } = await backend.next(channel, 2)
    t.same(keysOf(items), ['end'])
    backend.put(channel, { a: { data: 'again', version: 1 } })
    await all[0].track({ a: 0 })
    t.match(await all[0].next(), { key: 'a', data: 'again' }, 'it can be tracked again')
    backend.put(channel, { end: { data: 1, version: 2 } })
    t.same(keysOf(await all[1].until('end')), ['end'], 'by each client')
  }
})

t.test('a new epoch ends all subscriptions and forgets the versions', async t => {
  const channel = newChannel()
  backend.epochs.set(channel, 'first')
  backend.put(channel, { a: { data: 'old', version: 50 } })
  const all = [await open(t, channel), await open(t, channel)]
  for (const poller of all) {
    await poller.track({ a: 0 })
    await poller.client.next(message => message.push)
  }
  // The first epoch of a channel may end them too.
  for (const poller of all) {
    await poller.client.call('unsubscribe', { channel })
    await poller.subscribe()
    t.equal(poller.result.epoch, 'first')
    await poller.track({ a: 0 })
    t.match((await poller.until('a', 50)).at(-1), { data: 'old' })
  }
  const other = await open(t, newChannel())
  backend.epochs.set(channel, 'second')
  backend.put(channel, { a: { data: 'new', version: 1 } })
  for (const poller of all) {
    const { unsubscribe } = await poller.client.push('unsubscribe')
    t.match(unsubscribe, { code: 2500 })
    await poller.subscribe()
    t.equal(poller.result.epoch, 'second')
    await poller.track({ a: 0 })
    t.match((await poller.until('a', 1)).at(-1), { data: 'new' })
  }
  backend.put(other.channel, { a: { data: 1, version: 1 } })
  await other.track({ a: 0 })
  t.match(await other.next(), { key: 'a' }, 'channels of other subscribers stay')
})

/**
 * A backend that once answers something else: the round is skipped.
 * @param {any} t @param {(round: Round) => any} answer
 */
async function skips(t, answer) {
  const channel = newChannel('short')
  const [poller, other] = [await open(t, channel), await open(t, newChannel('short'))]
  for (const each of [poller, other]) {
    backend.put(each.channel, { a: { data: 1, version: 1 }, b: { data: 1, version: 1 } })
    await each.track({ a: 0, b: 0 })
    await Promise.all([each.next(), each.next()])
  }
  let calls = 0
  backend.answers.set(channel, round => (calls++ === 0 ? answer(round) : undefined))
  await backend.next(channel)
  backend.put(other.channel, { a: { data: 2, version: 2 } })
  t.match(await other.next(), { key: 'a', version: 2 }, 'other channels are not disturbed')
  await backend.next(channel)
  backend.put(channel, { a: { data: 2, version: 2 } })
  t.match(await poller.until('a'), [{ key: 'a', data: 2, version: 2 }], 'the next round counts')
  t.equal((await poller.track({ a: 2 })).expires, true, 'the subscription lives')
}

const item = { key: 'a', data: 'wrong', version: 2 }
/** Answers that are no results. @type {Record<string, (round: Round) => any>} */
const UNUSABLE = {
  'an error': () => json({ error: { code: 1000, message: 'closed today' } }),
  'an error beside a result': () => json({ error: { code: 1 }, result: { items: [item] } }),
  'status 500': () => ({ ...json({ result: { items: [item] } }), status: 500 }),
  'no JSON': () => ({ body: '<html>' }),
  'a cut answer': () => ({ body: '{"result":{"items":[{"key":"a","da' }),
  nothing: () => ({ body: '' }),
  null: () => ({ body: 'null' }),
  'a list': () => ({ body: '[]' }),
  'no result': () => ({ body: '{}' }),
  'items that are no list': () => json({ result: { items: { a: 1 } } }),
  'an item that is no object': () => json({ result: { items: [item, 7] } }),
  'a key that is no text': () => json({ result: { items: [item, { key: 7 }] } }),
  'a version that is no number': () => json({ result: { items: [{ ...item, version: 'new' }] } }),
  'a negative version': () => json({ result: { items: [{ ...item, version: -2 }] } }),
  'a fraction as version': () => json({ result: { items: [{ ...item, version: 2.5 }] } }),
  'an epoch that is no text': () => json({ result: { items: [item], epoch: 7 } }),
  'too much': () => json({ result: { items: [{ ...item, data: 'x'.repeat(LARGEST) }] } }),
  'no answer before the timeout': () => null,
}
t.test('unusable answers skip the round', async t => {
  t.jobs = 8
  for (const [what, answer] of Object.entries(UNUSABLE))
    t.test(what, { buffered: true }, t => skips(t, answer))
  t.end()
})

t.test('a client without data gets it in the round after a failed one', async t => {
  for (const name of ['poll', 'pollvl']) {
    const channel = newChannel(name)
    const [first, second] = [await open(t, channel), await open(t, channel)]
    backend.put(channel, { a: { data: 1, version: 1 } })
    await first.track({ a: 0 })
    await first.next()
    let failures = 2
    backend.answers.set(channel, () => (failures-- > 0 ? { status: 500 } : undefined))
    await second.track({ a: 0 })
    t.match(await second.next(), { key: 'a', data: 1 })
  }
})

t.test('items without data', async t => {
  for (const name of ['poll', 'pollvl']) {
    const channel = newChannel(name)
    const poller = await open(t, channel)
    backend.put(channel, { a: { data: 1, version: 1 } })
    await poller.track({ a: 0 })
    await poller.next()
    backend.put(channel, { a: { version: 1, data: undefined } })
    await backend.next(channel, 2)
    backend.put(channel, { a: { version: 2, data: undefined }, b: { data: 'b', version: 1 } })
    await backend.next(channel, 2)
    await poller.track({ b: 0 })
    t.match((await poller.until('b')).at(-1), { data: 'b' }, 'the connection lives')
    backend.put(channel, { a: { data: 3, version: 3 } })
    t.match((await poller.until('a')).at(-1), { data: 3 })
  }
})

t.test('a late answer holds up nobody else', async t => {
  const [late, other] = [await open(t, newChannel()), await open(t, newChannel())]
  /** @type {((value?: any) => void)[]} */
  const held = []
  backend.answers.set(late.channel, () => new Promise(resolve => held.push(resolve)))
  backend.put(late.channel, { a: { data: 'late', version: 1 } })
  await late.track({ a: 0 })
  await until(() => backend.of(late.channel).length === 1)
  for (let version = 1; version < 5; version++) {
    backend.put(other.channel, { a: { data: version, version } })
    if (version === 1) await other.track({ a: 0 })
    t.match(await other.next(), { version })
  }
  t.ok(backend.of(late.channel).length <= 2, 'requests for new keys, and one of a cycle')
  backend.answers.delete(late.channel)
  for (const release of held) release()
  t.match(await late.next(), { key: 'a', data: 'late' })
})

t.test('answers with too many items', async t => {
  const channel = newChannel()
  const poller = await open(t, channel)
  backend.put(channel, { end: { data: 0, version: 1 } })
  await poller.track({ a: 0, end: 0 })
  await poller.until('end')
  const one = (data, version) => ({ key: 'a', data, version })
  /** @type {any[]} */
  let items = [one('older', 2), one('newest', 9), one('old', 5), { key: 'b', data: 'x', version: 1 }]
  backend.answers.set(channel, () => json({ result: { items } }))
  const pubs = await poller.until('a', 9)
  t.ok(pubs.every(({ key }) => key === 'a'))
  t.match(pubs.at(-1), { data: 'newest' })
  const many = Array.from({ length: 5000 }, (_, n) => ({ key: `other${n}`, data: n, version: 1 }))
  items = [...many, one('then', 10)]
  t.match(await poller.next(), { key: 'a', data: 'then' })
  items = [
    { key: 'b', removed: true },
    { key: 'end', data: 1, version: 2 },
  ]
  t.same(keysOf(await poller.until('end')), ['end'], 'keys that nobody asked for are left out')
})

t.test('deltas', async t => {
  const text = 'what stays the same in each value, '.repeat(9)
  for (const name of ['delta', 'deltavl']) {
    const channel = newChannel(name)
    const put = n =>
      backend.put(channel, {
        a: { data: { text, n }, version: n },
        b: { data: { text, n, b: true }, version: n },
      })
    const [poller, plain] = [await open(t, channel, { request: { delta: 'fossil' } }), await open(t, channel)]
    t.equal(poller.result.delta, true)
    t.notOk(plain.result.delta)
    put(1)
    for (const each of [poller, plain]) {
      await each.track({ a: 0, b: 0 })
      for (const pub of [await each.next(), await each.next()]) t.notOk(pub.delta, 'first in full')
    }
    put(2)
    for (const pub of [await poller.next(), await poller.next()]) {
      t.equal(pub.delta, true)
      t.ok(pub.data.length < 60, pub.data)
    }
    t.strictSame((await plain.until('a')).at(-1).data, { text, n: 2 })
    await poller.untrack(['a'])
    await poller.track({ a: 0 })
    const again = (await poller.until('a')).at(-1)
    t.notOk(again.delta, 'a key tracked again comes in full')
    t.strictSame(JSON.parse(again.data), { text, n: 2 })
  }
  const refused = await open(t, newChannel(), { request: { delta: 'fossil' } })
  t.notOk(refused.result.delta, 'where the namespace allows them')
})

t.test('a channel without clients is no longer polled', async t => {
  const [poller, witness] = [await open(t, newChannel('soon')), await open(t, newChannel())]
  const { channel } = poller
  for (const each of [poller, witness]) {
    backend.put(each.channel, { a: { data: 1, version: 1 } })
    await each.track({ a: 0 })
    await each.next()
  }
  const { epoch } = poller.result
  await poller.client.call('unsubscribe', { channel })
  await backend.next(witness.channel)
  const before = backend.of(channel).length
  await backend.next(witness.channel, 5)
  t.equal(backend.of(channel).length, before)
  await poller.subscribe()
  t.not(poller.result.epoch, epoch, 'its versions are gone')
  await poller.track({ a: 0 })
  t.match(await poller.next(), { data: 1 })
})

t.test('a client that comes back before the shutdown finds the versions', async t => {
  const poller = await open(t, newChannel('lasting'))
  const { channel } = poller
  backend.put(channel, { a: { data: 1 }, end: { data: 0 } })
  await poller.track({ a: 0 })
  const { version } = await poller.next()
  const { epoch } = poller.result
  await poller.client.call('unsubscribe', { channel })
  await poller.subscribe()
  t.equal(poller.result.epoch, epoch)
  backend.put(channel, { a: { data: 2 } })
  await poller.track({ a: version })
  t.match(await poller.next(), { key: 'a', data: 2 })
})

t.test('an empty round asks nobody', async t => {
  const [poller, witness] = [await open(t, newChannel('lasting')), await open(t, newChannel())]
  await poller.track({ a: 0 })
  await poller.untrack(['a'])
  await witness.track({ a: 0 })
  await backend.next(witness.channel)
  const before = backend.of(poller.channel).length
  await backend.next(witness.channel, 5)
  t.equal(backend.of(poller.channel).length, before)
})
