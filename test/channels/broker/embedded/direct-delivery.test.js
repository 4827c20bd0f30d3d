// The only worker of a node delivers publications without history itself, until there is a second one.

import t from 'tap'
import { connectWithin } from '../../../../src/channels/broker/embedded/host.js'
import { until } from '../../../kit/wait.js'
import { KEPT, LIVE, Peer, texts, upTo } from '../conformance/peer.js'
import { startEmbedded } from './rig.js'

/** Bytes that a worker has sent to the primary. */
const sent = (rig, peer) => rig.sockets.get(peer.broker).bytesWritten

/** Publications of channel `a`: the hub ignores those of channels without subscribers. */
const ofA = peer => peer.events.filter(({ type, channel }) => type === 'publication' && channel === 'a')

const published = peer => texts(ofA(peer))

/** Resolves when the worker delivers directly. */
async function alone(rig, peer) {
  await until(async () => {
    const before = sent(rig, peer)
    await peer.publish('unused', '0', LIVE)
    return sent(rig, peer) === before
  })
}

t.test('publications of a worker to its own subscribers do not pass the primary', async t => {
  const rig = await startEmbedded(t)
  const peer = await Peer.join(rig)
  await peer.subscribe('a')
  await alone(rig, peer)
  const before = sent(rig, peer)
  const tags = { b: 'c' }
  const bytes = Buffer.from('3')
  const answers = [
    peer.publish('a', '1', LIVE),
    peer.publish('a', 'ü', { ...LIVE, info: '{"user":"u"}', tags, delta: true }),
    peer.publish('a', bytes, { ...LIVE, json: false }),
    peer.publish('nobody', '4', LIVE),
  ]
  // The caller may reuse the buffers after the call.
  bytes.fill(0)
  t.same(ofA(peer), [], 'nothing is delivered within the call')
  t.same(await Promise.all(answers), Array(4).fill({ offset: 0, epoch: '' }))
  const none = { keyed: null, target: null }
  const plain = { type: 'publication', channel: 'a', offset: 0, epoch: '', version: 0n, ...none }
  t.same(ofA(peer), [
    { ...plain, info: '', tags: null, json: true, delta: false, data: Buffer.from('1') },
    { ...plain, info: '{"user":"u"}', tags, json: true, delta: true, data: Buffer.from('ü') },
    { ...plain, info: '', tags: null, json: false, delta: false, data: Buffer.from('3') },
  ])
  t.equal(sent(rig, peer), before)
})

t.test('publications keep the order of their calls', async t => {
  const rig = await startEmbedded(t)
  const peer = await Peer.join(rig)
  await peer.subscribe('a')
  await alone(rig, peer)
  const kinds = [LIVE, KEPT, LIVE, { ...LIVE, idempotencyKey: 'k' }, LIVE]
  for (let round = 0; round < 20; round++) {
    const first = peer.events.length
    await Promise.all(
      kinds.map((options, i) =>
        peer.publish('a', `${round}-${i}`, {
          ...options,
          idempotencyKey: options.idempotencyKey && `${round}`,
        }),
      ),
    )
    const delivered = texts(peer.events.slice(first))
    t.same(
      delivered,
      kinds.map((_, i) => `${round}-${i}`),
    )
  }
})

t.test('a publication after a subscribe reaches its subscriber', async t => {
  const rig = await startEmbedded(t)
  const peer = await Peer.join(rig)
  await alone(rig, peer)
  const order = []
  const subscribed = peer.subscribe('a').then(() => order.push('subscribed'))
  const answered = peer.publish('a', '1', LIVE).then(() => order.push('published'))
  await Promise.all([subscribed, answered])
  t.same(order, ['subscribed', 'published'])
  t.same(published(peer), ['1'])
})

t.test('an exception in the receiver is logged, and the publish gets its reply', async t => {
  const rig = await startEmbedded(t)
  const peer = await Peer.join(rig)
  await alone(rig, peer)
  const failing = {
    type: 'publication',
    get channel() {
      throw new Error('receiver')
    },
  }
  peer.events.push = /** @type {any} */ (() => failing.channel)
  await peer.publish('a', '1', LIVE)
  t.match(rig.log.lines, [{ level: 'error', err: { message: 'receiver' } }])
})

t.test('two workers receive all publications in the same order', async t => {
  const rig = await startEmbedded(t)
  const first = await Peer.join(rig)
  await first.subscribe('a')
  await alone(rig, first)
  let publishing = true
  const answers = []
  let last = 0
  const publish = () => {
    for (let i = 0; i < 3; i++) answers.push(first.publish('a', String(++last), LIVE))
    if (publishing) setImmediate(publish)
  }
  publish()
  const second = await Peer.join(rig)
  await second.subscribe('a')
  const answered = last
  for (let i = 0; i < 50; i++) answers.push(await second.publish('a', `b${i}`, LIVE))
  publishing = false
  await Promise.all(answers)
  await first.publish('a', 'end', LIVE)
  await until(() => published(second).at(-1) === 'end')
  const all = published(first)
  const numbers = all.filter(text => /^\d/.test(text))
  t.same(numbers, upTo(last).map(String), 'nothing is lost, in the order of the calls')
  const common = published(second)
  t.same(all.slice(-common.length), common, 'the second worker receives the same sequence')
  t.ok(Number(common.find(text => /^\d/.test(text))) <= answered + 1, 'starting with its subscription')

  rig.cut(second.broker)
  await alone(rig, first)
  t.pass('the first one is alone again')
})

t.test('publications of a worker and an embedding program have one order', async t => {
  const rig = await startEmbedded(t)
  const peer = await Peer.join(rig)
  await peer.subscribe('a')
  await alone(rig, peer)
  const program = connectWithin(rig.host, 'node', rig.log)
  for (let i = 0; i < 20; i++) {
    await new Promise(resolve => program.pubsub.publish('a', `${2 * i}`, LIVE, resolve))
    await peer.publish('a', `${2 * i + 1}`, LIVE)
  }
  t.same(published(peer), upTo(40, 0).map(String))
  program.close()
  await alone(rig, peer)
  t.pass('without the program the worker is alone again')
})

t.test('a worker that exits before its acknowledgement does not delay others', async t => {
  const rig = await startEmbedded(t)
  const ending = await rig.socket('ending', 1)
  const peer = await Peer.join(rig)
  const other = await Peer.join(rig)
  const answers = Promise.all([peer.subscribe('a'), other.subscribe('a')])
  // The frames ONLY 1 and ONLY 0.
  let bytes = 0
  for await (const chunk of ending) if ((bytes += chunk.length) >= 12) break
  ending.destroy()
  await answers
  await other.publish('a', '1', LIVE)
  await peer.waitForEvents(1)
  t.same([published(peer), published(other)], [['1'], ['1']])
})
