// Delivery of publications.

import { errors } from '../../../../src/base/errors.js'
import { until } from '../../../kit/wait.js'
import { failure, HOUR, KEPT, LIVE, offsets, texts, upTo, WANTS } from './peer.js'

export function delivery(test) {
  test('a publication reaches exactly the subscribed workers', 3, async (t, _rig, a, b, c) => {
    await Promise.all([a.subscribe('news'), b.subscribe('news'), c.subscribe('other')])
    const { offset, epoch } = await a.publish('news', '{"n":1}')
    t.equal(offset, 1)
    t.match(epoch, /^\S+$/)
    t.equal(a.events.length, 1, 'delivered to the publisher before `done`')
    await b.waitForEvents(1)
    for (const { events } of [a, b])
      t.match(events, [
        {
          type: 'publication',
          channel: 'news',
          offset: 1,
          epoch,
          info: '',
          tags: null,
          version: 0n,
          json: true,
        },
      ])
    t.same(texts(b.events), ['{"n":1}'])
    await c.publish('other', '1')
    t.same(texts(c.events), ['1'], 'other channels are not delivered')
  })

  test('a publication without history has no offset and no epoch', 2, async (t, _rig, a, b) => {
    await b.subscribe('live', { position: false })
    t.same(await a.publish('live', '1', LIVE), { offset: 0, epoch: '' })
    await b.waitForEvents(1)
    t.match(b.events[0], { offset: 0, epoch: '' })
    const answer = await b.subscribe('live', { first: false })
    t.equal(answer.offset, 0, 'it is not in the stream')
  })

  test('all fields of a publication are live, recovered and in history', 2, async (t, _rig, a, b) => {
    const info = '{"user":"ü","client":"c"}'
    const tags = { ключ: 'значение', __proto__tag: '', e: '<&>' }
    const channel = 'ns:канал 🎈'
    const payloads = [
      '{"text":"é🎈\\u2028"}',
      Buffer.from([0, 255, 10, 13, 128]),
      '',
      'x'.repeat(1_000_000),
      '"end"',
    ]
    await b.subscribe(channel)
    for (const [i, data] of payloads.entries())
      await a.publish(channel, data, {
        info,
        tags,
        version: 2n ** 63n + BigInt(i),
        json: typeof data === 'string',
      })
    await b.waitForEvents(payloads.length)
    const recovered = (await a.subscribe(channel, { recover: { offset: 0, epoch: '', limit: 0 } }))
      .publications
    const kept = (await b.history(channel, {})).publications
    for (const [how, list] of Object.entries({ live: b.events, recovered, kept })) {
      t.same(
        list.map(({ data }) =>
          Buffer.compare(data, Buffer.from(payloads[list.findIndex(p => p.data === data)])),
        ),
        [0, 0, 0, 0, 0],
        how,
      )
      t.same(offsets(list), [1, 2, 3, 4, 5], how)
      for (const [i, publication] of list.entries()) {
        t.equal(publication.info, info, how)
        t.same({ ...publication.tags }, tags, how)
        t.equal(publication.version, 2n ** 63n + BigInt(i), how)
        t.equal(publication.json, i !== 1, how)
      }
    }
  })

  test('unsubscribe stops delivery, subscribing again resumes it', 2, async (t, _rig, a, b) => {
    for (let round = 0; round < 20; round++) {
      // Without waiting: the two must keep their order.
      a.broker.pubsub.unsubscribe('room')
      const subscribed = a.subscribe('room', { position: false })
      await subscribed
      await b.publish('room', String(round), LIVE)
      await a.waitForEvents(round + 1)
    }
    a.broker.pubsub.unsubscribe('room')
    await a.position('room')
    await b.publish('room', 'undelivered', LIVE)
    await a.position('room')
    t.same(texts(a.events), upTo(20, 0).map(String))
  })

  test('each callback is called once, never before the method returns', 2, async (t, rig, a) => {
    let returned = false
    const early = []
    const calls = {}
    const counted = name => error => {
      if (!returned) early.push(name)
      calls[name] = [...(calls[name] ?? []), error?.code ?? 0]
    }
    const ask = () => {
      a.broker.pubsub.subscribe('x', WANTS, counted('subscribe'))
      a.broker.pubsub.publish('x', '1', KEPT, counted('publish'))
      a.broker.pubsub.position('x', HOUR, counted('position'))
      a.broker.control.claimUser('u', 5, counted('claimUser'))
      returned = true
    }
    ask()
    // The parts may be on different servers.
    await until(() => Object.keys(calls).length >= 4)
    returned = false
    t.ok(a.broker.ready())
    // Once with a pending reply, once unreachable from the start.
    ask()
    rig.cut(a.broker)
    t.equal(await failure(a.history('x')), errors.internal)
    t.notOk(a.broker.ready())
    returned = false
    ask()
    t.equal(await failure(a.broker.presence.list('x')), errors.internal)
    t.same(early, [])
    t.same(calls, {
      subscribe: [0, 100, 100],
      publish: [0, 100, 100],
      position: [0, 100, 100],
      claimUser: [0, 100, 100],
    })
  })
}

export function order(test) {
  test('all workers receive a channel in the order of its offsets', 3, async (t, _rig, ...peers) => {
    const each = 300
    await Promise.all(peers.map(peer => peer.subscribe('busy')))
    const published = await Promise.all(
      peers.flatMap((peer, p) => upTo(each).map(i => peer.publish('busy', `"${p}-${i}"`))),
    )
    await Promise.all(peers.map(peer => peer.waitForEvents(3 * each)))
    t.same(offsets(peers[0].events), upTo(3 * each))
    for (const peer of peers) t.same(texts(peer.events), texts(peers[0].events))
    for (const [p] of peers.entries()) {
      const own = texts(peers[0].events).filter(text => text.startsWith(`"${p}-`))
      t.same(
        own,
        upTo(each).map(i => `"${p}-${i}"`),
        'each publisher in the order of its calls',
      )
      const answered = published.slice(p * each, (p + 1) * each).map(({ offset }) => offset)
      t.same(
        answered,
        peers[0].events.filter(({ data }) => String(data).startsWith(`"${p}-`)).map(({ offset }) => offset),
      )
    }
  })

  test('a first subscription begins after the offset of its reply', 2, async (t, _rig, a, b) => {
    const rounds = 30
    for (let round = 0; round < rounds; round++) {
      const channel = `stream${round}`
      const before = upTo(5).map(() => b.publish(channel, '0'))
      const subscribed = new Promise(resolve =>
        a.broker.pubsub.subscribe(channel, WANTS, (_error, { offset }) =>
          resolve({ offset, delivered: a.events.length }),
        ),
      )
      const after = upTo(5).map(() => b.publish(channel, '0'))
      const { offset, delivered } = await subscribed
      await Promise.all([...before, ...after])
      await a.position(channel)
      t.equal(delivered, 0, 'no delivery before the reply')
      t.same(offsets(a.events), upTo(10 - offset, offset + 1))
      a.events = []
    }
  })

  test('the offset of a reply is that of the last delivered publication', 2, async (t, _rig, a, b) => {
    await a.subscribe('stream')
    const seen = []
    const note = (_error, { offset }) => seen.push([offset, a.events.length])
    const publications = []
    for (let i = 0; i < 100; i++) {
      publications.push(b.publish('stream', String(i)))
      if (i % 3 === 0) a.broker.pubsub.subscribe('stream', { ...WANTS, first: false }, note)
      if (i % 3 === 1) a.broker.pubsub.position('stream', HOUR, (error, offset) => note(error, { offset }))
      if (i % 10 === 0) await new Promise(setImmediate)
    }
    await Promise.all(publications)
    await a.waitForEvents(100)
    // Requested last, so answered last.
    await a.position('stream')
    t.equal(seen.length, 67)
    const wrong = seen.filter(([offset, delivered]) => delivered !== offset)
    t.same(wrong, [])
    t.same(offsets(a.events), upTo(100))
  })
}
