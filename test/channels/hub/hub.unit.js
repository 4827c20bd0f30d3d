import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { disconnects, errors } from '../../../src/base/errors.js'
import { answer, PLAIN, POSITIONED, startHub } from './rig.js'

const data = session => session.got.filter(({ pub }) => pub).map(({ pub }) => pub.data)

t.test('the first subscriber subscribes, the last one unsubscribes the worker', async t => {
  const rig = startHub()
  const [a, b] = [rig.session(), rig.session()]
  rig.subscribe(a, 'x')
  t.same(a.got, [], 'no reply before the broker has answered')
  rig.calls[0].done(null, answer())
  t.same(rig.taken(), ['subscribe x first'])
  rig.subscribe(b, 'x')
  t.same(b.got, [{ reply: 'x', offset: 0 }], 'immediately, without the broker')
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

t.test('a second subscriber sends its own request before the first reply', async t => {
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

t.test('a failed first subscription does not affect a successful second one', async t => {
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
})

t.test('a new subscription gets nothing from the old one', async t => {
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
})

t.test('the broker stays subscribed while another subscriber joins', async t => {
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

t.test('a failed subscription removes the channel', async t => {
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

t.test('the broker is subscribed exactly while there are subscribers', async t => {
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
        if (!subscribed.delete(call.channel)) faults.push('left a channel without a subscription')
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
})

t.test('joins and leaves are sent on request', async t => {
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

t.test('positions of subscribers', async t => {
  const started = (offset = 5) => {
    const rig = startHub()
    const [positioned, plain] = [rig.session(), rig.session()]
    rig.subscribe(positioned, 'x', POSITIONED)
    rig.calls[0].done(null, answer(offset, 'epoch'))
    rig.subscribe(plain, 'x')
    rig.calls.splice(0)
    return { rig, positioned, plain }
  }

  t.test('publications outside history do not change the position', async t => {
    const { rig, positioned } = started()
    rig.publish('x', '6', { offset: 6, epoch: 'epoch' })
    rig.publish('x', '0')
    rig.publish('x', '7', { offset: 7, epoch: 'epoch' })
    t.same(data(positioned), [6, 0, 7])
    t.same(positioned.lost, [])
  })

  t.test('old offsets are skipped', async t => {
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
    t.test(`${name} ends only positioned subscriptions`, async t => {
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

  t.test('an unconfirmed position is compared with the stream', async t => {
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
    const [request] = check()
    t.match(request, { op: 'position', channel: 'x', metaTtl: 77 })
    t.same(check(), [], 'once')
    request.done(null, 6, 'epoch')
    t.same(positioned.lost, [])
    rig.pass(1000)
    check()[0].done(errors.internal, 0, '')
    t.same(positioned.lost, [], 'a missing reply is no confirmation')
    rig.pass(1000)
    check()[0].done(null, 0, 'next')
    t.same(positioned.lost, ['x'])
    rig.pass(5000)
    t.same(check(), [], 'no subscriber needs the check')
  })

  t.test('40,000 positions are checked in slices', async t => {
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
      // No second check begins, and channels are added and removed.
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

  t.test('a new epoch ends earlier positioned subscriptions', async t => {
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

t.test('pending subscriptions buffer publications', async t => {
  const messages = buffer => buffer.messages.map(message => JSON.parse(String(message)).push.pub.data)

  /** A server-side subscription at connect: it is confirmed, others are pending. */
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

  const text = JSON.stringify('x'.repeat(400))
  const at = (offset, data = String(offset), epoch = 'epoch') => [data, { offset, epoch }]
  /** Title, wants, publications, held payloads, fault. @type {any[][]} */
  const rows = [
    ['hold publications', POSITIONED, [at(6), at(7), ['0']], [6, 7, 0], null],
    ['fail on a gap', POSITIONED, [at(9)], [], disconnects.insufficientState],
    ['hold what is within their limit', POSITIONED, [at(6, text), at(7, text)], null, null],
    ['fail beyond their limit', POSITIONED, [6, 7, 8, 9].map(n => at(n, text)), [], disconnects.slow],
    ['have no gaps without a position', PLAIN, [at(57), at(60), at(1, '1', 'next')], [57, 60, 1], null],
    [
      'fail on other bytes than JSON',
      PLAIN,
      [['no', { json: false }]],
      [],
      disconnects.inappropriateProtocol,
    ],
  ]
  for (const [title, wants, publications, held, fault] of rows)
    t.test(title, async t => {
      const { rig, buffer } = waiting(wants)
      for (const publication of publications) rig.publish('x', ...publication)
      t.equal(buffer.fault, fault)
      if (held) t.same(messages(buffer), held)
    })

  t.test('a new epoch fails the buffer', async t => {
    const { rig, buffer } = waiting(POSITIONED)
    rig.subscribe(rig.session(), 'x', POSITIONED)
    rig.calls[1].done(null, answer(0, 'next'))
    t.equal(buffer.fault, disconnects.insufficientState)
  })
})
