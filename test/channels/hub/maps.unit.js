import t from 'tap'
import { disconnects } from '../../../src/base/errors.js'
import { JsonCodec } from '../../../src/clients/protocol/json.js'
import { makePublication } from '../../clients/protocol/publication.js'
import { Random } from '../../clients/session/fuzz/random.js'
import { read, startMap } from './map-rig.js'
import { MapView } from './map-view.js'
import { answer, POSITIONED } from './rig.js'

const FILL = 'what stays the same from one value to the next, '.repeat(4)
const text = (/** @type {unknown} */ n) => JSON.stringify(`${FILL}${n}`)
const quote = JSON.stringify

t.test('each key has its own base, even for a new subscriber', async t => {
  const map = startMap()
  map.put('a', text(1))
  const first = map.subscriber({ delta: true })
  map.put('a', text(2))
  map.put('b', text(1))
  t.same(read(first), ['full', 'full'], 'this worker has not seen earlier values')
  const binary = map.subscriber({ delta: true, binary: true })
  map.put('b', text(2))
  map.put('a', text(3))
  map.put('a', text(4))
  for (const session of [first, binary]) {
    t.same(read(session), ['delta', 'delta', 'delta'])
    t.same(session.view.values, map.state())
  }
  t.equal(map.published, 2 + 6, 'once per codec')
})

t.test('a removal is not a delta, and the next value is full', async t => {
  const map = startMap()
  const [deltas, plain] = [map.subscriber({ delta: true }), map.subscriber()]
  map.put('a', text(1))
  map.remove('a')
  map.put('a', text(2))
  map.put('a', text(3))
  t.same(read(deltas), ['full', 'removed', 'full', 'delta'])
  t.same(read(plain), ['full', 'removed', 'full', 'full'])
})

t.test('data that may differ from the value is not a base', async t => {
  const map = startMap()
  const session = map.subscriber({ delta: true })
  map.put('a', text(1))
  map.put('a', text('a change'), { delta: false })
  map.put('a', text(2))
  t.same(read(session), ['full', 'full', 'full'])
})

t.test('bases are dropped with a lost position or the last delta subscriber', async t => {
  const map = startMap()
  const plain = map.subscriber()
  map.put('a', text(1))
  t.equal(map.channel.map, null, 'no base is kept without delta subscribers')
  const first = map.subscriber({ delta: true })
  map.put('a', text(2))
  t.ok(map.hub.maps.values.bytes > 0)
  map.hub.lost('x', 9, 'new')
  t.same([first.lost, plain.lost], [['x'], ['x']])
  t.equal(map.hub.maps.values.bytes, 0)
  t.equal(map.hub.channels.size, 0)
})

t.test('changes missed by this worker leave no outdated base', async t => {
  for (const gap of [true, false]) {
    const map = startMap()
    const plain = map.subscriber({ positioned: false })
    const first = map.subscriber({ delta: true })
    map.put('a', text(1))
    if (!gap) map.unsubscribe(first, 'x')
    map.miss('a', text(2))
    if (gap) map.put('b', text(1))
    const second = map.subscriber({ delta: true })
    map.put('a', text(3))
    t.same(read(second), ['full'], gap ? 'a gap' : 'unnoticed')
    t.same(first.lost, gap ? ['x'] : [])
    map.unsubscribe(plain, 'x')
  }
})

t.test('without positions there are neither deltas nor parts', async t => {
  const map = startMap({ streamed: false })
  map.put('a', quote('one'))
  const sessions = [{ delta: true }, { parts: true }, {}].map(options => map.subscriber(options))
  map.put('a', text(1))
  map.put('a', text(2))
  for (const session of sessions) t.same(read(session), ['full', 'full'])
  map.append('a', quote('!'))
  await map.answerReads()
  for (const session of sessions) {
    t.same(read(session), ['full'])
    t.same(session.view.values, map.state())
  }
})

t.test('subscribers get a part, a delta or the value, as negotiated', async t => {
  const map = startMap()
  map.put('a', text(''))
  const [parts, deltas, plain] = [{ parts: true }, { delta: true }, {}].map(options =>
    map.subscriber(options),
  )
  map.append('a', quote('to'))
  t.same(read(parts), ['part'], 'at once')
  t.same([read(deltas), read(plain)], [[], []], 'the value is not known')
  t.equal(map.reads.length, 1, 'all subscribers share one read')
  await map.answerReads()
  t.same([read(deltas), read(plain)], [['full'], ['full']])
  for (const token of ['k', 'en', ' é"\\']) map.append('a', quote(token))
  t.same([read(parts), read(deltas)], [Array(3).fill('part'), Array(3).fill('delta')])
  t.same(read(plain), [], 'at most one value per interval')
  map.pass(50)
  t.same(read(plain), ['full'])
  t.equal(map.reads.length, 0, 'the value is known by now')
  for (const session of [parts, deltas, plain]) {
    t.same(session.view.values, map.state())
    t.equal(session.view.offset, 5)
  }
  map.pass(100)
  t.equal(map.hub.maps.pending, 0)
  map.append('a', quote('!'))
  t.same(read(plain), ['full'], 'immediately after a pause')
})

t.test('the delta of a part is as small as the part', async t => {
  const map = startMap()
  const session = map.subscriber({ delta: true })
  map.put('a', quote('x'.repeat(10_000)))
  session.got = []
  for (let i = 0; i < 10; i++) map.append('a', quote(`${i}`))
  for (const { pub } of session.got) t.ok(pub.data.length < 40, pub.data)
})

t.test('a token of four bytes costs about 100 bytes, as a part or as a delta', async t => {
  for (const [options, most] of /** @type {[any, number][]} */ ([
    [{ parts: true }, 90],
    [{ delta: true }, 105],
  ])) {
    const map = startMap()
    const session = map.subscriber(options)
    map.put('a', quote('x'))
    session.got = []
    for (let i = 0; i < 1000; i++) map.append('a', quote('toke'))
    const bytes = session.got.reduce((sum, push) => sum + Buffer.byteLength(quote({ push })), 0)
    t.equal(session.got.length, 1000)
    t.ok(bytes <= most * 1000, `${bytes / 1000} bytes, ${quote(options)}`)
  }
})

t.test('binary values are appended as bytes', async t => {
  const map = startMap()
  const session = map.subscriber({ delta: true, binary: true })
  const keyed = { key: 'a', removed: false, append: false, time: 1 }
  const data = Buffer.alloc(100, 1)
  map.hub.publication('x', makePublication({ data, offset: 1, epoch: 'e', keyed, json: false, delta: true }))
  session.got = []
  const part = {
    data: Buffer.from([2]),
    offset: 2,
    epoch: 'e',
    json: false,
    keyed: { ...keyed, append: true },
  }
  map.hub.publication('x', makePublication(part))
  const value = map.channel.map.values.get('a')
  t.same([value.kept, value.bytes.length, value.bytes[100]], [100, 101, 2])
  t.equal(session.got.length, 1)
  t.equal(map.reads.length, 0)
})

t.test('a part that the hub cannot join like the broker makes the value unknown', async t => {
  for (const [value, part] of [
    [` ${text(1)}`, quote('x')],
    [text(1), ` ${quote('x')}`],
    [text(1), '5'],
  ]) {
    const map = startMap()
    map.subscriber({ delta: true })
    map.put('a', value)
    map.append('a', part)
    t.equal(map.channel.map.values.size, 0, `${value.slice(0, 3)} ${part}`)
    t.equal(map.reads.length, 1)
  }
})

t.test('the position of a subscriber stays before a pending value', async t => {
  const map = startMap()
  map.put('a', quote('one'))
  const session = map.subscriber()
  map.append('a', quote('two'))
  map.put('b', quote('other'))
  t.same(read(session), ['full'])
  t.equal(session.view.offset, 1, 'a reconnect recovers the part')
  await map.answerReads()
  t.same(read(session), ['full'])
  t.equal(session.view.offset, 3)
  t.same(session.view.values, map.state())
})

t.test('a new value or a removal replaces a pending value', async t => {
  for (const replace of /** @type {((map: any) => void)[]} */ ([
    map => map.put('a', quote('new')),
    map => map.remove('a'),
  ])) {
    const map = startMap()
    map.put('a', quote('one'))
    const session = map.subscriber()
    map.append('a', quote('two'))
    const before = map.entryOf('a')
    replace(map)
    read(session)
    t.equal(session.view.offset, 3)
    map.append('a', quote('more'))
    for (const { done } of map.reads.splice(0)) done(before)
    await new Promise(setImmediate)
    t.notMatch(session.got, [{ pub: { data: 'onetwo' } }], 'the old value is not sent')
    map.pass(50)
    await map.answerReads()
    read(session)
    t.same(session.view.values, map.state())
    map.pass(200)
    t.equal(map.hub.maps.pending, 0)
  }
})

t.test('a value read between two parts is sent, and the next one is read again', async t => {
  const map = startMap()
  map.put('a', quote('1'))
  const [plain, deltas] = [map.subscriber(), map.subscriber({ delta: true })]
  map.append('a', quote('2'))
  const between = map.entryOf('a')
  map.append('a', quote('3'))
  for (const { done } of map.reads.splice(0)) done(between)
  await new Promise(setImmediate)
  for (const session of [plain, deltas]) {
    t.same(read(session), ['full'])
    t.same([session.view.values.get('a'), session.view.offset], [quote('12'), 1])
  }
  map.pass(50)
  await map.answerReads()
  for (const session of [plain, deltas]) {
    t.same(read(session), ['full'])
    t.same([session.view.values.get('a'), session.view.offset], [quote('123'), 3])
  }
})

t.test('a failed read is repeated after a second', async t => {
  const map = startMap()
  map.put('a', quote('1'))
  const session = map.subscriber()
  map.append('a', quote('2'))
  for (const { failed } of map.reads.splice(0)) failed(new Error('unreachable'))
  await new Promise(setImmediate)
  map.pass(900)
  t.equal(map.reads.length, 0)
  map.pass(200)
  await map.answerReads()
  t.same(read(session), ['full'])
  t.same(session.view.values, map.state())
})

t.test('with too many pending keys, subscribers that need whole values lose their position', async t => {
  const map = startMap()
  const [parts, plain] = [map.subscriber({ parts: true }), map.subscriber()]
  for (let i = 0; i <= 10_000; i++) {
    map.put(`${i}`, quote('x'))
    map.append(`${i}`, quote('y'))
  }
  t.same([parts.lost, plain.lost], [[], ['x']])
  t.same(parts.got.length, 20_002)
  map.unsubscribe(parts, 'x')
  map.pass(100)
  t.equal(map.hub.maps.pending, 0)
  for (const { done } of map.reads) done(null)
})

t.test('a full cache drops the least recently used values', async t => {
  const map = startMap()
  const session = map.subscriber({ delta: true })
  const big = quote('x'.repeat(1_000_000))
  for (let i = 0; i < 40; i++) map.put(`${i}`, big)
  t.ok(map.hub.maps.values.bytes <= 16 * 1024 * 1024)
  const kept = map.channel.map.values.size
  t.ok(kept > 5 && kept < 17, `${kept} values`)
  map.put('39', quote(`${'x'.repeat(1_000_000)}!`))
  map.put('0', big)
  t.same(read(session).slice(40), ['delta', 'full'])
  map.put('huge', quote('x'.repeat(17_000_000)))
  map.put('huge', quote('x'.repeat(17_000_000)))
  t.same(read(session), ['full', 'full'])
})

t.test('a buffer omits parts that its subscriber cannot join; it gets the value later', async t => {
  for (const options of /** @type {any[]} */ ([{}, { delta: true }, { parts: true }])) {
    const map = startMap()
    map.put('a', text(1))
    map.put('b', text(1))
    const other = map.subscriber({ delta: true })
    map.put('a', text(2))
    const session = map.session()
    map.hub.prepare('x', POSITIONED, (_error, channel) => {
      const { delta = false, parts = false } = options
      session.view = new MapView(map.state(), map.stream.length, options)
      const buffer = map.hub.buffer(channel, session.codec, null, true, delta, 100_000, parts)
      map.append('a', quote('more'))
      map.put('b', text(2))
      map.hub.unbuffer(channel, buffer)
      session.got = buffer.messages.map(message => JSON.parse(Buffer.from(message).toString()).push)
      t.same(read(session), parts ? ['part', 'full'] : ['full'])
      t.equal(session.view.offset, parts ? 5 : 3)
      const cohorts = map.hub.join(session, channel, {
        positioned: true,
        events: false,
        filter: null,
        map: true,
        ...options,
        unsent: buffer.unsent,
      })
      session.joined.set('x', { channel, ...cohorts })
    })
    map.calls.pop().done(null, answer(map.stream.length, 'e'))
    map.append('a', quote('and more'))
    map.put('b', text(3))
    for (let i = 0; i < 3; i++) {
      await map.answerReads()
      map.pass(50)
    }
    read(session)
    read(other)
    for (const { view } of [session, other]) t.same([view.values, view.offset], [map.state(), 7])
  }
})

t.test('a buffer counts the keys that it omits', async t => {
  const map = startMap()
  map.subscriber()
  map.hub.prepare('x', POSITIONED, (_error, channel) => {
    const buffer = map.hub.buffer(channel, new JsonCodec(), null, true, false, 10_000, false)
    for (let i = 0; i < 1000; i++) {
      map.entries.set(`${i}`, { value: quote(''), offset: 0 })
      map.append(`${i}`, quote('x'))
    }
    t.equal(buffer.fault, disconnects.slow)
    map.hub.unbuffer(channel, buffer)
    map.hub.release(channel)
  })
  map.calls.pop().done(null, answer(map.stream.length, 'e'))
})

t.test('a payload that is not JSON disconnects JSON subscribers', async t => {
  const map = startMap()
  const [plain, deltas, parts] = [{}, { delta: true }, { parts: true }].map(options =>
    map.subscriber(options),
  )
  map.put('a', 'not JSON', { json: false })
  t.same([plain.refused, deltas.refused, parts.refused], [true, true, true])
})

t.test('after random sequences, every subscriber has the map and its position is right', async t => {
  const rounds = 400
  for (let seed = 1; seed <= rounds; seed++) {
    const fault = await play(new Random(seed))
    if (fault !== '') return t.fail(`seed ${seed}: ${fault}`)
  }
  t.pass(`${rounds} sequences`)
})

/** @param {Random} random @returns {Promise<string>} a fault, or '' */
async function play(random) {
  const map = startMap()
  /** @type {any[]} */
  const sessions = []
  const options = [{}, { parts: true }, { delta: true }, { delta: true, binary: true }]
  const key = () => 'abc'[random.below(3)]
  const value = () => (random.below(2) ? text(random.below(100)) : quote('x'.repeat(random.below(30))))
  const steps = [
    () => sessions.push(map.subscriber(options[random.below(options.length)])),
    () => {
      const [gone] = sessions.splice(random.below(sessions.length + 1), 1)
      if (gone) map.unsubscribe(gone, 'x')
    },
    () => map.put(key(), value(), { delta: random.below(4) > 0 }),
    () => map.append(key(), quote(['é', '"', 'token', ' '][random.below(4)])),
    () => map.append(key(), quote('t')),
    () => map.remove(key()),
    () => map.pass(random.below(40)),
    () => map.answerReads(),
    // A read with a late result, older than the last change.
    () => {
      const late = map.reads.shift()
      if (!late) return
      const entry = map.entryOf(late.key)
      map.append(late.key, quote('late'))
      late.done(entry)
      return new Promise(setImmediate)
    },
  ]
  for (let i = 0; i < 60; i++) {
    await steps[random.below(steps.length)]()
    for (const session of sessions) {
      read(session)
      const fault = misses(session.view, map)
      if (fault !== '') return fault
    }
  }
  for (let i = 0; i < 4; i++) {
    map.pass(60)
    await map.answerReads()
  }
  for (const session of sessions) {
    read(session)
    if (quote([...session.view.values].sort()) !== quote([...map.state()].sort())) return 'a view differs'
    if (session.view.offset > map.stream.length) return 'a position above the top'
  }
  if (map.hub.maps.pending > 0) return 'a key is pending'
  for (const session of sessions) map.unsubscribe(session, 'x')
  return map.hub.maps.values.bytes === 0 ? '' : 'values are kept without subscribers'
}

/** Keys that have not changed after the position of a view MUST be current in it. */
function misses({ values, offset }, map) {
  const later = new Set(map.stream.slice(offset).map(({ key }) => key))
  for (const name of ['a', 'b', 'c'])
    if (!later.has(name) && values.get(name) !== map.entries.get(name)?.value)
      return `${name} at ${offset}: ${values.get(name)}, not ${map.entries.get(name)?.value}`
  return ''
}

t.test('a value read by a subscriber is the base of its next delta', async t => {
  const map = startMap()
  for (const key of ['a', 'b', 'c']) map.put(key, text(1))
  const known = ['a', 'b', 'c'].map(key => ({ ...map.entryOf(key), delta: key !== 'c' }))
  const removal = { ...map.entryOf('b'), keyed: { key: 'b', removed: true, append: false, time: 1 } }
  const session = map.subscriber({ delta: true, known: [...known, removal] })
  for (const key of ['a', 'b', 'c']) map.put(key, text(2))
  t.same(read(session), ['delta', 'full', 'full'], 'not of a removed one, or one with other data')
  t.same(session.view.values, map.state())
})
