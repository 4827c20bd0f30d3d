import t from 'tap'
import { chance } from '../../clients/delta/chance.js'
import { DeltaReader } from '../../clients/delta/reader.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const FILL = 'what stays the same from one publication to the next, '.repeat(4)
const text = n => JSON.stringify(`${FILL}${n}`)

/** A hub with one channel `x`, whose stream goes on by itself. */
function startChannel() {
  const rig = startHub()
  let top = 0
  return {
    ...rig,
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

/**
 * @param {any} session
 * @returns {string[]} the payloads that came since the last time
 */
const read = session =>
  session.got.splice(0).map(message => {
    const { pub } = typeof message === 'string' ? JSON.parse(message.slice('binary '.length)).push : message
    return session.reader.read(pub)
  })

t.test('a publication is handed to the socket server once for those who follow, however many', async t => {
  const channel = startChannel()
  const sessions = Array.from({ length: 20 }, (_, i) => channel.subscriber({ binary: i % 2 === 0 }))
  for (const n of [1, 2, 3]) {
    channel.publish()
    t.equal(channel.sent, 2 * n, 'one for each codec')
    for (const session of sessions) t.strictSame(read(session), [text(n)])
  }
  for (const { reader } of sessions) t.strictSame(reader.taken(), ['full', 'delta', 'delta'])
  t.equal(channel.hub.delivered, 60)
})

t.test('the last delta-negotiated subscriber takes the base along', async t => {
  const channel = startChannel()
  const plain = channel.subscriber({ delta: false })
  t.equal(channel.channel.deltas, null, 'nothing is kept without any')
  const [a, b] = [channel.subscriber(), channel.subscriber()]
  channel.unsubscribe(b, 'x')
  channel.publish()
  channel.unsubscribe(a, 'x')
  t.equal(channel.channel.deltas, null)
  channel.publish()
  t.equal(plain.got.length, 2)
  t.same([a.topics.size, b.topics.size], [0, 0])
})

t.test('one who is gone before its first publication leaves nothing behind', async t => {
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

t.test('a gap ends those who rely on the position; the others get full payloads all the time', async t => {
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

t.test('a base that is not what was recovered is no base', async t => {
  const publication = offset => ({
    ...{ data: Buffer.from(text(offset)), offset, epoch: 'epoch', info: '', tags: null, version: 0n },
    ...{ json: true, delta: true },
  })
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

t.test('those whose reply has to wait get what is published in full', async t => {
  const channel = startChannel()
  const other = channel.subscriber()
  const { codec } = other
  channel.publish()
  const buffer = channel.hub.buffer(channel.channel, codec, null, false, true, Infinity)
  channel.publish()
  channel.publish({ version: 9n })
  const reader = new DeltaReader()
  const pubs = buffer.messages.map(message => JSON.parse(String(message)).push.pub)
  t.same(
    pubs.map(pub => reader.read(pub)),
    [text(2), text(3)],
  )
  t.same(reader.taken(), ['full', 'full'])
  t.notOk('version' in pubs[1], 'as in publications with deltas')
})

t.test('one publication lets some thousands catch up, and serves the others in full meanwhile', async t => {
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

t.test('comings and goings of all kinds: everybody reads what was published, once and in order', async t => {
  const random = chance(7)
  for (let round = 0; round < 40; round++) {
    const rig = startHub()
    let epoch = 'first'
    /** @type {any[]} of this epoch */
    let stream = []
    let serial = 0
    /** @type {Map<any, string[]>} session -> what it must have read and has not yet */
    const sessions = new Map()
    let faults = 0

    const publication = offset => ({
      ...{ data: Buffer.from(text(serial)), offset, epoch: offset > 0 ? epoch : '', info: '', tags: null },
      ...{ version: 0n, json: true, delta: random.hit(0.9) },
    })
    const drain = session => {
      const expected = sessions.get(session)
      const got = read(session)
      if (JSON.stringify(got) !== JSON.stringify(expected)) faults++
      expected.length = 0
    }

    for (let step = 0; step < 300; step++) {
      // Another life of the stream is not theirs.
      for (const session of sessions.keys()) if (session.lost.length > 0) sessions.delete(session)
      const action = random.below(10)
      if (action < 5) {
        serial++
        if (random.hit(0.02)) {
          epoch = `epoch ${serial}`
          stream = []
          for (const session of sessions.keys()) drain(session)
        }
        const kept = random.hit(0.9)
        const next = publication(kept ? stream.length + 1 : 0)
        if (kept) stream.push(next)
        for (const expected of sessions.values()) expected.push(text(serial))
        rig.hub.publication('x', next)
      } else if (action < 8 && sessions.size < 12) {
        const session = Object.assign(rig.session({ binary: random.hit(0.3) }), { reader: new DeltaReader() })
        const wants = random.hit(0.8) ? POSITIONED : PLAIN
        const recovers = wants === POSITIONED && random.hit(0.5)
        const recovered = recovers ? stream.slice(-random.below(4) || stream.length) : []
        for (const { data } of recovered) session.reader.read({ data: String(data) })
        sessions.set(session, [])
        rig.subscribe(session, 'x', wants, { delta: true, received: recovered.at(-1) ?? null })
        for (const { done } of rig.calls.splice(0)) done?.(null, answer(stream.length, epoch))
        session.got = []
      } else if (sessions.size > 0) {
        const session = random.pick([...sessions.keys()])
        drain(session)
        sessions.delete(session)
        rig.unsubscribe(session, 'x')
        rig.calls.splice(0)
      }
    }
    for (const session of sessions.keys()) if (session.lost.length === 0) drain(session)
    t.equal(faults, 0, `round ${round}`)
  }
})
