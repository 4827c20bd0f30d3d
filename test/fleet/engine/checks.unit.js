// What a drone says about a server that duplicates, drops, reorders and cuts: each kind is counted, exactly, and as
// what it is.

import { once } from 'node:events'
import t from 'tap'
import { startNumber } from '../../../fleet/drone/engine/payload.js'
import { settingsOf, TestEngine } from './engines.js'
import { payload, ScriptedServer } from './scripted-server.js'

const none = { damaged: 0, duplicates: 0, disordered: 0, gaps: 0, lost: 0, missed: 0 }
const books = counters => Object.fromEntries(Object.keys(none).map(name => [name, counters[name]]))

/** When publishing began, for subscriptions that were there before: the `e` of payload() is later. */
const LATER = Date.now() + 600_000
const e = startNumber(LATER)
const later = (s, more) => payload('a', s, { e, ...more })

/** One connection with subscription a, which was there before anything was published. */
async function subscribed(t, settings = {}, script = {}) {
  const server = Object.assign(await ScriptedServer.start(t), script)
  const test = new TestEngine(t)
  const all = settingsOf(server.url, { connections: 1, channels: ['a'], publishFrom: LATER, ...settings })
  test.engine.apply(all)
  await test.until(({ gauges }) => gauges.open === 1)
  return { server, test, engine: test.engine, settings: all }
}

/** Publishes, and waits until so many have come. */
async function received({ server, test }, items, count = items.length) {
  const before = test.sample().counters.received
  server.publish('a', ...items)
  await test.until(({ counters }) => counters.received === before + count)
  return books(test.counters)
}

t.test('all in order: nothing to say', async t => {
  const all = await subscribed(t)
  t.same(
    await received(
      all,
      [1, 2, 3, 4, 5].map(s => later(s)),
    ),
    none,
  )
  t.equal(all.test.probe.count, 5)
})

t.test('duplicates', async t => {
  const all = await subscribed(t)
  t.same(
    await received(
      all,
      [1, 2, 2, 3, 1].map(s => later(s)),
    ),
    { ...none, duplicates: 2 },
  )
})

t.test('a second one of a publisher that had to publish again is no fault of the server', async t => {
  const all = await subscribed(t)
  t.same(await received(all, [later(1), later(1, { again: true }), later(2, { again: true })], 2), none)
})

t.test('gaps, also before the first one', async t => {
  const all = await subscribed(t)
  t.same(
    await received(
      all,
      [3, 4, 7, 8, 9, 11].map(s => later(s)),
    ),
    { ...none, gaps: 3, lost: 5 },
  )
})

t.test('late ones are taken off lost, and were out of order', async t => {
  const all = await subscribed(t)
  t.same(
    await received(
      all,
      [1, 6].map(s => later(s)),
    ),
    { ...none, gaps: 1, lost: 4 },
  )
  t.same(await received(all, [later(4)]), { ...none, gaps: 2, lost: 3, disordered: 1 }, 'the hole is two')
  t.same(await received(all, [later(4)]), { ...none, gaps: 2, lost: 3, disordered: 1, duplicates: 1 })
  t.same(await received(all, [later(5)]), { ...none, gaps: 1, lost: 2, disordered: 2, duplicates: 1 })
  t.same(
    await received(
      all,
      [2, 3].map(s => later(s)),
    ),
    { ...none, disordered: 4, duplicates: 1 },
  )
})

t.test('payloads that are not whole', async t => {
  const all = await subscribed(t)
  const whole = later(1)
  const swapped = `${whole.slice(0, 100)}${whole.slice(101)}`
  const items = [
    '{"t":17}',
    '"text"',
    whole.replace(/(.{9})"}$/, '"}'),
    swapped,
    whole.replace('yza', 'xxxyza'),
    whole,
  ]
  t.same(await received(all, items), { ...none, damaged: 5 })
  all.server.say('{"push":{"channel":"a","pub":{"data":{"t":1')
  await all.test.until(({ counters }) => counters.damaged === 6)
})

t.test('a publication of a channel that nobody asked for', async t => {
  const all = await subscribed(t)
  t.same(await received(all, [payload('b', 1)]), none)
  t.match(all.test.faults, { 'publication of another channel': 1 })
})

t.test('a subscription that came while publishing was under way takes any first one', async t => {
  const all = await subscribed(t, { publishFrom: Date.now() - 20_000 })
  t.same(
    await received(
      all,
      [17, 18, 20].map(s => payload('a', s)),
    ),
    { ...none, gaps: 1, lost: 1 },
  )
  t.same(await received(all, [payload('a', 16)]), { ...none, gaps: 1, lost: 1, disordered: 1 })
})

t.test('a publisher that starts anew begins with 1; one that was replaced is late', async t => {
  const all = await subscribed(t)
  t.same(await received(all, [later(1), later(2), later(1, { e: e + 1 })]), none)
  t.same(await received(all, [later(3, { e: e + 2 }), later(3)]), {
    ...none,
    gaps: 1,
    lost: 2,
    disordered: 1,
  })
})

t.test('away without recovery: missed, until the first one that comes', async t => {
  const all = await subscribed(t)
  await received(all, [later(1)])
  t.equal(all.engine.cut(1, 'reset'), 1)
  all.engine.apply({ ...all.settings, publishFrom: LATER - 1e6 })
  await all.test.until(({ counters }) => counters.reconnects === 1)
  t.same(
    await received(
      all,
      [5, 7].map(s => later(s)),
    ),
    { ...none, missed: 3, gaps: 1, lost: 1 },
  )
  t.match(all.test.counters, { closed: 1, recovered: 0, unrecovered: 0 })
})

t.test('recovered: what was away came with the reply, else it is lost', async t => {
  const wishes = []
  const answers = [
    { recoverable: true, epoch: 'E' },
    {
      recovered: true,
      publications: [2, 3].map(s => ({ data: JSON.parse(later(s)), offset: s + 10 })),
      offset: 11,
    },
    { recovered: true, offset: 13 },
    { offset: 99 },
    { offset: 120 },
    { recovered: true, offset: 120 },
  ]
  const subscribe = wish => {
    wishes.push(wish)
    return { subscribe: { recoverable: true, epoch: 'E', ...answers[wishes.length - 1] } }
  }
  const all = await subscribed(t, { recover: true, publishFrom: LATER }, { subscribe })
  all.engine.apply({ ...all.settings, publishFrom: LATER - 1e6 })
  all.server.say(`{"push":{"channel":"a","pub":{"data":${later(1)},"offset":11}}}`)
  await all.test.until(({ counters }) => counters.received === 1)
  const back = async (count, how) => {
    all.engine.cut(1, how)
    await all.test.until(({ counters }) => counters.reconnects === count)
  }
  await back(1, 'close')
  t.same(wishes[1], { channel: 'a', recoverable: true, recover: true, offset: 11, epoch: 'E' })
  t.same(books(all.test.counters), none)
  await back(2, 'reset')
  t.equal(wishes[2].offset, 13)
  t.same(await received(all, [later(5)]), { ...none, gaps: 1, lost: 1 }, 'it said that it was recovered')
  await back(3, 'close')
  t.same(await received(all, [later(9)]), { ...none, gaps: 1, lost: 1, missed: 3 })
  t.match(all.test.counters, { recovered: 2, unrecovered: 1, received: 5, closed: 3, ended: 0 })
  await back(4, 'reset')
  await back(5, 'reset')
  const told = await received(all, [later(13)])
  t.same(told, { ...none, gaps: 1, lost: 1, missed: 6 }, 'a later recovery does not fill what was declared')
})

t.test('what is reckoned at the end: a lost tail, and what cannot be known', async t => {
  const { deflateSync } = await import('node:zlib')
  const all = await subscribed(t, { connections: 1, channels: ['a', 'b', 'c{own}', 'd'] })
  await received(
    all,
    [1, 2, 3].map(s => later(s)),
  )
  const ledger = (channels, sequences, more) => ({
    channels,
    part: 0,
    parts: 1,
    start: e,
    sequences: deflateSync(Buffer.from(Uint32Array.from(sequences).buffer)).toString('base64'),
    ...more,
  })
  all.engine.apply({ ...all.settings, channels: ['a', 'b', 'c{own}', 'd'], publishFrom: LATER })
  t.same(all.engine.reckon([ledger('a', [3])]), { expected: 3, lost: 0, unknown: 0 })
  t.same(all.engine.reckon([ledger('a', [5])]), { expected: 5, lost: 2, unknown: 0 })
  t.same(all.engine.reckon([ledger('b', [4])]), { expected: 4, lost: 4, unknown: 0 })
  t.same(all.engine.reckon([ledger('x', [4])]), { expected: 0, lost: 0, unknown: 0 })
  t.same(all.engine.reckon([ledger('c{1..5}', [7, 9, 9], { parts: 2 })]), {
    expected: 7,
    lost: 7,
    unknown: 0,
  })
  t.same(all.engine.reckon([ledger('c{1..5}', [7, 9, 9], { part: 1, parts: 2 })]), {
    expected: 0,
    lost: 0,
    unknown: 0,
  })
  t.same(all.engine.reckon([ledger('a', [9], { start: e - 1 })]), { expected: 0, lost: 0, unknown: 0 })
  t.same(all.engine.reckon([ledger('a', [3]), ledger('a', [2], { start: e + 1 })]), {
    expected: 5,
    lost: 2,
    unknown: 0,
  })
  t.throws(() => all.engine.reckon([ledger('a', [3], { sequences: 'AAAA' })]))

  const late = await subscribed(t, { publishFrom: Date.now() - 20_000 })
  t.same(late.engine.reckon([ledger('a', [5], { start: 1000 })]), { expected: 0, lost: 0, unknown: 1 })
  await received(
    late,
    [3, 4].map(s => payload('a', s)),
  )
  t.same(late.engine.reckon([ledger('a', [5], { start: 1000 })]), { expected: 3, lost: 1, unknown: 0 })
})

t.test('refusals', async t => {
  const answers = [
    { error: { code: 100, message: 'internal server error', temporary: true } },
    { error: { code: 103, message: 'permission denied' } },
    { subscribe: {} },
  ]
  const all = await subscribed(t, {}, { subscribe: () => answers.shift() })
  t.match(all.test.counters, { refused: 2, failed: 1, opened: 1 })
  t.same(all.test.faults, {
    'subscribe: 100 internal server error': 1,
    'subscribe: 103 permission denied': 1,
  })
  all.server.say('{"push":{"channel":"a","unsubscribe":{"code":2500,"reason":"insufficient state"}}}')
  await all.test.until(({ counters }) => counters.opened === 2)
  t.match(all.test.counters, { refused: 3, ended: 1, closed: 0, reconnects: 1 })
  all.server.subscribe = () => ({ subscribe: {} })
  all.server.sockets[0].close(3012, 'no pong')
  await all.test.until(({ counters }) => counters.opened === 3)
  t.equal(all.test.faults['3012 no pong'], 1)
  all.server.connect = () => ({ error: { code: 111, message: 'too many requests', temporary: true } })
  all.engine.cut(1, 'close')
  await all.test.until(({ counters }) => counters.failed === 4)
  t.equal(all.test.faults['connect: 111 too many requests'], 3)
  t.ok(all.server.sockets.length <= 1, 'what was refused is closed')
})

t.test('pings are answered where that is asked for', async t => {
  const all = await subscribed(t, {}, { connect: () => ({ connect: { client: 'c', ping: 25, pong: true } }) })
  const answered = once(all.server.sockets[0], 'message')
  all.server.say('{}')
  t.equal(`${(await answered)[0]}`, '{}')
  t.equal(all.test.sample().counters.pings, 1)
})
