// The gateway object of a program: side effects on the process, events, stop.

import t from 'tap'
import { createGateway } from '../../../src/index.js'
import { connect, embed } from '../../backends/api/methods-suite.js'
import { until } from '../../kit/wait.js'
import { event } from './gateway-events.js'

const worker = { workers: 1 }

const listeners = () =>
  Object.fromEntries(
    process.eventNames().map(name => [String(name), process.listenerCount(/** @type {any} */ (name))]),
  )

t.test('two gateways in one process are independent and leave no listeners', async t => {
  // node:cluster adds its own listener with the first worker.
  /** @type {Record<string, number>} */
  const before = { ...listeners(), internalMessage: 1 }
  const [one, two] = await Promise.all([embed(t, worker), embed(t, worker)])
  t.not(one.url, two.url)
  const listener = await connect(two, 'anna')
  await listener.subscribe('room')
  await one.publish('room', 'of one')
  await two.publish('room', 'of two')
  t.equal((await listener.push('pub')).pub.data, 'of two')
  t.not(one.workers[0].pid, two.workers[0].pid)

  // Clients are reported while there is a listener.
  /** @type {any} */
  let first = null
  const onConnected = about => (first ??= about)
  two.on('connected', onConnected)
  const clients = []
  // The worker is notified of the listener asynchronously.
  await until(async () => {
    clients.push(await connect(two, 'ben'))
    return first
  })
  t.match(first, { user: 'ben', transport: 'websocket' })
  t.ok(clients.some(({ connect }) => connect.client === first.client))
  const gone = event(two, 'disconnected', ({ client }) => client === first.client)
  await two.disconnect('ben', { code: 4001, reason: 'over' })
  t.same(await gone, { ...first, code: 4001, reason: 'over' })
  two.off('connected', onConnected)

  // A worker dies.
  const [{ pid }] = one.workers
  const ended = event(one, 'worker', ({ state }) => state === 'ended')
  const listening = event(one, 'worker', ({ state }) => state === 'listening')
  process.kill(pid, 'SIGKILL')
  t.same(await ended, { state: 'ended', worker: 0, pid, reason: 'signal SIGKILL', died: true })
  t.match(await listening, { worker: 0, pid: one.workers[0].pid })
  t.throws(() => one.on(/** @type {any} */ ('reload'), () => {}), {
    name: 'TypeError',
    message: /did you mean reloaded/,
  })
  t.throws(() => one.on('reloaded', /** @type {any} */ ('no function')), { name: 'TypeError' })

  await t.rejects(one.reload({ chanel: {} }), { message: /chanel: unknown key/ })
  await t.rejects(one.reload(/** @type {any} */ ('config')), { name: 'TypeError' })
  t.equal(await one.reload(), 'no changes', 'the refused configuration is dropped')

  // Stop one gateway.
  let calls = 0
  const removed = () => calls++
  one.on('stopping', removed).off('stopping', removed)
  one.once('stopping', () => (calls += 10))
  const stopped = event(one, 'stopped')
  await one.stop()
  await stopped
  t.equal(calls, 10)
  t.same(one.workers, [])
  await two.publish('room', 'still here')
  t.equal((await listener.push('pub')).pub.data, 'still here')
  t.equal(two.stop(), two.stop(), 'the same promise')
  await two.stop()
  t.equal((await listener.closed).code, 3001)
  for (const [name, count] of Object.entries(listeners())) t.ok(count <= (before[name] ?? 0), name)
  await t.rejects(two.publish('room', 'too late'), {
    name: 'ApiError',
    code: 0,
    message: 'the gateway has stopped',
  })
})

t.test('invalid options are errors', async t => {
  /** @type {[any, RegExp][]} */
  const wrong = [
    [null, /options of createGateway must be an object/],
    [{ configuration: {} }, /no option "configuration"/],
    [{ conifg: {} }, /did you mean config\?/],
    [{ file: 5 }, /file must be a path or a file: URL/],
    [{ hooks: 5 }, /hooks must be a path or a file: URL/],
    [{ hooks: new URL('data:text/javascript,1') }, /hooks must be a path or a file: URL/],
    [{ config: [] }, /config must be an object/],
    [{ log: { info() {} } }, /log must be a pino logger/],
  ]
  for (const [options, message] of wrong)
    await t.rejects(createGateway(options), { name: 'TypeError', message })
})
