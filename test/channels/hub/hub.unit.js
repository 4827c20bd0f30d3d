import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { disconnects, errors } from '../../../src/base/errors.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const data = session => session.got.filter(({ pub }) => pub).map(({ pub }) => pub.data)

t.test('the first subscriber asks the broker, the last one leaves it, those between do neither', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x')
  t.same(a.got, [], 'no reply before the broker has answered')
  rig.calls[0].done(null, answer())
  t.same(rig.taken(), ['subscribe x first'])
  rig.subscribe(b, 'x')
  t.same(b.got, [{ reply: 'x', offset: 0 }], 'at once: the broker has nothing to add')
  rig.publish('x', '1')
  rig.unsubscribe(a, 'x')
  t.same(rig.taken(), [])
  rig.publish('x', '2')
  rig.unsubscribe(b, 'x')
  t.same(rig.taken(), ['unsubscribe x'])
  rig.publish('x', '3')
  t.same([data(a), data(b)], [[1], [1, 2]])
  t.equal(rig.hub.channels.size, 0)
})

t.test('a second subscriber that comes before the answer waits its turn, and asks for itself', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x')
  rig.subscribe(b, 'x')
  const [first, second] = rig.calls
  t.same(rig.taken(), ['subscribe x first', 'subscribe x'])
  first.done(null, answer())
  rig.publish('x', '1')
  second.done(null, answer())
  rig.publish('x', '2')
  t.same([data(a), data(b)], [[1, 2], [2]])
})

t.test(
  'a first subscription that fails after the second has succeeded changes nothing for that one',
  async t => {
    const rig = startHub()
    const [a, b, c] = [rig.session(), rig.session(), rig.session()]
    rig.subscribe(a, 'x', { ...PLAIN, client: 'a' })
    rig.subscribe(b, 'x', { ...PLAIN, client: 'b' })
    rig.calls[1].done(null, answer())
    rig.calls[0].done(new Error('refused'))
    t.same(rig.taken(), ['subscribe x first', 'subscribe x'])
    rig.subscribe(c, 'x', { ...PLAIN, client: 'c' })
    rig.calls[0].done(null, answer())
    t.same(rig.taken(), ['subscribe x'], 'not the first one')
    rig.publish('x', '1')
    t.same([data(b), data(c)], [[1], [1]])
    rig.unsubscribe(b, 'x')
    rig.unsubscribe(c, 'x')
    t.same(rig.taken(), ['unsubscribe x'])
  },
)

t.test(
  'unsubscribe and subscribe again: what the old subscription still brings does not reach the new one',
  async t => {
    const rig = startHub()
    const a = rig.session()
    rig.subscribe(a, 'x')
    rig.calls[0].done(null, answer())
    rig.taken()
    rig.unsubscribe(a, 'x')
    rig.subscribe(a, 'x')
    const again = rig.calls[1]
    t.same(rig.taken(), ['unsubscribe x', 'subscribe x first'], 'in this order')
    rig.publish('x', '1')
    again.done(null, answer())
    rig.publish('x', '2')
    t.same(data(a), [2])
  },
)

t.test('the last one leaves while another comes: the broker is not left', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x')
  rig.calls[0].done(null, answer())
  rig.taken()
  rig.subscribe(b, 'x', POSITIONED)
  rig.unsubscribe(a, 'x')
  const [pending] = rig.calls
  t.same(rig.taken(), ['subscribe x'])
  pending.done(null, answer(3, 'epoch'))
  rig.publish('x', '4', { offset: 4, epoch: 'epoch' })
  t.same(data(b), [4])
  rig.unsubscribe(b, 'x')
  t.same(rig.taken(), ['unsubscribe x'])
})

t.test('a subscribe that the broker fails leaves nothing behind, and the next one asks again', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x')
  rig.calls[0].done(errors.internal, answer())
  t.same(a.got, [{ error: errors.internal }])
  t.equal(rig.hub.channels.size, 0)
  rig.taken()
  rig.subscribe(b, 'x')
  t.same(rig.taken(), ['subscribe x first'])
})

t.test(
  'random comings and goings: the broker is asked for a channel exactly while it has subscribers',
  async t => {
    let seed = 11
    const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
    const rig = startHub()
    const sessions = Array.from({ length: 8 }, () => rig.session())
    const subscribed = new Set()
    const faults = []
    const pending = []
    const pull = () => {
      for (const call of rig.calls.splice(0)) {
        if (call.op === 'unsubscribe') {
          if (!subscribed.delete(call.channel)) faults.push('left a channel that was not asked for')
        } else {
          if (call.wants.first === subscribed.has(call.channel)) faults.push('first')
          subscribed.add(call.channel)
          pending.push(call)
        }
      }
    }
    const busy = new Map()
    for (let step = 0; step < 5000; step++) {
      const session = sessions[random(sessions.length)]
      const name = `ch${random(3)}`
      const key = `${sessions.indexOf(session)} ${name}`
      if (session.joined.has(name)) {
        busy.delete(key)
        rig.unsubscribe(session, name)
      } else if (!busy.has(key)) {
        busy.set(key, true)
        rig.subscribe(session, name, random(2) ? PLAIN : POSITIONED)
      }
      pull()
      if (random(2)) pending.shift()?.done(null, answer(0, 'epoch'))
      const counted = [...rig.hub.channels.values()].reduce((sum, { count }) => sum + count, 0)
      if (rig.hub.subscriptions !== counted) faults.push(`${rig.hub.subscriptions} of ${counted}`)
    }
    while (pending.length > 0) pending.shift().done(null, answer(0, 'epoch'))
    for (const session of sessions)
      for (const name of [...session.joined.keys()]) rig.unsubscribe(session, name)
    pull()
    t.same(faults, [])
    t.same([...subscribed], [])
    t.equal(rig.hub.channels.size, 0)
    t.equal(rig.hub.subscriptions, 0)
    for (const { topics } of sessions) t.equal(topics.size, 0)
  },
)

t.test(
  'a publication is handed to the socket server once for each codec and filter, however many receive it',
  async t => {
    const rig = startHub()
    const filter = { key: 'k', cmp: 'eq', val: 'a' }
    const sessions = Array.from({ length: 30 }, (_, i) => rig.session({ binary: i % 3 === 1 }))
    for (const [i, session] of sessions.entries())
      rig.subscribe(session, 'x', PLAIN, { filter: i % 3 === 2 ? filter : null, events: i % 2 === 0 })
    for (const { done } of rig.calls.splice(0)) done(null, answer())
    rig.publish('x', '1', { tags: { k: 'a' } })
    t.equal(rig.published, 3)
    rig.publish('x', '2', { tags: { k: 'b' } })
    t.equal(rig.published, 5)
    t.same(
      sessions.map(({ got }) => got.length - 1),
      sessions.map((_, i) => (i % 3 === 2 ? 1 : 2)),
    )
  },
)

t.test('joins and leaves go to those who want them only', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x', PLAIN, { events: true })
  rig.calls[0].done(null, answer())
  rig.subscribe(b, 'x')
  rig.hub.presence('x', '{"user":"u","client":"c"}', true)
  rig.hub.presence('unknown', '{}', true)
  rig.hub.presence('x', '{"user":"u","client":"c"}', false)
  t.match(a.got.slice(1), [
    { channel: 'x', join: { info: { user: 'u' } } },
    { channel: 'x', leave: { info: { client: 'c' } } },
  ])
  t.equal(b.got.length, 1)
})

t.test('what is not JSON ends those who can read nothing else, and reaches the others', async t => {
  const rig = startHub()
  const [json, other] = [rig.session(), rig.session({ binary: true })]
  for (const session of [json, other]) rig.subscribe(session, 'x')
  for (const { done } of rig.calls.splice(0)) done(null, answer())
  rig.publish('x', 'no json', { json: false })
  t.ok(json.refused)
  t.notOk(other.refused)
  t.equal(other.got.length, 2)
  t.equal(json.got.length, 1)
})

t.test('positions', async t => {
  const started = (offset = 5) => {
    const rig = startHub()
    const [positioned, plain] = [rig.session(), rig.session()]
    rig.subscribe(positioned, 'x', POSITIONED)
    rig.calls[0].done(null, answer(offset, 'epoch'))
    rig.subscribe(plain, 'x')
    rig.calls.splice(0)
    return { rig, positioned, plain }
  }

  t.test('what follows goes out', async t => {
    const { rig, positioned } = started()
    for (const offset of [6, 7, 8]) rig.publish('x', String(offset), { offset, epoch: 'epoch' })
    t.same(data(positioned), [6, 7, 8])
    t.same(positioned.lost, [])
  })

  t.test('what is not in history disturbs nothing', async t => {
    const { rig, positioned } = started()
    rig.publish('x', '6', { offset: 6, epoch: 'epoch' })
    rig.publish('x', '0')
    rig.publish('x', '7', { offset: 7, epoch: 'epoch' })
    t.same(data(positioned), [6, 0, 7])
    t.same(positioned.lost, [])
  })

  t.test('what is old is skipped', async t => {
    const { rig, positioned } = started()
    for (const offset of [4, 5, 6, 6, 1]) rig.publish('x', String(offset), { offset, epoch: 'epoch' })
    t.same(data(positioned), [6])
    t.same(positioned.lost, [])
  })

  for (const [name, offset, epoch] of [
    ['a gap', 7, 'epoch'],
    ['another epoch', 6, 'next'],
    ['another epoch that begins again', 1, 'next'],
  ]) {
    t.test(`${name} ends the positioned ones, and only them`, async t => {
      const { rig, positioned, plain } = started()
      rig.publish('x', 'true', { offset, epoch })
      t.same(positioned.lost, ['x'])
      t.same(data(positioned), [], 'nothing behind the gap')
      t.same(data(plain), [true])
    })
  }

  t.test('an empty epoch is taken from the first publication', async t => {
    const rig = startHub()
    const session = rig.session()
    rig.subscribe(session, 'x', POSITIONED)
    rig.calls[0].done(null, answer(0, ''))
    rig.publish('x', '1', { offset: 1, epoch: 'first' })
    rig.publish('x', '2', { offset: 2, epoch: 'first' })
    t.same(data(session), [1, 2])
    rig.publish('x', '1', { offset: 1, epoch: 'second' })
    t.same(session.lost, ['x'])
  })

  t.test(
    'a position that nothing confirms is compared with the stream, one that is confirmed is not',
    async t => {
      const { rig, positioned } = started()
      const check = () => {
        rig.hub.checkPositions(1000, () => 77)
        return rig.calls.splice(0)
      }
      rig.pass(999)
      t.same(check(), [])
      rig.publish('x', '6', { offset: 6, epoch: 'epoch' })
      rig.pass(999)
      t.same(check(), [])
      rig.pass(1)
      const [asked] = check()
      t.match(asked, { op: 'position', channel: 'x', metaTtl: 77 })
      t.same(check(), [], 'once')
      asked.done(null, 6, 'epoch')
      t.same(positioned.lost, [])
      rig.pass(1000)
      check()[0].done(errors.internal, 0, '')
      t.same(positioned.lost, [], 'no answer is no proof')
      rig.pass(1000)
      check()[0].done(null, 0, 'next')
      t.same(positioned.lost, ['x'])
      rig.pass(5000)
      t.same(check(), [], 'nobody relies on it any more')
    },
  )

  t.test('positions of 40,000 channels are checked in slices, each one time', async t => {
    const rig = startHub()
    const session = rig.session()
    const subscribe = name => {
      rig.subscribe(session, name, POSITIONED)
      rig.calls.pop().done(null, answer(0, 'epoch'))
    }
    for (let i = 0; i < 40_000; i++) subscribe(`c${i}`)
    rig.pass(1000)
    const metaTtl = name => (name === '' ? 0 : 1000)
    rig.hub.checkPositions(1000, metaTtl)
    const checked = () => rig.calls.filter(({ op }) => op === 'position').map(({ channel }) => channel)
    t.ok(checked().length < 40_000, `${checked().length} in the first slice`)
    let turns = 0
    for (; !checked().includes('c39999'); turns++) {
      // No second check begins, and channels come and go.
      rig.hub.checkPositions(1000, metaTtl)
      rig.unsubscribe(session, `c${turns}`)
      rig.unsubscribe(session, `c${30_000 + turns}`)
      subscribe(`c${30_000 + turns}`)
      await nextTurn()
    }
    t.ok(turns > 0, `${turns} turns`)
    const names = new Set(checked())
    t.equal(names.size, checked().length, 'none twice')
    t.equal(
      names.size,
      40_000 -
        Array.from({ length: turns }, (_, i) => `c${30_000 + i}`).filter(name => !names.has(name)).length,
    )
    for (const name of ['c0', 'c20000', 'c39999']) t.ok(names.has(name))
  })

  t.test('a new subscriber that learns of a new life of the stream stays, the old ones end', async t => {
    const { rig, positioned, plain } = started()
    const late = rig.session()
    rig.subscribe(late, 'x', POSITIONED)
    rig.calls[0].done(null, answer(0, 'next'))
    t.same(positioned.lost, ['x'])
    rig.publish('x', '1', { offset: 1, epoch: 'next' })
    t.same([data(late), data(plain), data(positioned)], [[1], [1], []])
    t.same(late.lost, [])
  })
})

t.test('those whose reply has to wait', async t => {
  const messages = buffer => buffer.messages.map(message => JSON.parse(String(message)).push.pub.data)

  /** A server-side subscription at connect: answered, but other answers are missing. */
  const waiting = wants => {
    const rig = startHub()
    const session = rig.session()
    /** @type {any} */
    let buffer
    rig.hub.prepare('x', wants, (_error, channel) => {
      buffer = rig.hub.buffer(channel, session.codec, null, wants.position, false, 1000)
    })
    rig.calls[0].done(null, answer(wants.position ? 5 : 0, wants.position ? 'epoch' : ''))
    return { rig, buffer }
  }

  t.test('get what was published meanwhile', async t => {
    const { rig, buffer } = waiting(POSITIONED)
    for (const offset of [6, 7]) rig.publish('x', String(offset), { offset, epoch: 'epoch' })
    rig.publish('x', '0')
    t.same(messages(buffer), [6, 7, 0])
    t.equal(buffer.fault, null)
  })

  t.test('are told when they missed something', async t => {
    const { rig, buffer } = waiting(POSITIONED)
    rig.publish('x', '9', { offset: 9, epoch: 'epoch' })
    t.equal(buffer.fault, disconnects.insufficientState)
  })

  t.test('are told when more was published than may wait for them', async t => {
    const { rig, buffer } = waiting(POSITIONED)
    const text = JSON.stringify('x'.repeat(400))
    for (const offset of [6, 7]) rig.publish('x', text, { offset, epoch: 'epoch' })
    t.equal(buffer.fault, null)
    for (const offset of [8, 9]) rig.publish('x', text, { offset, epoch: 'epoch' })
    t.equal(buffer.fault, disconnects.slow)
    t.same(buffer.messages, [], 'nothing is kept')
  })

  t.test('are told when the stream began a new life', async t => {
    const { rig, buffer } = waiting(POSITIONED)
    rig.subscribe(rig.session(), 'x', POSITIONED)
    rig.calls[1].done(null, answer(0, 'next'))
    t.equal(buffer.fault, disconnects.insufficientState)
  })

  t.test('cannot lose a position that they do not have', async t => {
    const { rig, buffer } = waiting(PLAIN)
    for (const [offset, epoch] of [
      [57, 'epoch'],
      [60, 'epoch'],
      [1, 'next'],
    ])
      rig.publish('x', String(offset), { offset, epoch })
    t.equal(buffer.fault, null)
    t.same(messages(buffer), [57, 60, 1])
  })

  t.test('are ended by what they cannot read', async t => {
    const { rig, buffer } = waiting(PLAIN)
    rig.publish('x', 'no json', { json: false })
    t.same(buffer.messages, [])
    t.equal(buffer.fault, disconnects.inappropriateProtocol)
  })
})
