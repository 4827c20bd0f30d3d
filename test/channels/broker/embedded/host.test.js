import { once } from 'node:events'
import t from 'tap'
import { until } from '../../../kit/wait.js'
import { startEmbedded } from './rig.js'

const HOUR = 3600_000
const WANTS = {
  first: true,
  position: true,
  recover: null,
  latest: false,
  metaTtl: HOUR,
  client: '',
  info: '',
  leave: false,
}

/** A worker that keeps its events. */
async function join(rig) {
  const list = []
  const tell = event => list.push(event)
  const broker = await rig.join({
    publication: (channel, { offset, epoch, data }) => tell({ channel, offset, epoch, data: String(data) }),
    presence: (channel, info, joined) => tell({ channel, info: JSON.parse(info), joined }),
    survey: () => 'here',
  })
  return {
    broker,
    events: list,
    subscribe: (channel, wants) =>
      new Promise((resolve, reject) =>
        broker.pubsub.subscribe(channel, { ...WANTS, ...wants }, (error, answer) =>
          error ? reject(error) : resolve(answer),
        ),
      ),
    publish: (channel, data, options) =>
      new Promise((resolve, reject) =>
        broker.pubsub.publish(
          channel,
          data,
          { historySize: 1000, historyTtl: HOUR, metaTtl: HOUR, ...options },
          (error, offset, epoch) => (error ? reject(error) : resolve({ offset, epoch })),
        ),
      ),
    async waitForEvents(count) {
      await until(() => list.length >= count)
      return list
    },
  }
}

t.test(
  'the clients of a worker that dies leave presence at once, and their leaves are announced',
  async t => {
    const rig = await startEmbedded(t)
    const [a, b] = [await join(rig), await join(rig)]
    const info = client => `{"user":"ü","client":"${client}"}`
    await b.subscribe('room', { client: 'b1', info: info('b1'), leave: true })
    await a.subscribe('room', { client: 'a1', info: info('a1'), leave: true })
    await a.subscribe('room', { first: false, client: 'a2', info: info('a2'), leave: false })
    await a.subscribe('other', { client: 'a3', info: info('a3'), leave: true })
    rig.cut(a.broker)
    t.same(await b.waitForEvents(1), [{ channel: 'room', info: { user: 'ü', client: 'a1' }, joined: false }])
    t.same([...(await b.broker.presence.list('room')).keys()], ['b1'])
    t.same(await b.broker.presence.stats('other'), { clients: 0, users: 0 })
    t.same(await b.broker.presence.stats('room'), { clients: 1, users: 1 })
    t.equal(b.events.length, 1)
  },
)

t.test("presence statistics read no client's info, however many there are", async t => {
  const rig = await startEmbedded(t)
  const a = await join(rig)
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

t.test('a worker that dies while asked does not keep a survey open', async t => {
  const rig = await startEmbedded(t)
  const [a, b] = [await join(rig), await join(rig)]
  const silent = await rig.socket('silent')
  const asked = once(silent, 'data')
  const answer = a.broker.control.survey('who', {})
  await asked
  silent.destroy()
  t.same(await answer, ['here', 'here'])
  rig.cut(b.broker)
})

t.test('a worker that does not answer makes a survey fail after its time, and only that', async t => {
  const rig = await startEmbedded(t)
  const a = await join(rig)
  const silent = await rig.socket('silent')
  const asked = once(silent, 'data')
  let ended = false
  const answer = a.broker.control.survey('who', {}).then(
    () => t.fail('answered'),
    error => {
      ended = true
      return error
    },
  )
  await asked
  rig.pass(5000)
  await a.publish('ch', '1')
  t.notOk(ended)
  rig.pass(1000)
  t.match(await answer, { code: 100 })
})

t.test('at the memory bound history goes, and one log line a minute says so', async t => {
  const rig = await startEmbedded(t, { maxBytes: 200_000 })
  const a = await join(rig)
  await a.subscribe('old')
  const payload = `"${'x'.repeat(50_000)}"`
  const first = await a.publish('old', payload)
  for (let i = 0; i < 20; i++) await a.publish(`ch${i}`, payload)
  t.match(rig.log.lines, [{ level: 'warn', max_bytes: 200_000 }])
  t.match(rig.log.lines[0].msg, /engine\.memory\.max_bytes reached: dropping unused/)
  t.ok(rig.log.lines[0].bytes > 200_000)
  const recover = { first: false, recover: { offset: 0, epoch: first.epoch, limit: 0 } }
  t.match(await a.subscribe('old', recover), { ...first, recovered: true, publications: [{ offset: 1 }] })
  rig.pass(61_000)
  for (let i = 0; i < 20; i++) await a.publish(`ch${i}`, payload)
  t.equal(rig.log.lines.length, 2)
  for (let i = 0; i < 5; i++) {
    await a.subscribe(`live${i}`)
    await a.publish(`live${i}`, payload)
  }
  t.match(rig.log.lines[2].msg, /engine\.memory\.max_bytes reached: dropping the history of channels with/)
  t.equal(rig.log.lines.length, 3)
  t.match(await a.subscribe('old', recover), { ...first, recovered: false })
})

t.test(
  'a worker that does not read slows publishers down, is named as stuck, and costs the others nothing once it ends',
  async t => {
    const rig = await startEmbedded(t)
    const [a, b] = [await join(rig), await join(rig)]
    await b.subscribe('flood')
    const stuck = rig.sockets.get(b.broker)
    stuck.pause()
    const payload = `"${'x'.repeat(1_000_000)}"`
    let answered = 0
    const all = Array.from({ length: 60 }, () =>
      a.publish('flood', payload, { historySize: 0 }).then(() => answered++),
    )
    await until(() => answered >= 17)
    // The rest waits, now that 16 MB are unread.
    let named = []
    for (let second = 0; second < 8 && named.length === 0; second++) {
      for (let i = 0; i < 20; i++) await new Promise(setImmediate)
      named = rig.host.tick()
    }
    t.same(named, ['1'])
    t.ok(answered < 60, `${answered} of 60 answered`)
    stuck.destroy()
    await Promise.all(all)
    t.equal(answered, 60)
  },
)

t.test('garbage on the bus of one worker is logged, and disturbs nobody else', async t => {
  const rig = await startEmbedded(t)
  const [a, b] = [await join(rig), await join(rig)]
  await b.subscribe('ch')
  const mad = await rig.socket('mad')
  let seed = 5
  const random = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n
  for (let i = 0; i < 400; i++) {
    const length = random(80)
    const frame = Buffer.alloc(5 + length)
    frame.writeUInt32LE(1 + length)
    frame[4] = i % 40
    for (let at = 5; at < frame.length; at++) frame[at] = random(256)
    mad.write(frame)
  }
  const ended = once(mad, 'close')
  mad.resume()
  mad.end()
  await Promise.race([ended, new Promise(setImmediate)])
  for (let i = 1; i <= 20; i++) t.match(await a.publish('ch', String(i)), { offset: i })
  await b.waitForEvents(20)
  t.same(
    b.events.map(({ data }) => data),
    Array.from({ length: 20 }, (_, i) => String(i + 1)),
  )
})
