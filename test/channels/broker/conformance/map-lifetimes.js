// Keyed state: expiry of keys, streams and epochs, keys of dead workers, figures.

import { until } from '../../../kit/wait.js'
import { EPHEMERAL, entries, keysOf, PERSISTENT, page, put, RULES, remove, values } from './map-calls.js'
import { HOUR, offsets, texts, upTo } from './peer.js'

export function mapLifetimes(test) {
  test('an expired key is removed for all subscribers', 2, async (t, rig, a, b) => {
    await b.subscribe('m')
    const rules = { ...RULES, keyTtl: 200_000 }
    const tags = { room: '1' }
    const { epoch } = await put(a, 'm', 'old', '1', { tags }, rules)
    await put(a, 'm', 'renewed', '1', {}, rules)
    await put(a, 'm', 'refreshed', '1', {}, rules)
    await put(a, 'm', 'suppressed', '1', {}, rules)
    await put(a, 'm', 'unlimited', '1', {}, { ...rules, keyTtl: 0 })
    await rig.pass(120_000)
    await put(a, 'm', 'renewed', '2', {}, rules)
    await put(a, 'm', 'refreshed', '2', { keyMode: 'if_new', refresh: true }, rules)
    await put(a, 'm', 'suppressed', '2', { keyMode: 'if_new' }, rules)
    await b.waitForEvents(6)
    await rig.pass(120_000)
    t.same(
      await values(b, 'm', rules),
      { refreshed: '1', renewed: '2', unlimited: '1' },
      'for readers at once',
    )
    const gone = (await b.waitForEvents(8)).slice(6)
    t.match(gone, [
      { epoch, offset: 7, json: true, keyed: { removed: true, append: false } },
      { epoch, offset: 8, keyed: { removed: true } },
    ])
    t.same(keysOf(gone).sort(), ['old', 'suppressed'])
    t.same({ ...gone.find(({ keyed }) => keyed.key === 'old').tags }, tags)
    t.same(texts(gone), ['', ''])
    t.same(keysOf((await a.history('m', { sinceOffset: 6 })).publications), keysOf(gone))
    t.match(await put(a, 'm', 'old', '2', { keyMode: 'if_new' }, rules), { offset: 9, suppressed: '' })
    t.same(await a.broker.maps.stats('m'), { keys: 4 })
  })

  test('accepted writes and expired keys are counted once', 2, async (t, rig, a, b) => {
    await b.subscribe('m')
    const rules = { ...RULES, keyTtl: 100_000 }
    await put(a, 'm', 'k', '1', {}, rules)
    await put(a, 'm', 'l', '1', { idempotencyKey: 'i' }, rules)
    await put(b, 'm', 'l', '1', { idempotencyKey: 'i' }, rules)
    await put(b, 'm', 'l', '2', { keyMode: 'if_new' }, rules)
    await put(b, 'm', 'n', '1', {}, rules)
    await put(b, 'm', 'n', '2', {}, rules)
    await put(b, 'm', 'unlimited', '1', {}, { ...rules, keyTtl: 0 })
    await remove(b, 'm', 'k', {}, rules)
    await remove(a, 'm', 'k', {}, rules)
    await rig.pass(150_000)
    // A write may find an expired key before it is removed.
    await put(a, 'm', 'l', '3', {}, rules)
    await remove(b, 'm', 'n', {}, rules)
    await b.waitForEvents(9)
    const sum = { publishes: 0, removals: 0, expiries: 0 }
    await until(() => {
      const ofHost = (rig.host ?? rig.bus.host).drain().maps.counts
      for (const counts of [ofHost, a.broker.maps.counter.drain(), b.broker.maps.counter.drain()])
        for (const name of Object.keys(sum)) sum[name] += counts[name]
      return sum.expiries >= 2
    })
    t.same(sum, { publishes: 6, removals: 1, expiries: 2 })
  })

  test('keys of an ephemeral map expire', 2, async (t, rig, a, b) => {
    await b.subscribe('m', { position: false })
    await put(a, 'm', 'k', '1', {}, { ...EPHEMERAL, keyTtl: 100_000 })
    await rig.pass(150_000)
    t.same(await values(b, 'm', EPHEMERAL), {})
    t.match(await b.waitForEvents(2), [{}, { offset: 0, epoch: '', keyed: { key: 'k', removed: true } }])
  })

  test('the stream of a map is limited in size and lifetime; its entries stay', 1, async (t, rig, a) => {
    const rules = { ...PERSISTENT, streamSize: 5, streamTtl: 100_000 }
    for (const n of upTo(12)) await put(a, 'm', `k${n}`, String(n), {}, rules)
    const before = await a.position('m', rules.metaTtl)
    t.same(offsets((await a.history('m', {})).publications), upTo(5, 8))
    const recover = offset =>
      a.subscribe('m', { metaTtl: rules.metaTtl, recover: { offset, epoch: before.epoch, limit: 10 } })
    t.match(await recover(7), { recovered: true, offset: 12 })
    t.match(await recover(6), { recovered: false, offset: 12 })
    await rig.pass(150_000)
    t.same((await a.broker.pubsub.history('m', { limit: -1 }, rules.metaTtl)).publications, [])
    t.match(await recover(12), { recovered: true, publications: [] })
    t.equal((await entries(a, 'm', rules)).length, 12)
    await a.broker.pubsub.removeHistory('m')
    t.match(await put(a, 'm', 'k1', '13', {}, rules), { offset: 13, epoch: before.epoch })
    t.equal((await entries(a, 'm', rules)).length, 12)
  })

  test('a persistent map keeps its entries and epoch', 1, async (t, rig, a) => {
    const first = await put(a, 'm', 'k', '1', {}, PERSISTENT)
    await rig.pass(30 * HOUR)
    t.match(await page(a, 'm', { epoch: first.epoch }, PERSISTENT), { offset: 1, entries: [{ offset: 1 }] })
    t.match(await put(a, 'm', 'k', '2', {}, PERSISTENT), { offset: 2, epoch: first.epoch })
    await remove(a, 'm', 'k', {}, PERSISTENT)
    await rig.pass(30 * HOUR)
    t.match(await a.position('m', PERSISTENT.metaTtl), { offset: 3, epoch: first.epoch })
  })

  test('an unused map without entries begins a new epoch', 1, async (t, rig, a) => {
    const rules = { keyTtl: 100_000, streamSize: 10, streamTtl: 100_000, metaTtl: 200_000 }
    const first = await put(a, 'm', 'k', '1', {}, rules)
    await remove(a, 'm', 'k', {}, rules)
    await rig.pass(250_000)
    const next = await put(a, 'm', 'k', '1', {}, rules)
    t.equal(next.offset, 1)
    t.not(next.epoch, first.epoch)
  })

  test('keys owned by a dead worker are removed', 3, async (t, rig, a, b, c) => {
    await b.subscribe('m')
    await b.subscribe('e', { position: false })
    await put(a, 'm', 'owned', '1', { owned: true, tags: { n: '1' } })
    await put(a, 'm', 'not owned', '1')
    await put(a, 'm', 'taken over', '1', { owned: true })
    await put(b, 'm', 'taken over', '2', { owned: true })
    await put(a, 'm', 'given up', '1', { owned: true })
    await put(a, 'm', 'given up', '2')
    await put(a, 'm', 'removed', '1', { owned: true })
    await remove(c, 'm', 'removed')
    await put(c, 'm', 'removed', '2')
    await put(a, 'e', 'ephemeral', '1', { owned: true }, EPHEMERAL)
    const before = (await b.waitForEvents(10)).length
    rig.cut(a.broker)
    const events = (await b.waitForEvents(12)).slice(before)
    t.match(
      events.sort((x, y) => (x.channel < y.channel ? -1 : 1)),
      [
        { channel: 'e', keyed: { key: 'ephemeral', removed: true } },
        { channel: 'm', offset: 10, keyed: { key: 'owned', removed: true }, tags: { n: '1' } },
      ],
    )
    t.same(Object.keys(await values(b, 'm')), ['given up', 'not owned', 'removed', 'taken over'])
    t.same(await b.broker.maps.stats('e'), { keys: 0 })
  })
}
