import { once } from 'node:events'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { failure, HOUR, Peer, texts, upTo } from '../conformance/peer.js'
import { startEmbedded } from './rig.js'

t.test('clients of an exited worker leave presence immediately', async t => {
  const rig = await startEmbedded(t)
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  const info = client => `{"user":"ü","client":"${client}"}`
  await b.subscribe('room', { client: 'b1', info: info('b1'), leave: true })
  await a.subscribe('room', { client: 'a1', info: info('a1'), leave: true })
  await a.subscribe('room', { first: false, client: 'a2', info: info('a2'), leave: false })
  await a.subscribe('other', { client: 'a3', info: info('a3'), leave: true })
  rig.cut(a.broker)
  t.same(await b.waitForEvents(1), [{ type: 'leave', channel: 'room', info: { user: 'ü', client: 'a1' } }])
  t.same([...(await b.broker.presence.list('room')).keys()], ['b1'])
  t.same(await b.broker.presence.stats('other'), { clients: 0, users: 0 })
  t.same(await b.broker.presence.stats('room'), { clients: 1, users: 1 })
  t.equal(b.events.length, 1)
})

t.test('presence statistics do not parse client info', async t => {
  const rig = await startEmbedded(t)
  const a = await Peer.join(rig)
  const info = i => `{"user":"u${i % 10}","client":"c${i}"}`
  for (let i = 0; i < 200; i++) await a.subscribe('room', { first: i === 0, client: `c${i}`, info: info(i) })
  const { parse } = JSON
  let parsed = 0
  JSON.parse = (...args) => {
    parsed++
    return parse(...args)
  }
  t.teardown(() => {
    JSON.parse = parse
  })
  t.same(await a.broker.presence.stats('room'), { clients: 200, users: 10 })
  t.equal(parsed, 0)
})

t.test('a survey does not wait for an exited worker', async t => {
  const rig = await startEmbedded(t)
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  a.survey = b.survey = () => 'here'
  const ending = await rig.socket('ending')
  const received = once(ending, 'data')
  const answer = a.broker.control.survey('who', {})
  await received
  ending.destroy()
  t.same(await answer, ['here', 'here'])
})

t.test('a survey without a response times out', async t => {
  const rig = await startEmbedded(t)
  const a = await Peer.join(rig)
  const blocked = await rig.socket('blocked')
  // The denylist.
  await once(blocked, 'data')
  const received = once(blocked, 'data')
  let ended = false
  const answer = failure(a.broker.control.survey('who', {})).finally(() => (ended = true))
  await received
  rig.pass(5000)
  await a.publish('ch', '1')
  t.notOk(ended)
  rig.pass(1000)
  t.equal(await answer, errors.internal)
})

t.test('history beyond the memory limit is dropped and logged once a minute', async t => {
  const rig = await startEmbedded(t, { maxBytes: 200_000 })
  const a = await Peer.join(rig)
  await a.subscribe('old')
  const publish = channel => a.publish(channel, 'x'.repeat(50_000), { historyTtl: HOUR })
  const first = await publish('old')
  for (let i = 0; i < 20; i++) await publish(`ch${i}`)
  t.match(rig.log.lines, [{ level: 'warn', max_bytes: 200_000 }])
  t.match(rig.log.lines[0].msg, /engine\.memory\.max_bytes reached: dropping unused/)
  t.ok(rig.log.lines[0].bytes > 200_000)
  const recover = { first: false, recover: { offset: 0, epoch: first.epoch, limit: 0 } }
  t.match(await a.subscribe('old', recover), { ...first, recovered: true, publications: [{ offset: 1 }] })
  rig.pass(61_000)
  for (let i = 0; i < 20; i++) await publish(`ch${i}`)
  t.equal(rig.log.lines.length, 2)
  for (let i = 0; i < 5; i++) {
    await a.subscribe(`live${i}`)
    await publish(`live${i}`)
  }
  t.match(rig.log.lines[2].msg, /engine\.memory\.max_bytes reached: dropping the history of channels with/)
  t.equal(rig.log.lines.length, 3)
  t.match(await a.subscribe('old', recover), { ...first, recovered: false })
})

t.test('garbage from one worker does not affect others', async t => {
  const rig = await startEmbedded(t)
  const [a, b] = [await Peer.join(rig), await Peer.join(rig)]
  await b.subscribe('ch')
  const broken = await rig.socket('broken')
  let seed = 5
  const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  for (let i = 0; i < 400; i++) {
    const length = random(80)
    const frame = Buffer.alloc(5 + length)
    frame.writeUInt32LE(1 + length)
    frame[4] = i % 40
    for (let at = 5; at < frame.length; at++) frame[at] = random(256)
    broken.write(frame)
  }
  broken.resume()
  broken.end()
  for (let i = 1; i <= 20; i++) t.match(await a.publish('ch', String(i)), { offset: i })
  await b.waitForEvents(20)
  t.same(texts(b.events), upTo(20).map(String))
})
