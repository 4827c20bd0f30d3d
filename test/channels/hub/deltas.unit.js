import t from 'tap'
import { DeltaCache } from '../../../src/channels/hub/deltas.js'
import { DeltaReader } from '../../clients/delta/reader.js'
import { makePublication } from '../../clients/protocol/publication.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
const text = n => JSON.stringify(`${FILL}${n}`)

/** A hub with one channel `x` and consecutive publications. */
function startChannel() {
  const rig = startHub()
  let top = 0
  return {
    ...rig,
    rig,
    /** @returns {any} a session with a DeltaReader */
    subscriber(options = {}, wants = POSITIONED) {
      const session = Object.assign(rig.session({ binary: options.binary }), { reader: new DeltaReader() })
      rig.subscribe(session, 'x', wants, { delta: true, ...options })
      for (const { done } of rig.calls.splice(0)) done?.(null, answer(top, 'epoch'))
      session.got = []
      return session
    },
    publish(rest = {}) {
      top++
      rig.publish('x', text(top), { offset: top, epoch: 'epoch', ...rest })
      return top
    },
    get channel() {
      return rig.hub.channels.get('x')
    },
    get sent() {
      return rig.published
    },
  }
}

/** @returns {string[]} payloads since the last call */
const read = session =>
  session.got.splice(0).map(message => {
    const { pub } = typeof message === 'string' ? JSON.parse(message.slice('binary '.length)).push : message
    return session.reader.read(pub)
  })

t.test('a delta is sent once per codec', async t => {
  const channel = startChannel()
  const sessions = Array.from({ length: 20 }, (_, i) => channel.subscriber({ binary: i % 2 === 0 }))
  for (const n of [1, 2, 3]) {
    channel.publish()
    t.equal(channel.sent, 2 * n, 'one delta per codec')
    for (const session of sessions) t.strictSame(read(session), [text(n)])
  }
  for (const { reader } of sessions) t.strictSame(reader.taken(), ['full', 'delta', 'delta'])
  t.equal(channel.hub.delivered, 60)
})

t.test('the base is dropped with the last delta subscriber', async t => {
  const channel = startChannel()
  const plain = channel.subscriber({ delta: false })
  t.equal(channel.channel.deltas, null, 'no base is kept without delta subscribers')
  const [a, b] = [channel.subscriber(), channel.subscriber()]
  channel.unsubscribe(b, 'x')
  channel.publish()
  channel.unsubscribe(a, 'x')
  t.equal(channel.channel.deltas, null)
  channel.publish()
  t.equal(plain.got.length, 2)
  t.same([a.topics.size, b.topics.size], [0, 0])
})

t.test('a subscriber may leave before its first publication', async t => {
  const channel = startChannel()
  const [follows, gone, stays] = [channel.subscriber(), channel.subscriber(), channel.subscriber()]
  channel.publish()
  const [goneAgain, late] = [channel.subscriber(), channel.subscriber()]
  channel.unsubscribe(gone, 'x')
  channel.unsubscribe(goneAgain, 'x')
  channel.publish()
  channel.publish()
  t.same(read(follows), [text(1), text(2), text(3)])
  t.same(read(stays), [text(1), text(2), text(3)])
  t.same(read(late), [text(2), text(3)])
  t.equal(channel.channel.deltas.cohorts.length, 1)
  t.equal(channel.channel.deltas.cohorts[0].count, 3)
  t.same([...follows.topics], [...late.topics])
})

t.test('subscribers without a position always get full payloads', async t => {
  for (const next of [
    { offset: 5, epoch: 'epoch' },
    { offset: 3, epoch: 'next' },
    { offset: 1, epoch: 'next' },
  ]) {
    const channel = startChannel()
    const positioned = channel.subscriber({}, POSITIONED)
    const loose = channel.subscriber({}, PLAIN)
    channel.publish()
    channel.publish()
    read(loose)
    channel.publish(next)
    t.same(positioned.lost, ['x'])
    t.same(read(loose), [text(3)])
    t.same(loose.reader.taken(), ['full', 'full', 'full'])
  }
})

const LATEST = { keepsLatest: true }

t.test('with keepsLatest, subscribers without a position get deltas against what was sent last', async t => {
  const channel = startChannel()
  const [first, positioned] = [channel.subscriber(LATEST, PLAIN), channel.subscriber(LATEST, POSITIONED)]
  const none = { offset: 0, epoch: '' }
  channel.publish(none)
  const late = channel.subscriber({ ...LATEST, binary: true }, PLAIN)
  channel.publish({ ...none, delta: false })
  channel.publish({ offset: 1 })
  channel.publish(none)
  t.equal(channel.sent, 7, 'one message per codec')
  for (const [session, from, kinds] of /** @type {[any, number, string][]} */ ([
    [first, 1, 'full full delta delta'],
    [positioned, 1, 'full full delta delta'],
    [late, 2, 'full delta delta'],
  ])) {
    const expected = [1, 2, 3, 4].slice(from - 1).map(text)
    t.same(read(session), expected)
    t.equal(session.reader.taken().join(' '), kinds)
  }
})

t.test('with keepsLatest, a payload above 1 MiB is no base', async t => {
  const channel = startChannel()
  const session = channel.subscriber(LATEST, PLAIN)
  const large = n => JSON.stringify(`${'x'.repeat(1024 * 1024 - 3)}${n}`)
  for (const data of [large(1), large(2), large(10), large(11), text(1), text(2)])
    channel.rig.publish('x', data)
  t.same(
    read(session).map(data => data.length),
    [large(1), large(2), large(10), large(11), text(1), text(2)].map(data => data.length),
  )
  t.equal(session.reader.taken().join(' '), 'full delta delta full full delta')
})

t.test(
  'with keepsLatest, a subscriber with the recovered base follows, others get a full payload',
  async t => {
    const publication = offset => makePublication({ data: Buffer.from(text(offset)), offset, epoch: 'epoch' })
    const channel = startChannel()
    const loose = channel.subscriber(LATEST, PLAIN)
    channel.publish()
    channel.publish()
    const recovered = channel.subscriber({ ...LATEST, received: publication(2) })
    recovered.reader.read({ data: text(2) })
    channel.publish()
    channel.rig.publish('x', text(9), { offset: 0 })
    const again = channel.subscriber({ ...LATEST, received: publication(3) })
    again.reader.read({ data: text(3) })
    channel.publish()
    t.same(read(loose), [1, 2, 3, 9, 4].map(text))
    t.same(read(recovered), [3, 9, 4].map(text))
    t.same(read(again), [text(4)])
    t.equal(loose.reader.taken().join(' '), 'full delta delta delta delta')
    t.equal(recovered.reader.taken().join(' '), 'full delta delta delta')
    t.equal(again.reader.taken().join(' '), 'full full', 'its base is not what was sent last')
  },
)

t.test('a compact and a plain subscriber get one delta', async t => {
  const channel = startChannel()
  const [plain, compact] = [channel.subscriber(), channel.subscriber({ compact: true })]
  for (let n = 0; n < 3; n++) channel.publish()
  for (const [session, head] of /** @type {[any, any][]} */ ([
    [plain, { channel: 'x' }],
    [compact, { id: 1 }],
  ])) {
    const heads = session.got.map(({ pub, ...head }) => head)
    t.strictSame(heads, [head, head, head])
    t.same(read(session), [1, 2, 3].map(text))
    t.equal(session.reader.taken().join(' '), 'full delta delta')
  }
})

t.test('after a recovery, deltas need the recovered publication as their base', async t => {
  const publication = offset => makePublication({ data: Buffer.from(text(offset)), offset, epoch: 'epoch' })
  const channel = startChannel()
  const other = channel.subscriber()
  channel.publish()
  channel.publish()
  for (const [received, kinds] of [
    [publication(2), ['delta']],
    [publication(1), ['full']],
    [{ ...publication(2), epoch: 'former' }, ['full']],
    [null, ['full']],
  ]) {
    const session = channel.subscriber({ received })
    t.equal(session.topics.has([...other.topics][0]), kinds[0] === 'delta')
    channel.unsubscribe(session, 'x')
  }
  channel.publish()
  t.same(read(other), [text(1), text(2), text(3)])
})

t.test('buffered publications have full payloads', async t => {
  const channel = startChannel()
  const other = channel.subscriber()
  const { codec } = other
  channel.publish()
  const buffer = channel.hub.buffer(channel.channel, codec, null, false, true, Infinity)
  channel.publish()
  channel.publish({ version: 9n })
  const reader = new DeltaReader()
  const pubs = buffer.messages.map(message => JSON.parse(String(message)).push.pub)
  const read = pubs.map(pub => reader.read(pub))
  t.same(read, [text(2), text(3)])
  t.same(reader.taken(), ['full', 'full'])
  t.notOk('version' in pubs[1], 'as in publications with deltas')
})

t.test('subscribers switch to deltas a few thousand at a time', async t => {
  const channel = startChannel()
  channel.subscriber()
  channel.publish()
  const late = Array.from({ length: 5000 }, () => channel.subscriber())
  const rounds = [5000, 904, 0]
  for (const full of rounds) {
    const n = channel.publish()
    let count = 0
    for (const session of late) {
      if (read(session)[0] !== text(n)) t.fail('not what was published')
      if (session.reader.taken()[0] === 'full') count++
    }
    t.equal(count, full)
  }
  t.equal(channel.channel.deltas.cohorts.length, 1)
  for (const session of late) channel.unsubscribe(session, 'x')
  t.equal(channel.channel.deltas.cohorts[0].count, 1)
})

/** @param {(target: Buffer) => Buffer | null} make */
function counting(make) {
  let calls = 0
  const encoder = {
    encode(_base, target) {
      calls++
      return make(target)
    },
  }
  return { cache: new DeltaCache(/** @type {any} */ (encoder)), calls: () => calls }
}

const publications = (count, from = 1, rest = {}) =>
  Array.from({ length: count }, (_, i) =>
    makePublication({ data: Buffer.from(`payload ${from + i}`), offset: from + i, epoch: 'epoch', ...rest }),
  )

t.test('each delta is computed once', async t => {
  const { cache, calls } = counting(target => target.subarray(0, 1))
  for (let n = 0; n < 100; n++) t.equal(cache.between('x', publications(5))[4]?.toString(), 'p')
  t.equal(calls(), 4, 'the first publication has none')
  cache.between('x', publications(5, 3))
  t.equal(calls(), 6, 'only the new ones are computed')
  cache.between('y', publications(5))
  cache.between('x', publications(5, 1, { epoch: 'next' }))
  t.equal(calls(), 14, 'other channels and epochs have their own')
})

/** Changes of a map: a letter for each key, `-` before a removed one. @param {string[]} keys @param {number} [from] */
const changes = (keys, from = 1) =>
  keys.map((key, i) => {
    const keyed = { key: key.at(-1), removed: key.startsWith('-'), append: false, time: 1 }
    return { ...publications(1, from + i)[0], keyed }
  })

t.test('in a map, a delta refers to the previous change of the same key', async t => {
  const bases = []
  const cache = new DeltaCache(
    /** @type {any} */ ({
      encode(base, target) {
        bases.push(`${base}`)
        return target
      },
    }),
  )
  const list = changes(['a', 'b', 'a', '-b', 'b', 'a'])
  const sent = () => cache.betweenKeys('x', list, false).map(delta => delta !== null)
  t.same(sent(), [false, false, true, false, false, true])
  t.same(bases, ['payload 1', 'payload 3'])
  sent()
  t.equal(bases.length, 2, 'computed once')
  t.same(cache.betweenKeys('x', changes(['a'], 6), false), [null], 'the first publication of a list is full')
  cache.betweenKeys('x', list, true)
  t.equal(bases.length, 4, 'joined parts are not cached')
  t.same(
    cache.betweenKeys(
      'y',
      changes(['a', 'a']).map(one => ({ ...one, offset: 0 })),
      false,
    ),
    [null, null],
  )
})

t.test('the absence of a delta is cached', async t => {
  const { cache, calls } = counting(() => null)
  for (let n = 0; n < 3; n++) t.same(cache.between('x', publications(3)), [null, null, null])
  t.equal(calls(), 2)
})

t.test('deltas refer only to the previous offset', async t => {
  const { cache } = counting(target => target)
  const [one, two, , four, five] = publications(5)
  t.same(
    cache.between('x', [one, { ...two, delta: false }, four, five]).map(delta => delta !== null),
    [false, true, false, true],
  )
  t.same(cache.between('x', []), [])
})

t.test('the cache keeps the newest megabyte', async t => {
  const size = 64 * 1024
  const { cache, calls } = counting(() => Buffer.alloc(size))
  cache.between('x', publications(101))
  t.equal(calls(), 100)
  cache.between('x', publications(10, 92))
  t.equal(calls(), 100, 'the newest deltas are cached')
  cache.between('x', publications(10))
  t.equal(calls(), 109, 'the oldest deltas are dropped')
})
