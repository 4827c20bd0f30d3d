// Presence, surveys, counts.

import { errors } from '../../../../src/base/errors.js'
import { failure, upTo } from './peer.js'

export function presence(test) {
  const info = (user, client, more = '') => `{"user":"${user}","client":"${client}"${more}}`

  test('presence lists the clients of all workers', 2, async (t, _rig, a, b) => {
    t.same(await a.broker.presence.list('p'), new Map())
    t.same(await a.broker.presence.stats('p'), { clients: 0, users: 0 })
    const odd = info('ü\\"', 'c3', ',"conn_info":{"name":"ключ 🎈"}')
    await a.subscribe('p', { client: 'c1', info: info('anna', 'c1') })
    await a.subscribe('p', { first: false, client: 'c2', info: info('anna', 'c2') })
    await b.subscribe('p', { client: 'c3', info: odd })
    await b.subscribe('p', { first: false, client: 'c4', info: info('', 'c4') })
    await b.subscribe('p', { first: false, client: 'c5', info: info('', 'c5') })
    await b.subscribe('p', { first: false })
    for (const { broker } of [a, b]) {
      const presence = await broker.presence.list('p')
      t.same([...presence.keys()].sort(), ['c1', 'c2', 'c3', 'c4', 'c5'])
      t.equal(presence.get('c3'), odd)
      t.same(await broker.presence.stats('p'), { clients: 5, users: 3 }, 'anonymous clients are one user')
    }
    a.broker.presence.remove('p', 'c1')
    a.broker.presence.remove('p', 'unknown')
    a.broker.presence.remove('unknown', 'c2')
    t.same(await a.broker.presence.stats('p'), { clients: 4, users: 3 })
    a.broker.presence.remove('p', 'c2')
    a.broker.pubsub.unsubscribe('p')
    t.same(await a.broker.presence.stats('p'), { clients: 3, users: 2 })
    t.same([...(await a.broker.presence.list('p')).keys()].sort(), ['c3', 'c4', 'c5'])
  })

  test('presence updates replace the info of a client, but do not add clients', 2, async (t, _rig, a, b) => {
    await a.subscribe('p', { client: 'c1', info: info('anna', 'c1', ',"conn_info":1'), leave: true })
    a.broker.presence.update('p', 'c1', info('anna', 'c1', ',"conn_info":2'), true)
    a.broker.presence.update('p', 'unknown', info('bob', 'unknown'), true)
    a.broker.presence.update('unknown', 'c1', info('anna', 'c1'), true)
    t.same(await a.broker.presence.list('p'), new Map([['c1', info('anna', 'c1', ',"conn_info":2')]]))
    t.same(await b.broker.presence.list('p'), new Map([['c1', info('anna', 'c1', ',"conn_info":2')]]))
    t.same(await a.broker.presence.stats('p'), { clients: 1, users: 1 })
    t.same(await a.broker.presence.list('unknown'), new Map())
    a.broker.presence.remove('p', 'c1')
    a.broker.presence.update('p', 'c1', info('anna', 'c1', ',"conn_info":3'), true)
    t.same(await a.broker.presence.list('p'), new Map())
  })

  test('joins and leaves reach every subscribed worker in order', 3, async (t, _rig, a, b, c) => {
    await a.subscribe('room')
    await b.subscribe('room')
    await c.subscribe('other')
    a.broker.pubsub.announce('room', info('anna', 'c1'), true)
    await a.publish('room', '1')
    a.broker.pubsub.announce('room', info('anna', 'c1'), false)
    for (const peer of [a, b]) {
      t.match(await peer.waitForEvents(3), [
        { type: 'join', channel: 'room', info: { user: 'anna', client: 'c1' } },
        { type: 'publication' },
        { type: 'leave', channel: 'room', info: { user: 'anna', client: 'c1' } },
      ])
    }
    await c.position('other')
    t.same(c.events, [])
  })
}

export function control(test) {
  test('a survey reaches every worker, including its caller', 3, async (t, _rig, ...peers) => {
    for (const [i, peer] of peers.entries()) peer.survey = (op, params) => ({ i, op, params })
    const params = { text: 'é🎈', list: [1, null] }
    for (const peer of peers) {
      const answers = await peer.broker.control.survey('who', params)
      const sorted = answers.sort((x, y) => x.i - y.i)
      t.same(
        sorted,
        upTo(3, 0).map(i => ({ i, op: 'who', params })),
      )
    }
    peers[1].survey = () => undefined
    const empty = (await peers[0].broker.control.survey('who', params)).filter(answer => answer === null)
    t.same(empty, [null], 'undefined is returned as null')
  })

  test('a survey fails if one worker fails', 2, async (t, _rig, a, b) => {
    b.survey = () => {
      throw new Error('on purpose')
    }
    t.equal(await failure(a.broker.control.survey('x', {})), errors.internal)
    b.survey = () => Promise.reject(new Error('on purpose'))
    t.equal(await failure(a.broker.control.survey('x', {})), errors.internal)
    b.survey = () => Promise.resolve(1)
    a.survey = () => 1
    t.same(await a.broker.control.survey('x', {}), [1, 1], 'an operation may take time')
  })

  test('concurrent surveys return their own results', 2, async (t, _rig, a, b) => {
    a.survey = (_op, n) => n
    b.survey = (_op, n) => -n
    const all = await Promise.all(upTo(50).map(n => (n % 2 ? a : b).broker.control.survey('n', n)))
    const sorted = all.map(answers => answers.sort((x, y) => x - y))
    t.same(
      sorted,
      upTo(50).map(n => [-n, n]),
    )
  })

  test('the connections of a user are counted across all workers', 2, async (t, _rig, a, b) => {
    t.same([await a.claim('u', 2), await b.claim('u', 2), await a.claim('u', 2)], [true, true, false])
    t.equal(await a.claim('w', 2), true)
    b.broker.control.releaseUser('u')
    b.broker.control.releaseUser('u')
    b.broker.control.releaseUser('nobody')
    const admitted = [await b.claim('u', 2), await b.claim('u', 2)]
    t.same(admitted, [true, false], 'a worker cannot release the claims of others')
  })
}
