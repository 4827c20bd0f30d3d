import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { StatsRelay } from '../../src/metrics/stats-relay.js'
import { StatsView } from '../../src/metrics/stats-view.js'
import { turn, until } from '../kit/wait.js'
import { monitorRig } from './monitor-rig.js'

const child = fileURLToPath(new URL('stats-view-child.js', import.meta.url))

/**
 * A primary and workers. Their messages are copied as JSON and arrive a turn later, as over an IPC channel.
 * @param {object} [options]
 * @param {number} [options.count] number of workers
 * @param {Partial<import('../../src/metrics/stats-commands.js').StatsActions>} [options.actions]
 * @param {number} [options.timeout] ms that a worker waits for the primary
 */
function startNode({ count = 1, actions = {}, timeout } = {}) {
  const rig = monitorRig({ workers: 2 })
  /** @type {any[]} */
  const calls = []
  const relay = new StatsRelay(rig.monitor, {
    gc: worker => void calls.push(['gc', worker]),
    restart: worker => void calls.push(['restart', worker]),
    stop: () => void calls.push(['stop']),
    reload: async () => '',
    log: () => () => {},
    ...actions,
  })
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
  /** @type {import('../../src/metrics/schema.js').StatsMessage[]} */
  const messages = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const stop = view.watch(message => {
    messages.push(message)
    for (const check of waiting) check()
  })
  return {
    messages,
    stop,
    /** @param {number} count @returns {Promise<any[]>} the first messages, past or future */
    take(count) {
      return new Promise(resolve => {
        const check = () => {
          if (messages.length < count) return
          waiting.delete(check)
          resolve(messages.slice(0, count))
        }
        waiting.add(check)
        check()
      })
    },
  }
}

t.test('latest() of any worker is the last snapshot of the node; before the first one it waits', async t => {
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

t.test('a watch begins with the history and gets each snapshot', async t => {
  const { workers, next, monitor } = startNode()
  for (let second = 0; second < 49; second++) next()
  monitor.event({ level: 'info', kind: 'started', text: 'it is up' })
  next()
  const first = watch(workers[0].view)
  const [hello] = await first.take(1)
  t.match(hello, { type: 'hello', schema: 1 })
  t.equal(hello.events[hello.events.length - 1].kind, 'started')
  t.equal(hello.history.length, 50)
  next()
  t.match(await first.take(2), [{}, { type: 'snapshot', snapshot: { seq: 51 } }])
  const second = watch(workers[0].view)
  const [other] = await second.take(1)
  t.equal(other.history.length, 51)
  next()
  t.match(await second.take(2), [{}, { snapshot: { seq: 52 } }])
  t.match(await first.take(3), [{}, {}, { snapshot: { seq: 52 } }])
  t.equal(first.messages.length, 3, 'nothing that is for the other watch')
})

t.test('the primary sends to watching workers only, until their last watch ends', async t => {
  const { workers, next, listeners } = startNode({ count: 2 })
  const [one, two] = workers
  const watchers = [watch(one.view), watch(one.view)]
  for (const watcher of watchers) await watcher.take(1)
  t.equal(listeners(), 1)
  next()
  await watchers[0].take(2)
  t.equal(two.channel.sent, 0)
  watchers[0].stop()
  watchers[0].stop()
  next()
  await watchers[1].take(3)
  t.equal(watchers[0].messages.length, 2)
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
  t.same(watcher.messages, [])
})

t.test("the end of a worker's connection ends its watches", async t => {
  const { workers, relay, next, listeners } = startNode({ count: 2 })
  const [one, two] = workers
  const [dying, living] = [watch(one.view), watch(two.view)]
  await Promise.all([dying.take(1), living.take(1)])
  one.channel.connected = false
  next()
  relay.remove(one.peer)
  await living.take(2)
  t.equal(listeners(), 1)
  relay.remove(two.peer)
  t.equal(listeners(), 0)
})

t.test('a worker that does not read gets at most three snapshots', async t => {
  const { workers, next } = startNode()
  const watcher = watch(workers[0].view)
  await watcher.take(1)
  workers[0].channel.reads = false
  const { sent } = workers[0].channel
  for (let second = 0; second < 100; second++) next()
  t.ok(workers[0].channel.sent - sent <= 3)
})

t.test('commands run, or reject with the reason', async t => {
  const { workers, calls } = startNode({
    actions: {
      restart: async () => {
        throw new Error('worker 1 is not up')
      },
    },
  })
  const [{ view }] = workers
  await view.command({ type: 'gc', worker: null })
  await view.command({ type: 'gc', worker: 1 })
  await view.command({ type: 'stop' })
  t.same(calls, [['gc', null], ['gc', 1], ['stop']])
  await t.rejects(view.command({ type: 'restart', worker: 1 }), { message: 'worker 1 is not up' })
  await t.rejects(view.command({ type: 'restart', worker: 9 }), { message: /index/ })
  await t.rejects(view.command(/** @type {any} */ ({ type: 'explode' })), { message: /unknown command/ })
  await t.rejects(view.command(/** @type {any} */ (null)), { message: /unknown command/ })
  await t.rejects(view.command({ type: 'log', on: true }), { message: /Unix socket/ })
})

t.test('without an answer of the primary a request rejects, and a watch begins once it answers', async t => {
  const { workers, next } = startNode({ timeout: 50 })
  // The timeouts of StatsView do not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const [{ view, channel }] = workers
  channel.reads = false
  next()
  await t.rejects(view.latest(), { message: /does not answer/ })
  const watcher = watch(view)
  await t.rejects(view.command({ type: 'stop' }), { message: /does not answer/ })
  channel.reads = true
  t.match(await watcher.take(1), [{ type: 'hello' }])
})

t.test('over the channel of a real process: hello, snapshots, and no error when it is killed', async t => {
  const rig = monitorRig()
  for (let second = 0; second < 60; second++) rig.next()
  const relay = new StatsRelay(rig.monitor, {
    gc() {},
    restart() {},
    stop() {},
    log: () => () => {},
    reload: async () => '',
  })
  const worker = fork(child)
  t.teardown(() => worker.kill('SIGKILL'))
  const peer = {
    isConnected: () => worker.connected,
    send: (/** @type {any} */ message, /** @type {any} */ written) => worker.send(message, written),
  }
  /** @type {(message: any) => void} */
  let onReport = () => {}
  worker.on('message', (/** @type {any} */ message) =>
    message.type === 'stats' ? relay.onMessage(peer, message) : onReport(message),
  )
  const nextReport = () => new Promise(resolve => (onReport = resolve))
  t.same(await nextReport(), { received: 'hello', count: 60 })
  const report = nextReport()
  rig.next()
  t.same(await report, { received: 'snapshot', count: 1 })
  const exited = new Promise(resolve => worker.once('exit', resolve))
  worker.kill('SIGKILL')
  rig.next()
  await exited
  rig.next()
  relay.remove(peer)
})
