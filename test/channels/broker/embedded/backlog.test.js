// Workers that read slowly or not at all, and their effect on others.

import t from 'tap'
import { Link } from '../../../../src/channels/broker/embedded/host.js'
import { connectWithin } from '../../../../src/channels/broker/embedded/loop.js'
import { turn, until } from '../../../kit/wait.js'
import { LIVE, offsets, Peer, upTo } from '../conformance/peer.js'
import { startEmbedded } from './rig.js'

const MB = 1_000_000
const payload = `"${'x'.repeat(MB)}"`

/** A worker whose socket is paused and counted by the test. */
async function joinSlow(rig) {
  const peer = await Peer.join(rig)
  const socket = rig.sockets.get(peer.broker)
  let bytes = 0
  socket.on('data', chunk => (bytes += chunk.length))
  return {
    peer,
    socket,
    /** Reads at least this number of bytes, then stops. */
    async read(count) {
      const goal = bytes + count
      socket.resume()
      await until(() => bytes >= goal)
      socket.pause()
    },
  }
}

/** Publishes of one worker, with the number of replies. */
function flood(peer, channel, count) {
  const state = { answered: 0, all: Promise.resolve() }
  const publishes = upTo(count).map(() => peer.publish(channel, payload, LIVE).then(() => state.answered++))
  state.all = Promise.all(publishes).then(() => {})
  return state
}

t.test('a worker that recovers much and reads nothing does not delay others', async t => {
  const rig = await startEmbedded(t)
  const a = await Peer.join(rig)
  const { peer: b, socket } = await joinSlow(rig)
  const kept = { historySize: 60, historyTtl: 600_000 }
  for (const _ of upTo(60)) await a.publish('large', 'x'.repeat(20_000), kept)
  socket.pause()
  const reads = upTo(30).map(n =>
    n % 2
      ? b.subscribe('large', { first: n === 1, recover: { offset: 0, epoch: '', limit: 0 } })
      : b.history('large', {}),
  )
  for (const n of upTo(20)) {
    t.match(await a.publish('other', '1', kept), { offset: n }, 'answered')
    t.same(rig.host.tick(), [], 'nobody is stuck')
  }
  t.match(await a.publish('large', '61', kept), { offset: 61 })
  socket.resume()
  for (const { publications } of await Promise.all(reads)) {
    const [first] = publications
    t.same(offsets(publications), upTo(publications.length, first.offset))
    t.equal(publications.at(-1).offset, 61, 'those that were read later have it')
  }
})

t.test('only publishers to a worker that is far behind are delayed', async t => {
  const rig = await startEmbedded(t)
  const [a, c] = [await Peer.join(rig), await Peer.join(rig)]
  const { peer: b, socket } = await joinSlow(rig)
  await b.subscribe('flood')
  socket.pause()
  const flooding = flood(a, 'flood', 25)
  await until(() => flooding.answered >= 17)
  for (const n of upTo(5)) t.match(await c.publish('other', '1'), { offset: n })
  t.ok(flooding.answered < 25, `${flooding.answered} of 25 are answered`)
  socket.resume()
  await flooding.all
  await b.waitForEvents(25)
})

t.test('a worker that exits while it is behind is removed', async t => {
  const rig = await startEmbedded(t)
  const [a, c] = [await Peer.join(rig), await Peer.join(rig)]
  const { peer: b, socket } = await joinSlow(rig)
  await a.subscribe('room', { client: 'a', info: '{"user":"a","client":"a"}', leave: true })
  await c.subscribe('room')
  await b.subscribe('flood')
  socket.pause()
  const flooding = flood(a, 'flood', 25)
  flooding.all.catch(() => {})
  await until(() => flooding.answered >= 17)
  rig.cut(a.broker)
  socket.resume()
  t.match(await c.waitForEvents(1), [{ type: 'leave', channel: 'room' }])
  t.match(await c.publish('other', '1'), { offset: 1 })
})

t.test('a worker that reads nothing is stuck, a slow one is not', async t => {
  const rig = await startEmbedded(t)
  const { peer: b, socket, read } = await joinSlow(rig)
  await b.subscribe('flood')
  // A second worker waits until the first one knows that it is no longer alone.
  const publishers = []
  for (const _ of upTo(5)) publishers.push(await Peer.join(rig))
  await publishers[0].position('flood')
  socket.pause()
  const floods = []
  // Each adds a publication before it has to wait.
  for (const publisher of publishers) {
    floods.push(flood(publisher, 'flood', 8))
    for (const _ of upTo(20)) await turn()
  }
  for (const { all } of floods) all.catch(() => {})
  const answered = () => floods.reduce((sum, flood) => sum + flood.answered, 0)
  await until(() => answered() >= 20)
  for (const second of upTo(12)) {
    await read(400_000)
    t.same(rig.host.tick(), [], `second ${second}: it has read`)
  }
  t.ok(answered() < 40, 'other publishers still wait')
  let named = []
  let seconds = 0
  for (; named.length === 0 && seconds < 10; seconds++) {
    for (const _ of upTo(20)) await turn()
    named = rig.host.tick()
  }
  t.same(named, ['0'])
  t.ok(seconds >= 5, 'not stuck before five seconds')
})

t.test('no worker counts as stuck if the write queue size is unknown', async t => {
  for (const _handle of [{}, null]) {
    const link = new Link(/** @type {any} */ ({ _handle }), '0', 0, 0, /** @type {any} */ (undefined))
    t.notOk(upTo(20).some(() => link.check()))
  }
})

t.test('large results for the embedding program do not block others', async t => {
  const rig = await startEmbedded(t)
  const within = connectWithin(rig.host, 'node-under-test', /** @type {any} */ (rig.log))
  t.teardown(() => within.close())
  const large = 'x'.repeat(18 * MB)
  const worker = await rig.join({ survey: () => large })
  const publish = (/** @type {any} */ { pubsub }, /** @type {string} */ data) =>
    new Promise(resolve =>
      pubsub.publish('large', data, { historySize: 1, historyTtl: 600_000, metaTtl: 600_000 }, resolve),
    )
  t.equal(await publish(within, large), null)
  t.match((await within.pubsub.history('large', { limit: -1 }, 600_000)).publications, { length: 1 })
  t.equal(await publish(within, '1'), null, 'the program is answered')
  t.match(await within.control.survey('large', {}), { length: 1 })
  t.equal(await publish(worker, '2'), null, 'the worker is answered')
})
