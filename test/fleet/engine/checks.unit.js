// The counters of an engine whose server duplicates, drops, reorders and cuts.

import { once } from 'node:events'
import { deflateSync } from 'node:zlib'
import t from 'tap'
import { startNumber } from '../../../fleet/drone/engine/payload.js'
import { settingsOf, TestEngine } from './engines.js'
import { payload, ScriptedServer } from './scripted-server.js'

const none = { damaged: 0, duplicates: 0, disordered: 0, gaps: 0, lost: 0, missed: 0 }
const faultsOf = counters => Object.fromEntries(Object.keys(none).map(name => [name, counters[name]]))

/** Start of publishing, after the subscriptions: the `e` of payload() is later. */
const LATER = Date.now() + 600_000
const e = startNumber(LATER)
const later = (s, more) => payload('a', s, { e, ...more })
/** Before the subscriptions. */
const EARLIER = Date.now() - 20_000

/** One connection with subscription a, made before anything was published. */
async function subscribed(t, settings = {}, script = {}) {
  const server = Object.assign(await ScriptedServer.start(t), script)
  const test = new TestEngine(t)
  const all = settingsOf(server.url, { connections: 1, channels: ['a'], publishFrom: LATER, ...settings })
  test.engine.apply(all)
  await test.until(({ gauges }) => gauges.open === 1)
  return { server, test, engine: test.engine, settings: all }
}

/** Publishes, and waits until `count` more publications are received. */
async function received({ server, test }, items, count = items.length) {
  const before = test.sample().counters.received
  server.publish('a', ...items)
  await test.until(({ counters }) => counters.received === before + count)
  return faultsOf(test.counters)
}

const early = { publishFrom: EARLIER }
const again = { again: true }
/**
 * Sequences, or a sequence and other numbers of its payload, in parts; the counters after each part; settings.
 * @type {[title: string, parts: (number | [number, object])[][], counters: object[], settings?: object][]}
 */
const SEQUENCES = [
  ['all in order', [[1, 2, 3, 4, 5]], [none]],
  ['duplicates', [[1, 2, 2, 3, 1]], [{ ...none, duplicates: 2 }]],
  ['gaps, also before the first one', [[3, 4, 7, 8, 9, 11]], [{ ...none, gaps: 3, lost: 5 }]],
  [
    'late ones are not lost, but out of order; a gap may become two',
    [[1, 6], [4], [4], [5], [2, 3]],
    [
      { ...none, gaps: 1, lost: 4 },
      { ...none, gaps: 2, lost: 3, disordered: 1 },
      { ...none, gaps: 2, lost: 3, disordered: 1, duplicates: 1 },
      { ...none, gaps: 1, lost: 2, disordered: 2, duplicates: 1 },
      { ...none, disordered: 4, duplicates: 1 },
    ],
  ],
  [
    'a subscription made during publishing takes any first one',
    [
      [
        [17, { e: 1000 }],
        [18, { e: 1000 }],
        [20, { e: 1000 }],
      ],
      [[16, { e: 1000 }]],
    ],
    [
      { ...none, gaps: 1, lost: 1 },
      { ...none, gaps: 1, lost: 1, disordered: 1 },
    ],
    early,
  ],
  [
    'a publisher that starts again begins with 1; messages of a replaced one are late',
    [
      [1, 2, [1, { e: e + 1 }]],
      [[3, { e: e + 2 }], 3],
    ],
    [none, { ...none, gaps: 1, lost: 2, disordered: 1 }],
  ],
]

for (const [title, parts, counters, settings] of SEQUENCES)
  t.test(title, async t => {
    const all = await subscribed(t, settings)
    for (const [i, part] of parts.entries()) {
      const items = part.map(item => (typeof item === 'number' ? later(item) : later(...item)))
      t.same(await received(all, items), counters[i])
    }
    t.equal(all.test.probe.count, parts.flat().length)
  })

t.test('a message that its publisher resends is not a duplicate', async t => {
  const all = await subscribed(t)
  t.same(await received(all, [later(1), later(1, again), later(2, again)], 2), none)
})

t.test('incomplete payloads count as damaged', async t => {
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

t.test('a publication of another channel is a fault', async t => {
  const all = await subscribed(t)
  t.same(await received(all, [payload('b', 1)]), none)
  t.match(all.test.faults, { 'publication of an unknown channel': 1 })
})

t.test('without recovery, messages missed during a reconnect are not lost', async t => {
  const all = await subscribed(t)
  await received(all, [later(1)])
  t.equal(all.engine.cut(1, 'reset'), 1)
  all.engine.apply({ ...all.settings, publishFrom: LATER - 1e6 })
  await all.test.until(({ counters }) => counters.reconnects === 1)
  t.same(await received(all, [later(5), later(7)]), { ...none, missed: 3, gaps: 1, lost: 1 })
  t.match(all.test.counters, { closed: 1, recovered: 0, unrecovered: 0 })
})

t.test('messages missing in a recovery are lost', async t => {
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
  t.same(faultsOf(all.test.counters), none)
  await back(2, 'reset')
  t.equal(wishes[2].offset, 13)
  t.same(await received(all, [later(5)]), { ...none, gaps: 1, lost: 1 }, 'it was declared as recovered')
  await back(3, 'close')
  t.same(await received(all, [later(9)]), { ...none, gaps: 1, lost: 1, missed: 3 })
  t.match(all.test.counters, { recovered: 2, unrecovered: 1, received: 5, closed: 3, ended: 0 })
  await back(4, 'reset')
  await back(5, 'reset')
  const last = await received(all, [later(13)])
  t.same(last, { ...none, gaps: 1, lost: 1, missed: 6 }, 'a later recovery does not change that')
})

t.test('ledgers show messages lost at the end, and those of unknown outcome', async t => {
  const ledger = (channels, sequences, more) => ({
    ...{ channels, part: 0, parts: 1, start: e },
    sequences: deflateSync(Buffer.from(Uint32Array.from(sequences).buffer)).toString('base64'),
    ...more,
  })
  const all = await subscribed(t, { channels: ['a', 'b', 'c{own}', 'd'] })
  await received(all, [later(1), later(2), later(3)])
  const second = { start: e + 1 }
  for (const [ledgers, expected, lost] of [
    [[ledger('a', [3])], 3, 0],
    [[ledger('a', [5])], 5, 2],
    [[ledger('b', [4])], 4, 4],
    [[ledger('x', [4])], 0, 0],
    [[ledger('c{1..5}', [7, 9, 9], { parts: 2 })], 7, 7],
    [[ledger('c{1..5}', [7, 9, 9], { part: 1, parts: 2 })], 0, 0],
    [[ledger('a', [9], { start: e - 1 })], 0, 0],
    [[ledger('a', [3]), ledger('a', [2], second)], 5, 2],
  ])
    t.same(all.engine.reconcile(ledgers), { expected, lost, unknown: 0 }, JSON.stringify(ledgers))
  t.throws(() => all.engine.reconcile([ledger('a', [3], { sequences: 'AAAA' })]))

  const late = await subscribed(t, early)
  const old = [ledger('a', [5], { start: 1000 })]
  t.same(late.engine.reconcile(old), { expected: 0, lost: 0, unknown: 1 })
  await received(late, [payload('a', 3), payload('a', 4)])
  t.same(late.engine.reconcile(old), { expected: 3, lost: 1, unknown: 0 })
})

t.test('refused subscribes are counted and retried if temporary', async t => {
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
  await all.test.until(({ counters }) => counters.failed >= 4)
  t.equal(all.test.faults['connect: 111 too many requests'], all.test.counters.failed - 1)
  t.ok(all.server.sockets.length <= 1, 'refused connections are closed')
})

t.test('pings are answered if the server requests pongs', async t => {
  const all = await subscribed(t, {}, { connect: () => ({ connect: { client: 'c', ping: 25, pong: true } }) })
  const answered = once(all.server.sockets[0], 'message')
  all.server.say('{}')
  t.equal(`${(await answered)[0]}`, '{}')
  t.equal(all.test.sample().counters.pings, 1)
})
