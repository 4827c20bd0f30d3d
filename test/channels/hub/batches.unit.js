// Windows of batched channels: what the subscribers of a hub get, and when.

import t from 'tap'
import { filterSize } from '../../../src/channels/hub/channel.js'
import { batchOptions } from '../../../src/channels/hub/window.js'
import { Filter } from '../../../src/clients/protocol/filter.js'
import { noBatchCounts } from '../../../src/metrics/batch-stats.js'
import { add } from '../../../src/metrics/merge.js'
import { until } from '../../kit/wait.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const EPOCH = 'abcd'
const OPTIONS = {
  namespace: 'n',
  maxSize: 0,
  maxDelay: 50,
  maxBytes: 1_000_000,
  latest: false,
  tag: '',
}

/** A hub with batches, and a subscriber at offset 0 of the channel x. */
function start(options = {}, /** @type {any} */ { wants = POSITIONED, ...more } = {}) {
  const rig = startHub({ batch: Object.freeze({ ...OPTIONS, ...options }) })
  let offset = 0
  const join = ({ at = offset, received = null, binary = false, ...subscription } = more) => {
    const session = rig.session({ binary })
    rig.subscribe(session, 'x', wants, { ...subscription, received })
    rig.calls.at(-1)?.done?.(null, answer(at, EPOCH))
    session.got = []
    return session
  }
  const publish = (data = `{"n":${offset + 1}}`, rest = {}) =>
    rig.publish('x', data, { offset: ++offset, epoch: EPOCH, ...rest })
  return {
    ...rig,
    rig,
    join,
    publish,
    channel: () => rig.hub.channels.get('x'),
    stats: () => rig.hub.batches.stats.drain(),
  }
}

const offsetsOf = session => session.got.map(({ pub }) => pub?.offset)

t.test('a window ends with its delay, counted from its first item', async t => {
  const rig = start()
  const session = rig.join()
  rig.publish()
  rig.rig.pass(40)
  rig.publish()
  t.same(offsetsOf(session), [])
  t.equal(rig.hub.batches.held, 1)
  rig.rig.pass(10)
  t.same(offsetsOf(session), [1, 2])
  t.same(rig.frames, [2], 'one message')
  t.equal(rig.hub.batches.held, 0, 'an idle window holds nothing')
  rig.publish()
  rig.rig.pass(49)
  t.same(offsetsOf(session), [1, 2], 'the next window has its own delay')
  rig.rig.pass(1)
  t.same(offsetsOf(session), [1, 2, 3])
  t.equal(rig.hub.delivered, 3)
  t.match(rig.stats(), { items: 3, flushes: { delay: 2 } })
})

t.test('a window ends with its size, and with its bytes', async t => {
  const sized = start({ maxSize: 3 })
  const session = sized.join()
  for (let n = 0; n < 7; n++) sized.publish()
  t.same(offsetsOf(session), [1, 2, 3, 4, 5, 6])
  sized.rig.pass(50)
  t.same(offsetsOf(session), [1, 2, 3, 4, 5, 6, 7])
  t.match(sized.stats(), { flushes: { size: 2, delay: 1 } })

  const large = start({ maxBytes: 5000 })
  const reader = large.join()
  large.publish(JSON.stringify('x'.repeat(3000)))
  t.same(offsetsOf(reader), [])
  large.publish(JSON.stringify('x'.repeat(3000)))
  t.same(offsetsOf(reader), [1, 2])
  t.match(large.stats(), { flushes: { bytes: 1 } })
})

t.test('options: a size alone has a delay of 1 s; bytes leave room in the queue of a client', async t => {
  const options = { batch_max_size: 0, batch_max_delay: 0, batch_max_bytes: 1000, batch_flush_latest: false }
  t.equal(batchOptions('', options, 5000), null)
  t.match(batchOptions('', { ...options, batch_max_size: 5 }, 5000), { maxDelay: 1000, maxBytes: 1000 })
  t.match(batchOptions('', { ...options, batch_max_delay: 5 }, 1500), { maxDelay: 5, maxBytes: 750 })
})

t.test('a payload is kept although the memory of the broker changes', async t => {
  const rig = start()
  const session = rig.join()
  const data = Buffer.from('{"n":1}')
  rig.hub.publication('x', {
    data,
    offset: 1,
    epoch: EPOCH,
    info: '',
    tags: null,
    version: 0n,
    json: true,
    delta: true,
  })
  data.fill(0)
  rig.rig.pass(50)
  t.same(session.got[0].pub.data, { n: 1 })
})

t.test('a payload that waits long keeps no other memory from being freed', async t => {
  const rig = start({ maxDelay: 1000 })
  rig.join()
  rig.publish()
  const [{ publication }] = rig.channel().window.items.values()
  t.equal(publication.data.buffer.byteLength, publication.data.length)
})

t.test('joins and leaves stay in their place', async t => {
  const rig = start({}, { events: true })
  const session = rig.join()
  const info = '{"user":"u","client":"c"}'
  rig.publish()
  rig.hub.presence('x', info, true)
  rig.publish()
  rig.hub.presence('x', info, false)
  rig.rig.pass(50)
  t.same(
    session.got.map(({ pub, join, leave }) => pub?.offset ?? (join ? 'join' : leave ? 'leave' : '?')),
    [1, 'join', 2, 'leave'],
  )
})

t.test('only the newest publication, in latest mode; its position is that of all before', async t => {
  const rig = start({ latest: true })
  const session = rig.join()
  for (let n = 0; n < 5; n++) rig.publish()
  rig.rig.pass(50)
  t.same(offsetsOf(session), [5])
  t.same(session.lost, [], 'no gap')
  rig.publish()
  rig.rig.pass(50)
  t.same(offsetsOf(session), [5, 6])
  t.same(session.lost, [])
  t.match(rig.stats(), { items: 2, conflated: { n: 4 } })
})

t.test('the newest publication of each value of a tag; those without the tag are all kept', async t => {
  const rig = start({ latest: true, tag: 'key' })
  const session = rig.join()
  for (const key of ['a', 'b', 'a', null, 'c', 'b', null, 'a'])
    rig.publish(undefined, { tags: key === null ? { other: 'a' } : { key } })
  rig.rig.pass(50)
  t.same(offsetsOf(session), [4, 5, 6, 7, 8], 'ascending')
  t.match(rig.stats(), { items: 5, conflated: { n: 3 } })
})

t.test('a size counts publications that newer ones have replaced', async t => {
  const rig = start({ latest: true, maxSize: 4 })
  const session = rig.join()
  for (let n = 0; n < 8; n++) rig.publish()
  t.same(offsetsOf(session), [4, 8])
})

t.test(
  'conflation of 1,000 updates a second of 10 keys: the newest of each, at most 10 windows a second',
  async t => {
    const rig = start({ latest: true, tag: 'key', maxDelay: 100 })
    const session = rig.join()
    const newest = new Map()
    for (let n = 1; n <= 3000; n++) {
      const key = `${(n * 7) % 10}`
      newest.set(key, n)
      rig.publish(`{"n":${n},"key":"${key}"}`, { tags: { key } })
      rig.rig.pass(1)
    }
    rig.rig.pass(100)
    const got = new Map(session.got.map(({ pub }) => [pub.data.key, pub.data.n]))
    t.same(got, newest)
    const { flushes, conflated } = rig.stats()
    t.ok(flushes.delay <= 30, `${flushes.delay} windows in 3 s`)
    t.equal(session.got.length + conflated.n, 3000, 'everything else is counted')
  },
)

t.test('who joins inside a window gets what comes after its reply, and nothing twice', async t => {
  const rig = start()
  const first = rig.join()
  rig.publish()
  rig.publish()
  const second = rig.join()
  rig.publish()
  const third = rig.join()
  const channel = rig.channel()
  t.equal(channel.sentTo(first.joined.get('x').cohort), 0)
  t.equal(channel.sentTo(second.joined.get('x').cohort), 2)
  t.equal(channel.sentTo(third.joined.get('x').cohort), 3)
  rig.rig.pass(50)
  t.same([first, second, third].map(offsetsOf), [[1, 2, 3], [3], []])
  t.same(
    [first, second, third].map(session => session.topics.size),
    [1, 1, 1],
  )
  t.equal(first.joined.get('x').cohort, third.joined.get('x').cohort, 'one cohort from now on')
  t.equal(first.joined.get('x').cohort.count, 3)
  t.equal(channel.sentTo(first.joined.get('x').cohort), 3)
  rig.publish()
  rig.rig.pass(50)
  t.same([first, second, third].map(offsetsOf), [[1, 2, 3, 4], [3, 4], [4]])
})

t.test('who joins and leaves inside a window gets nothing; the last one takes the window along', async t => {
  const rig = start()
  const first = rig.join()
  rig.publish()
  const second = rig.join()
  rig.publish()
  rig.rig.unsubscribe(second, 'x')
  rig.rig.unsubscribe(first, 'x')
  t.equal(rig.hub.batches.held, 0)
  t.equal(rig.hub.channels.size, 0)
  rig.rig.pass(50)
  t.same([first.got, second.got], [[], []])
  t.equal(rig.hub.subscriptions, 0)
})

t.test('a lost position: first what was held, then the notice', async t => {
  const rig = start()
  const session = rig.join()
  let before = -1
  const { positionLost } = session
  session.positionLost = name => {
    before = session.got.length
    positionLost(name)
  }
  rig.publish()
  rig.rig.publish('x', '{}', { offset: 7, epoch: EPOCH })
  t.equal(before, 1)
  t.same(session.lost, ['x'])
})

t.test('a duplicate of the broker is held once', async t => {
  const rig = start()
  const session = rig.join()
  rig.publish()
  rig.rig.publish('x', '{"n":1}', { offset: 1, epoch: EPOCH })
  rig.rig.pass(50)
  t.same(offsetsOf(session), [1])
})

t.test('filters: each member gets what it wants, conflation leaves older ones to them', async t => {
  const rig = start({ latest: true })
  const all = rig.join()
  const some = rig.join({ filter: { key: 'k', cmp: 'eq', val: 'a' } })
  rig.publish(undefined, { tags: { k: 'a' } })
  rig.publish(undefined, { tags: { k: 'b' } })
  rig.rig.pass(50)
  t.same(offsetsOf(some), [1])
  t.same(offsetsOf(all), [1, 2], 'filters from before a reload')
})

t.test('a filter that was under way at the reload counts within its first batch, too', async t => {
  const rig = start({ latest: true })
  rig.join()
  rig.publish()
  const some = rig.join({ filter: { key: 'k', cmp: 'eq', val: 'a' } })
  rig.publish(undefined, { tags: { k: 'a' } })
  rig.publish(undefined, { tags: { k: 'b' } })
  rig.rig.pass(50)
  t.same(offsetsOf(some), [2])
})

t.test('a filter counts once, whenever its clients have joined', async t => {
  const rig = start()
  const filter = { key: 'k', cmp: 'eq', val: 'a' }
  const first = rig.join({ filter })
  for (let n = 0; n < 3; n++) {
    rig.publish()
    rig.join({ filter })
  }
  const other = new Filter({ ...filter, val: 'b' })
  const may = limit => rig.hub.mayFilter(rig.channel(), first.codec, other, limit)
  const both = filterSize(new Filter(filter)) + filterSize(other)
  t.same([may(both), may(both - 1)], [true, false])
})

t.test('conflated publications are counted for a namespace of any name', async t => {
  for (const namespace of ['constructor', '__proto__']) {
    const rig = start({ latest: true, namespace })
    rig.join()
    rig.publish()
    rig.publish()
    const sum = noBatchCounts()
    add(sum, JSON.parse(JSON.stringify(rig.stats())))
    t.same(Object.entries(sum.conflated), [[namespace, 1]])
  }
})

t.test('payloads that a codec cannot carry: what came before is sent', async t => {
  const rig = start()
  const json = rig.join()
  const binary = rig.join({ binary: true })
  const late = { offset: 2, json: false }
  rig.publish()
  rig.publish('no json', late)
  rig.publish()
  rig.rig.pass(50)
  t.same(offsetsOf(json), [1])
  t.ok(json.refused)
  t.notOk(binary.refused)
  t.equal(binary.got.length, 3)
})

t.test('deltas: who joins inside a batch that disconnects all others is told everything', async t => {
  const rig = start({}, { delta: true })
  const first = rig.join()
  first.inappropriateProtocol = () => rig.rig.unsubscribe(first, 'x')
  rig.join({ delta: false, events: true })
  rig.publish('no json', { json: false })
  const session = rig.join()
  rig.publish()
  rig.hub.presence('x', '{"user":"u","client":"c"}', true)
  rig.publish()
  rig.rig.pass(50)
  rig.publish()
  rig.rig.pass(50)
  t.same(offsetsOf(session), [2, 3, 4])
  t.ok(
    session.got.every(({ pub }) => typeof pub.data === 'string'),
    'as negotiated',
  )
  session.inappropriateProtocol = () => rig.rig.unsubscribe(session, 'x')
  rig.publish('no json', { json: false })
  rig.rig.pass(50)
  t.equal(rig.channel().deltas, null)
})

t.test('a reload with other options: what was held is sent, and the new ones count', async t => {
  const rig = start()
  const session = rig.join()
  rig.publish()
  rig.rig.reload({ ...OPTIONS })
  t.same(offsetsOf(session), [], 'the same options change nothing')
  rig.rig.reload({ ...OPTIONS, maxDelay: 500 })
  t.same(offsetsOf(session), [1])
  rig.publish()
  rig.rig.pass(499)
  t.same(offsetsOf(session), [1])
  rig.rig.pass(1)
  t.same(offsetsOf(session), [1, 2])
  rig.publish()
  rig.rig.reload(null)
  t.same(offsetsOf(session), [1, 2, 3])
  rig.publish()
  t.same(offsetsOf(session), [1, 2, 3, 4], 'at once')
})

t.test('many windows that are due together are flushed in slices, all of them', async t => {
  const rig = startHub({ batch: Object.freeze({ ...OPTIONS }) })
  const session = rig.session()
  for (let n = 0; n < 500; n++) {
    rig.subscribe(session, `c${n}`, PLAIN)
    rig.calls.at(-1).done(null, answer())
  }
  session.got = []
  for (let n = 0; n < 500; n++) rig.publish(`c${n}`, '{}')
  t.equal(rig.hub.batches.held, 500)
  rig.pass(50)
  await until(() => rig.hub.batches.held === 0)
  t.equal(session.got.length, 500)
})

t.test('more subscribers than a window has room for: it is flushed first', async t => {
  const rig = start()
  rig.join()
  rig.publish()
  for (let n = 0; n < 64; n++) {
    rig.join()
    rig.publish()
  }
  t.equal(rig.frames.length, 0)
  rig.join()
  t.ok(rig.frames.length > 0)
  t.match(rig.stats(), { flushes: { subscribe: 1 } })
})
