import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { StatsRelay } from '../../src/metrics/stats-relay.js'
import { StatsView } from '../../src/metrics/stats-view.js'
import { turn, until } from '../kit/wait.js'
import { monitorRig } from './monitor-rig.js'
import { Messages, recordedActions } from './stats-rig.js'

const child = fileURLToPath(new URL('stats-view-child.js', import.meta.url))

/**
 * A primary and workers. Their messages are copied as JSON and arrive a turn later, as over an IPC channel.
 * @param {object} [options] @param {number} [options.count] number of workers
 * @param {Partial<import('./stats-rig.js').StatsActions>} [options.actions]
 * @param {number} [options.timeout] ms that a worker waits for the primary
 */
function startNode({ count = 1, actions: more = {}, timeout } = {}) {
  const rig = monitorRig({ workers: 2 })
  const { actions, calls } = recordedActions(more)
  const relay = new StatsRelay(rig.monitor, actions)
  let listeners = 0
  const { on } = rig.monitor
  rig.monitor.on = listener => {
    listeners++
    const off = on.call(rig.monitor, listener)
    return () => {
      listeners--
      return off()
    }
  }
  const workers = Array.from({ length: count }, () => {
    const channel = { connected: true, reads: true, sent: 0 }
    /** @type {import('../../src/metrics/stats-relay.js').Peer} */
    const peer = {
      isConnected: () => channel.connected,
      send(message, written) {
        channel.sent++
        const text = JSON.stringify(message)
        if (!channel.reads) return
        setImmediate(() => {
          written?.(null)
          view.onMessage(JSON.parse(text))
        })
      },
    }
    const view = new StatsView(message => {
      const text = JSON.stringify(message)
      setImmediate(() => channel.connected && relay.onMessage(peer, JSON.parse(text)))
    }, timeout)
    return { view, peer, channel }
  })
  return { ...rig, relay, workers, calls, listeners: () => listeners }
}

/** Watches and keeps the messages. @param {StatsView} view */
function watch(view) {
  const messages = new Messages()
  const stop = view.watch(message => messages.all.push(message))
  return { all: messages.all, take: messages.take.bind(messages), stop }
}

t.test('latest() on any worker returns the last snapshot of the node, or waits for the first', async t => {
  const { workers, next } = startNode()
  const [{ view }] = workers
  const early = view.latest()
  await turn()
  await turn()
  next()
  t.equal((await early).seq, 1)
  next()
  const [one, two] = await Promise.all([view.latest(), view.latest()])
  t.same([one.seq, two.seq], [2, 2])
})

t.test('a watch starts with the history and gets each snapshot', async t => {
  const { workers, next, monitor } = startNode()
  for (let second = 0; second < 49; second++) next()
  monitor.event({ level: 'info', kind: 'started', text: 'it is up' })
  next()
  const first = watch(workers[0].view)
  const [hello] = await first.take(1, 'hello')
  t.match(hello, { schema: 1 })
  t.equal(hello.events.at(-1).kind, 'started')
  t.equal(hello.history.length, 50)
  next()
  t.match(await first.take(1, 'snapshot'), [{ snapshot: { seq: 51 } }])
  const second = watch(workers[0].view)
  const [other] = await second.take(1, 'hello')
  t.equal(other.history.length, 51)
  next()
  t.match(await second.take(1, 'snapshot'), [{ snapshot: { seq: 52 } }])
  t.match(await first.take(2, 'snapshot'), [{}, { snapshot: { seq: 52 } }])
  t.equal(first.all.length, 3, 'without the hello of the other watch')
})

t.test('the primary sends only to watching workers, until their last watch ends', async t => {
  const { workers, next, listeners } = startNode({ count: 2 })
  const [one, two] = workers
  const watchers = [watch(one.view), watch(one.view)]
  for (const watcher of watchers) await watcher.take(1, 'hello')
  t.equal(listeners(), 1)
  next()
  await watchers[0].take(1, 'snapshot')
  t.equal(two.channel.sent, 0)
  watchers[0].stop()
  watchers[0].stop()
  next()
  await watchers[1].take(2, 'snapshot')
  t.equal(watchers[0].all.length, 2)
  watchers[1].stop()
  await until(() => listeners() === 0)
  const { sent } = one.channel
  next()
  t.equal(one.channel.sent, sent)
})

t.test('a watch that ends before hello leaves no listener in the primary', async t => {
  const { workers, next, listeners } = startNode()
  for (let second = 0; second < 100; second++) next()
  const watcher = watch(workers[0].view)
  await turn()
  await turn()
  watcher.stop()
  for (let i = 0; i < 30; i++) await turn()
  t.equal(listeners(), 0)
  t.same(watcher.all, [])
})

t.test("the end of a worker's connection ends its watches", async t => {
  const { workers, relay, next, listeners } = startNode({ count: 2 })
  const [one, two] = workers
  const [dying, living] = [watch(one.view), watch(two.view)]
  await Promise.all([dying.take(1, 'hello'), living.take(1, 'hello')])
  one.channel.connected = false
  next()
  relay.remove(one.peer)
  await living.take(1, 'snapshot')
  t.equal(listeners(), 1)
  relay.remove(two.peer)
  t.equal(listeners(), 0)
})

t.test('a worker that does not read gets at most three snapshots', async t => {
  const { workers, next } = startNode()
  await watch(workers[0].view).take(1, 'hello')
  const { channel } = workers[0]
  channel.reads = false
  const { sent } = channel
  for (let second = 0; second < 100; second++) next()
  t.ok(channel.sent - sent <= 3)
})

t.test('commands run, or reject with a reason', async t => {
  const restart = async () => {
    throw new Error('worker 1 is not running')
  }
  const { workers, calls } = startNode({ actions: { restart } })
  const [{ view }] = workers
  await view.command({ type: 'gc', worker: null })
  await view.command({ type: 'gc', worker: 1 })
  await view.command({ type: 'stop' })
  t.same(calls, [['gc', null], ['gc', 1], ['stop']])
  for (const [command, message] of /** @type {[any, string | RegExp][]} */ ([
    [{ type: 'restart', worker: 1 }, 'worker 1 is not running'],
    [{ type: 'restart', worker: 9 }, /index/],
    [{ type: 'explode' }, /unknown command/],
    [null, /unknown command/],
    [{ type: 'log', on: true }, /Unix socket/],
  ]))
    await t.rejects(view.command(command), { message })
})

t.test('while the primary does not respond, requests reject and watches wait', async t => {
  const { workers, next } = startNode({ timeout: 50 })
  // The timeouts of StatsView do not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const [{ view, channel }] = workers
  channel.reads = false
  next()
  await t.rejects(view.latest(), { message: /does not respond/ })
  const watcher = watch(view)
  await t.rejects(view.command({ type: 'stop' }), { message: /does not respond/ })
  channel.reads = true
  await watcher.take(1, 'hello')
})

t.test('hello and snapshots pass a real process; killing it causes no error', async t => {
  const rig = monitorRig()
  for (let second = 0; second < 60; second++) rig.next()
  const relay = new StatsRelay(rig.monitor, recordedActions().actions)
  const worker = fork(child)
  t.teardown(() => worker.kill('SIGKILL'))
  const peer = {
    isConnected: () => worker.connected,
    send: (/** @type {any} */ message, /** @type {any} */ written) => worker.send(message, written),
  }
  /** @type {any[]} */
  const reports = []
  worker.on('message', (/** @type {any} */ message) =>
    message.type === 'stats' ? relay.onMessage(peer, message) : reports.push(message),
  )
  await until(() => reports.length === 1)
  rig.next()
  await until(() => reports.length === 2)
  t.same(reports, [
    { received: 'hello', count: 60 },
    { received: 'snapshot', count: 1 },
  ])
  worker.kill('SIGKILL')
  rig.next()
  await once(worker, 'exit')
  rig.next()
  relay.remove(peer)
})
