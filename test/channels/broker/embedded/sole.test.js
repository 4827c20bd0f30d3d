// The only worker of a node delivers publications without history by itself; a second one ends that.

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

/** Resolves when the worker delivers by itself. */
async function alone(rig, peer) {
  await until(async () => {
    const before = sent(rig, peer)
    await peer.publish('unused', '0', LIVE)
    return sent(rig, peer) === before
  })
}

t.test('its publications do not go to the primary', async t => {
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
  // The caller may reuse them after the call.
  bytes.fill(0)
  t.same(ofA(peer), [], 'nothing is delivered within the call')
  t.same(await Promise.all(answers), Array(4).fill({ offset: 0, epoch: '' }))
  const plain = { type: 'publication', channel: 'a', offset: 0, epoch: '', version: 0n }
  t.same(ofA(peer), [
    { ...plain, info: '', tags: null, json: true, delta: false, data: Buffer.from('1') },
    { ...plain, info: '{"user":"u"}', tags, json: true, delta: true, data: Buffer.from('ü') },
    { ...plain, info: '', tags: null, json: false, delta: false, data: Buffer.from('3') },
  ])
  t.equal(sent(rig, peer), before)
})

t.test('order stays that of the calls, whatever the options', async t => {
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
    t.same(
      texts(peer.events.slice(first)),
      kinds.map((_, i) => `${round}-${i}`),
    )
  }
})

t.test('a publication behind a subscribe reaches its subscriber', async t => {
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

t.test('an error of the receiver is logged, and the publish is answered', async t => {
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

t.test('from the subscription of a second worker on, both see all publications in one order', async t => {
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
  t.same(
    all.filter(text => /^\d/.test(text)),
    upTo(last).map(String),
    'nothing is lost, and the order is that of the calls',
  )
  const common = published(second)
  t.same(all.slice(-common.length), common, 'what the second one sees is the end of what the first one sees')
  t.ok(Number(common.find(text => /^\d/.test(text))) <= answered + 1, 'from its subscription on')

  rig.cut(second.broker)
  await alone(rig, first)
  t.pass('the first one is alone again')
})

t.test(
  'an embedding program publishes, too: what follows its answered publication comes after it',
  async t => {
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
  },
)

t.test('a worker that ends before it has answered holds nobody up', async t => {
  const rig = await startEmbedded(t)
  const silent = await rig.socket('silent', 1)
  const peer = await Peer.join(rig)
  const other = await Peer.join(rig)
  const answers = Promise.all([peer.subscribe('a'), other.subscribe('a')])
  // SOLE 1 and SOLE 0: it was asked.
  let bytes = 0
  for await (const chunk of silent) if ((bytes += chunk.length) >= 12) break
  silent.destroy()
  await answers
  await other.publish('a', '1', LIVE)
  await peer.waitForEvents(1)
  t.same([published(peer), published(other)], [['1'], ['1']])
})
