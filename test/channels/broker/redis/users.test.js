import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { failure } from '../conformance/peer.js'
import { countsOf, cutAll, SHORT, testsOn, Worker } from './presence-rig.js'

needsRedis(t)

const server = await startRedis(t)
const { test, join } = testsOn(t, server)
const names = Array.from({ length: 500 }, (_, i) => `user ${i}`)

/** @returns {Promise<boolean>} whether a connection would be admitted */
async function admits(worker, user, limit) {
  const admitted = await worker.claim(user, limit)
  if (admitted) worker.release(user)
  return admitted
}

/** @param {string} user */
const counts = user => countsOf(server, user)

test('simultaneous claims and releases are counted one by one', async t => {
  const [a, b] = [await join(t), await join(t)]
  const claims = []
  for (let i = 0; i < 20; i++) claims.push(a.claim('u', 7), b.claim('u', 7))
  const admitted = await Promise.all(claims)
  t.equal(admitted.filter(Boolean).length, 7)
  t.notOk(await admits(a, 'u', 7))
  const first = a.claim('w', 2)
  const second = a.claim('w', 2)
  const refused = a.claim('w', 2)
  a.release('w')
  const third = a.claim('w', 2)
  t.same(await Promise.all([first, second, refused]), [true, true, false])
  await third
  a.release('w')
  if (await third) a.release('w')
  await until(async () => (await server.call('EXISTS', 'test.user.w')) === 0)
})

test('a refused claim is not counted', async t => {
  const [a, b] = [await join(t), await join(t)]
  t.equal(await b.claim('u', 1), true)
  t.same(await Promise.all([a.claim('u', 1), a.claim('u', 1), a.claim('u', 1)]), [false, false, false])
  await until(async () => Object.keys(await counts('u')).length === 1)
  b.release('u')
  t.ok(await until(() => b.claim('u', 1)))
})

test('users may have any names', async t => {
  const [a, b] = [await join(t), await join(t)]
  for (const user of ['a b', '\0', '🎈', 'ключ', '__proto__', 'constructor', '{x}', 'workers', '']) {
    t.same([await a.claim(user, 1), await b.claim(user, 1)], [true, false], JSON.stringify(user))
    a.release(user)
    t.ok(await until(() => b.claim(user, 1)))
  }
})

test('connections of a dead worker no longer count', async t => {
  const [a, b] = [await join(t, SHORT), await join(t, SHORT)]
  t.same([await a.claim('u', 2), await b.claim('u', 2), await a.claim('u', 2)], [true, true, false])
  b.die()
  await until(() => a.claim('u', 2))
  t.equal(await a.claim('u', 2), false, 'connections of a live worker count')
  t.same(await counts('u'), { [a.uid]: '2' })
})

test('connections of a worker with an expired lease count again', async t => {
  const [a, b] = [await join(t, SHORT), await join(t, { ttl: SHORT.ttl })]
  t.ok((await Promise.all(names.map(user => b.claim(user, 1)))).every(admitted => admitted))
  await until(() => admits(a, names[0], 1))
  b.ticks(SHORT.every)
  await Promise.all(names.map(user => until(async () => !(await admits(a, user, 1)))))
})

test('counts are restored after a flush', async t => {
  const [a, b] = [await join(t, SHORT), await join(t, SHORT)]
  await Promise.all(names.map(user => a.claim(user, 1)))
  await server.call('FLUSHALL')
  await until(async () => (await server.call('DBSIZE')) === names.length + 3)
  t.equal(await b.claim(names[0], 1), false)
})

test('counts are restored after an empty restart', async t => {
  const own = await startRedis(t)
  const [a, b] = [await Worker.join(t, own), await Worker.join(t, own)]
  await Promise.all(names.map(user => a.claim(user, 1)))
  t.same([await a.claim('u', 2), await a.claim('u', 2), await b.claim('u', 2)], [true, true, false])
  await own.kill()
  await until(() => !a.up && !b.up)
  t.equal(await failure(a.claim('new', 1)), errors.internal)
  a.release('u')
  a.release(names[0])
  await own.start()
  await until(() => a.up && b.up)
  await until(async () => (await own.call('KEYS', 'test.user.*')).length === names.length)
  t.same(await Promise.all(['u', 'u', names[0], names[1]].map(user => b.claim(user, user === 'u' ? 2 : 1))), [
    true,
    false,
    true,
    false,
  ])
  t.equal(await a.claim('new', 1), true)
})

test('a failed claim is not counted', async t => {
  const [a, b] = [await join(t, { redis: { socketTimeout: 300 } }), await join(t)]
  await a.reconnected(async () => {
    server.stop()
    t.equal(await failure(a.claim('u', 1)), errors.internal)
    await until(() => !a.up)
    server.cont()
  })
  a.tick()
  await until(() => b.claim('u', 1))
})

test('late commands of a lost connection have no effect', async t => {
  const [a, b] = [await join(t), await join(t)]
  const calls = []
  const partition = a.placement.control
  const run = partition.run.bind(partition)
  partition.run = (script, keys, args, done) => {
    calls.push([script.hash, keys.length, ...keys, ...args])
    run(script, keys, args, done)
  }
  t.same([await a.claim('u', 1), await a.claim('w', 1)], [true, true])
  a.release('u')
  await a.reconnected(() => cutAll(server))
  await until(() => b.up)
  a.release('w')
  await until(async () => (await server.call('KEYS', 'test.user.*')).length === 0)
  for (const call of calls.slice(0, 3)) await server.call('EVALSHA', ...call)
  t.same([await b.claim('u', 1), await b.claim('w', 1)], [true, true])
})
