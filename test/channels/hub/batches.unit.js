// Windows of batched channels: messages to the subscribers of a hub, and their timing.

import t from 'tap'
import { filterSize } from '../../../src/channels/hub/channel.js'
import { batchOptions } from '../../../src/channels/hub/window.js'
import { Filter } from '../../../src/clients/protocol/filter.js'
import { noBatchCounts } from '../../../src/metrics/batch-stats.js'
import { add } from '../../../src/metrics/merge.js'
import { makePublication } from '../../clients/protocol/publication.js'
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

t.test('a batch is flushed after its delay, counted from the first item', async t => {
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
  t.equal(rig.hub.batches.held, 0, 'an idle window has no items')
  rig.publish()
  rig.rig.pass(49)
  t.same(offsetsOf(session), [1, 2], 'the next window has its own delay')
  rig.rig.pass(1)
  t.same(offsetsOf(session), [1, 2, 3])
  t.equal(rig.hub.delivered, 3)
  t.match(rig.stats(), { items: 3, flushes: { delay: 2 } })
})

t.test('a batch is flushed at its maximum size or bytes', async t => {
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

t.test('batchOptions() returns the delay and the bytes', async t => {
  const options = { batch_max_size: 0, batch_max_delay: 0, batch_max_bytes: 1000, batch_flush_latest: false }
  t.equal(batchOptions('', options, 5000), null)
  t.match(batchOptions('', { ...options, batch_max_size: 5 }, 5000), { maxDelay: 1000, maxBytes: 1000 })
  t.match(batchOptions('', { ...options, batch_max_delay: 5 }, 1500), { maxDelay: 5, maxBytes: 750 })
})

t.test('the payload is copied', async t => {
  const rig = start()
  const session = rig.join()
  const data = Buffer.from('{"n":1}')
  rig.hub.publication('x', makePublication({ data, offset: 1, epoch: EPOCH }))
  data.fill(0)
  rig.rig.pass(50)
  t.same(session.got[0].pub.data, { n: 1 })
})

t.test('the payload of a long batch has its own memory', async t => {
  const rig = start({ maxDelay: 1000 })
  rig.join()
  rig.publish()
  const [{ publication }] = rig.channel().window.items.values()
  t.equal(publication.data.buffer.byteLength, publication.data.length)
})

t.test('conflation sends the newest publication', async t => {
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

t.test('conflation by tag sends the newest publication of each value', async t => {
  const rig = start({ latest: true, tag: 'key' })
  const session = rig.join()
  for (const key of ['a', 'b', 'a', null, 'c', 'b', null, 'a'])
    rig.publish(undefined, { tags: key === null ? { other: 'a' } : { key } })
  rig.rig.pass(50)
  t.same(offsetsOf(session), [4, 5, 6, 7, 8], 'ascending')
  t.match(rig.stats(), { items: 5, conflated: { n: 3 } })
})

t.test('the size includes conflated publications', async t => {
  const rig = start({ latest: true, maxSize: 4 })
  const session = rig.join()
  for (let n = 0; n < 8; n++) rig.publish()
  t.same(offsetsOf(session), [4, 8])
})

t.test('a subscriber that joins during a batch gets only later items, once', async t => {
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
  const topics = [first, second, third].map(session => session.topics.size)
  t.same(topics, [1, 1, 1])
  t.equal(first.joined.get('x').cohort, third.joined.get('x').cohort, 'there is one cohort from now on')
  t.equal(first.joined.get('x').cohort.count, 3)
  t.equal(channel.sentTo(first.joined.get('x').cohort), 3)
  rig.publish()
  rig.rig.pass(50)
  t.same([first, second, third].map(offsetsOf), [[1, 2, 3, 4], [3, 4], [4]])
})

t.test('the last unsubscribe removes the batch', async t => {
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

t.test('a lost position flushes the batch first', async t => {
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

t.test('filtered subscribers get older publications despite conflation', async t => {
  const rig = start({ latest: true })
  const all = rig.join()
  const some = rig.join({ filter: { key: 'k', cmp: 'eq', val: 'a' } })
  rig.publish(undefined, { tags: { k: 'a' } })
  rig.publish(undefined, { tags: { k: 'b' } })
  rig.rig.pass(50)
  t.same(offsetsOf(some), [1])
  t.same(offsetsOf(all), [1, 2], 'filters from before a reload')
})

t.test('a filter of a new subscriber applies within its first batch', async t => {
  const rig = start({ latest: true })
  rig.join()
  rig.publish()
  const some = rig.join({ filter: { key: 'k', cmp: 'eq', val: 'a' } })
  rig.publish(undefined, { tags: { k: 'a' } })
  rig.publish(undefined, { tags: { k: 'b' } })
  rig.rig.pass(50)
  t.same(offsetsOf(some), [2])
})

t.test('a filter runs once for all its subscribers', async t => {
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

t.test('conflation is counted for a namespace of any name', async t => {
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

t.test('a new delta subscriber stays subscribed when all others are disconnected', async t => {
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
  const texts = session.got.every(({ pub }) => typeof pub.data === 'string')
  t.ok(texts, 'as negotiated')
  session.inappropriateProtocol = () => rig.rig.unsubscribe(session, 'x')
  rig.publish('no json', { json: false })
  rig.rig.pass(50)
  t.equal(rig.channel().deltas, null)
})

t.test('a reload with other options flushes the batch', async t => {
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

t.test('many due batches are flushed in slices', async t => {
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

t.test('too many new subscribers flush the batch', async t => {
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
