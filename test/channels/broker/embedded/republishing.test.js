import t from 'tap'
import { until } from '../../../kit/wait.js'
import { startEmbedded } from './rig.js'

const HOUR = 3600_000
const NONE = { publication() {}, presence() {}, survey: () => null }
const ROUTE = { to: 5, block: 0, wait: 0, source: 1, withMeta: true }

/** A queue process that records its publications. */
async function joinQueues(rig) {
  /** @type {any[]} */
  const got = []
  const republish = (/** @type {any} */ given) => {
    const { publication } = given
    got.push({ ...given, publication: { ...publication, data: String(publication.data) } })
  }
  const broker = await rig.join({ ...NONE, republish }, undefined, null, undefined, { republishes: true })
  return {
    broker,
    got,
    async wait(/** @type {number} */ count) {
      await until(() => got.length >= count)
      return got
    },
  }
}

/** @param {any} broker @param {string} channel @param {string} data @param {any} [options] */
const publish = (broker, channel, data, options) =>
  new Promise((resolve, reject) =>
    broker.pubsub.publish(
      channel,
      data,
      { historySize: 10, historyTtl: HOUR, metaTtl: HOUR, republish: ROUTE, ...options },
      (/** @type {any} */ error, /** @type {number} */ offset, /** @type {string} */ epoch) =>
        error
          ? reject(Object.assign(new Error(error.message), { code: error.code }))
          : resolve({ offset, epoch }),
    ),
  )

/** Waits until the host has handled all sent frames. */
const handled = broker => broker.pubsub.history('none', { limit: 0 }, HOUR)

t.test('publications with a route are republished with all fields', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  await publish(worker, 'other', '0', { republish: null })
  const info = '{"user":"ü","client":"c"}'
  const at = await publish(worker, 'room', '{"n":1}', {
    info,
    tags: { a: 'b' },
    version: 4n,
    meta: '{"m":1}',
  })
  await publish(worker, 'room', '2', { historySize: 0, republish: { ...ROUTE, withMeta: false }, meta: 'x' })
  const [first, second] = await queues.wait(2)
  t.match(first, { number: 0, to: 5, source: 1, channel: 'room', meta: '{"m":1}' })
  t.match(first.publication, { data: '{"n":1}', info, tags: { a: 'b' }, version: 4n, json: true, ...at })
  t.ok(Math.abs(first.time - Date.now()) < 60_000)
  t.match(second, { meta: '', publication: { data: '2', offset: 0, epoch: '' } })
})

t.test('publications of several workers are republished once, in order', async t => {
  const rig = await startEmbedded(t)
  const workers = [await rig.join(NONE), await rig.join(NONE), await rig.join(NONE)]
  const queues = await joinQueues(rig)
  const sent = []
  for (let i = 0; i < 300; i++) sent.push(publish(workers[i % 3], `room${i % 2}`, String(i)))
  await Promise.all(sent)
  const got = await queues.wait(300)
  t.equal(got.length, 300)
  for (const room of ['room0', 'room1']) {
    const offsets = got.filter(({ channel }) => channel === room).map(({ publication }) => publication.offset)
    const ascending = offsets
    t.same(
      ascending,
      [...offsets].sort((a, b) => a - b),
    )
    t.equal(new Set(offsets).size, 150)
  }
})

t.test('suppressed publications are not republished', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  for (let i = 0; i < 3; i++) await publish(worker, 'room', '1', { idempotencyKey: 'k' })
  for (const version of [5n, 5n, 4n, 6n]) await publish(worker, 'versions', String(version), { version })
  const got = await queues.wait(3)
  await handled(queues.broker)
  const republished = got.map(({ publication }) => publication.data)
  t.same(republished, ['1', '5', '6'])
})

t.test('history is the same with and without a route', async t => {
  const rig = await startEmbedded(t)
  const worker = await rig.join(NONE)
  await publish(worker, 'room', '"x"', { tags: { a: 'b' } })
  const { publications } = await worker.pubsub.history('room', { limit: -1 }, HOUR)
  t.match(publications, [{ offset: 1, tags: { a: 'b' }, version: 0n, json: true, delta: false }])
})

t.test('a required publication is answered after it is confirmed', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  const republish = { ...ROUTE, wait: 60_000 }
  const sent = [1, 2].map(n => publish(worker, 'room', String(n), { republish }))
  const [first, second] = await queues.wait(2)
  t.ok(first.number !== 0 && second.number !== first.number)
  const refused = t.rejects(sent[1], { code: 100 })
  queues.broker.republishing.confirm(second.number, false)
  await refused
  queues.broker.republishing.confirm(first.number, true)
  t.match(await sent[0], { offset: 1 })
})

t.test('repeating an unconfirmed publication republishes it', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  const options = { republish: { ...ROUTE, wait: 60_000 }, idempotencyKey: 'k' }
  const refused = t.rejects(publish(worker, 'room', '1', options), { code: 100 })
  queues.broker.republishing.confirm((await queues.wait(1))[0].number, false)
  await refused
  const repeat = publish(worker, 'room', '1', options)
  const [first, second] = await queues.wait(2)
  t.same(second.publication, first.publication, 'the same publication, at the same offset')
  queues.broker.republishing.confirm(second.number, true)
  t.match(await repeat, { offset: 1 })
  t.match(await publish(worker, 'room', '1', options), { offset: 1 })
  await handled(queues.broker)
  t.equal(queues.got.length, 2, 'a confirmed one is not sent again')
  const { publications } = await worker.pubsub.history('room', { limit: -1 }, HOUR)
  t.equal(publications.length, 1)
})

t.test('an unconfirmed publication fails after its timeout or when the queue process exits', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  const late = publish(worker, 'room', '1', { republish: { ...ROUTE, wait: 1 } })
  const never = publish(worker, 'room', '2', { republish: { ...ROUTE, wait: 60_000 } })
  const [lateFails, neverFails] = [t.rejects(late, { code: 100 }), t.rejects(never, { code: 100 })]
  await queues.wait(2)
  const ticks = setInterval(() => rig.host.tick(), 5)
  t.teardown(() => clearInterval(ticks))
  await lateFails
  rig.cut(queues.broker)
  await neverFails
  t.match(await publish(worker, 'room', '3'), { offset: 3 }, 'other publications do not wait')
})

t.test('a replaced queue process gets the publications made in between', async t => {
  const rig = await startEmbedded(t)
  const worker = await rig.join(NONE)
  for (let i = 0; i < 5; i++) await publish(worker, 'room', String(i))
  const queues = await joinQueues(rig)
  const offsets = (await queues.wait(5)).map(({ publication }) => publication.offset)
  t.same(offsets, [1, 2, 3, 4, 5])
})

t.test('publications for a missing queue process are bounded', async t => {
  const rig = await startEmbedded(t)
  const worker = await rig.join(NONE)
  const data = JSON.stringify('x'.repeat(1024 * 1024))
  const republish = { ...ROUTE, block: 1 }
  for (let i = 0; i < 16; i++) await publish(worker, 'room', data)
  rig.host.tick()
  await handled(worker)
  await t.rejects(publish(worker, 'room', data, { republish }), { code: 100 })
  t.match(await publish(worker, 'room', data), { offset: 17 }, 'other publications do not wait')
  const { unreached } = rig.host.republishing.counts
  t.match(unreached, { 0: 2, 2: 2 }, 'dropped publications are counted per republisher')
  const queues = await joinQueues(rig)
  t.equal((await queues.wait(15)).length, 15, 'the buffered publications')
  await handled(worker)
  t.match(await publish(worker, 'room', '1', { republish }), { offset: 18 })
})

t.test('a full queue refuses publications before they are stored', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  queues.broker.republishing.report(0b100)
  await handled(queues.broker)
  await handled(worker)
  await t.rejects(publish(worker, 'room', '1', { republish: { ...ROUTE, block: 0b100 } }), { code: 100 })
  t.match(await publish(worker, 'room', '1', { republish: { ...ROUTE, block: 0b001 } }), { offset: 1 })
  const later = await rig.join(NONE)
  await handled(later)
  await t.rejects(publish(later, 'room', '1', { republish: { ...ROUTE, block: 0b100 } }), { code: 100 })
  queues.broker.republishing.report(0)
  await handled(queues.broker)
  await handled(worker)
  t.match(await publish(worker, 'room', '1', { republish: { ...ROUTE, block: 0b100 } }), { offset: 2 })
})

t.test('publications accepted by another engine are republished', async t => {
  const rig = await startEmbedded(t)
  const [worker, queues] = [await rig.join(NONE), await joinQueues(rig)]
  const options = { historySize: 0, historyTtl: 0, metaTtl: 0, republish: ROUTE }
  worker.republishing.hand('room', '"a"', options, 7, 'abcdefgh', null)
  const confirmed = new Promise(resolve =>
    worker.republishing.hand(
      'room',
      '"b"',
      { ...options, republish: { ...ROUTE, wait: 60_000 } },
      8,
      'abcdefgh',
      resolve,
    ),
  )
  const [first, second] = await queues.wait(2)
  t.match(first, { number: 0, channel: 'room', publication: { data: '"a"', offset: 7, epoch: 'abcdefgh' } })
  queues.broker.republishing.confirm(second.number, true)
  t.equal(await confirmed, null)
  rig.cut(queues.broker)
  await until(() => rig.host.republishing.counts.handedBefore.length > 0)
  t.match(rig.host.republishing.counts.handedBefore, { 0: 2, 2: 2 }, 'they are counted')
})
