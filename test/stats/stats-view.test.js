import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { StatsRelay } from '../../src/stats/stats-relay.js'
import { StatsView } from '../../src/stats/stats-view.js'
import { monitorRig } from './monitor-rig.js'

const child = fileURLToPath(new URL('stats-view-child.js', import.meta.url))
const turn = () => new Promise(resolve => setImmediate(resolve))

/**
 * A primary, and workers that speak to it as over their channels: in texts, and a turn later.
 * @param {object} [options]
 * @param {number} [options.count] of workers
 * @param {Partial<import('../../src/stats/stats-commands.js').StatsActions>} [options.actions]
 * @param {number} [options.timeout] ms
 */
function node({ count = 1, actions = {}, timeout } = {}) {
  const rig = monitorRig({ workers: 2 })
  /** @type {any[]} */
  const done = []
  const relay = new StatsRelay(rig.monitor, {
    gc: worker => done.push(['gc', worker]),
    restart: worker => done.push(['restart', worker]),
    stop: () => done.push(['stop']),
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
    /** @type {import('../../src/stats/stats-relay.js').Peer} */
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
  return { ...rig, relay, workers, done, listeners: () => listeners }
}

/**
 * @param {StatsView} view
 */
function listen(view) {
  /** @type {import('../../src/stats/schema.js').StatsMessage[]} */
  const messages = []
  /** @type {Set<() => void>} */
  const waiting = new Set()
  const leave = view.watch(message => {
    messages.push(message)
    for (const check of waiting) check()
  })
  return {
    messages,
    leave,
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

t.test('any worker knows the last snapshot of the node, and waits for the first', async t => {
  const { workers, next } = node()
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

t.test('who watches is greeted with the history, and told each second', async t => {
  const { workers, next, monitor } = node()
  for (let second = 0; second < 49; second++) next()
  monitor.event({ level: 'info', kind: 'started', text: 'it is up' })
  next()
  const first = listen(workers[0].view)
  const [hello] = await first.take(1)
  t.match(hello, { type: 'hello', schema: 1 })
  t.equal(hello.events[hello.events.length - 1].kind, 'started')
  t.equal(hello.history.length, 50)
  next()
  t.match(await first.take(2), [{}, { type: 'snapshot', snapshot: { seq: 51 } }])
  const second = listen(workers[0].view)
  const [other] = await second.take(1)
  t.equal(other.history.length, 51)
  next()
  t.match(await second.take(2), [{}, { snapshot: { seq: 52 } }])
  t.match(await first.take(3), [{}, {}, { snapshot: { seq: 52 } }])
  t.equal(first.messages.length, 3, 'and nothing that was meant for the other')
})

t.test('only workers that watch are told anything, and only as long as they do', async t => {
  const { workers, next, listeners } = node({ count: 2 })
  const [one, two] = workers
  const watchers = [listen(one.view), listen(one.view)]
  for (const watcher of watchers) await watcher.take(1)
  t.equal(listeners(), 1)
  next()
  await watchers[0].take(2)
  t.equal(two.channel.sent, 0)
  watchers[0].leave()
  watchers[0].leave()
  next()
  await watchers[1].take(3)
  t.equal(watchers[0].messages.length, 2)
  watchers[1].leave()
  while (listeners() > 0) await turn()
  const { sent } = one.channel
  next()
  t.equal(one.channel.sent, sent)
})

t.test('one that leaves before it is greeted leaves nothing behind', async t => {
  const { workers, next, listeners } = node()
  for (let second = 0; second < 100; second++) next()
  const watcher = listen(workers[0].view)
  await turn()
  await turn()
  watcher.leave()
  for (let i = 0; i < 30; i++) await turn()
  t.equal(listeners(), 0)
  t.same(watcher.messages, [])
})

t.test("a worker's death ends its watches", async t => {
  const { workers, relay, next, listeners } = node({ count: 2 })
  const [one, two] = workers
  const [dying, living] = [listen(one.view), listen(two.view)]
  await Promise.all([dying.take(1), living.take(1)])
  one.channel.connected = false
  next()
  relay.remove(one.peer)
  await living.take(2)
  t.equal(listeners(), 1)
  relay.remove(two.peer)
  t.equal(listeners(), 0)
})

t.test('for a worker that hangs nothing piles up in the primary', async t => {
  const { workers, next } = node()
  const watcher = listen(workers[0].view)
  await watcher.take(1)
  workers[0].channel.reads = false
  const { sent } = workers[0].channel
  for (let second = 0; second < 100; second++) next()
  t.ok(workers[0].channel.sent - sent <= 3)
})

t.test('commands are carried out, or say why not', async t => {
  const { workers, done } = node({
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
  t.same(done, [['gc', null], ['gc', 1], ['stop']])
  await t.rejects(view.command({ type: 'restart', worker: 1 }), { message: 'worker 1 is not up' })
  await t.rejects(view.command({ type: 'restart', worker: 9 }), { message: /index/ })
  await t.rejects(view.command(/** @type {any} */ ({ type: 'explode' })), { message: /unknown command/ })
  await t.rejects(view.command(/** @type {any} */ (null)), { message: /unknown command/ })
  await t.rejects(view.command({ type: 'log', on: true }), { message: /Unix socket/ })
})

t.test('a primary that does not answer is an error, and who watches is greeted once it does', async t => {
  const { workers, next } = node({ timeout: 50 })
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => clearInterval(alive))
  const [{ view, channel }] = workers
  channel.reads = false
  next()
  await t.rejects(view.latest(), { message: /does not answer/ })
  const watcher = listen(view)
  await t.rejects(view.command({ type: 'stop' }), { message: /does not answer/ })
  channel.reads = true
  t.match(await watcher.take(1), [{ type: 'hello' }])
})

t.test('the channel of a real process: greeted, told, and forgotten when it is killed', async t => {
  const rig = monitorRig()
  for (let second = 0; second < 60; second++) rig.next()
  const relay = new StatsRelay(rig.monitor, { gc() {}, restart() {}, stop() {}, log: () => () => {} })
  const worker = fork(child)
  t.teardown(() => worker.kill('SIGKILL'))
  const peer = {
    isConnected: () => worker.connected,
    send: (/** @type {any} */ message, /** @type {any} */ written) => worker.send(message, written),
  }
  /** @type {(message: any) => void} */
  let heard = () => {}
  worker.on('message', (/** @type {any} */ message) =>
    message.type === 'stats' ? relay.onMessage(peer, message) : heard(message),
  )
  const hear = () => new Promise(resolve => (heard = resolve))
  t.same(await hear(), { heard: 'hello', count: 60 })
  const told = hear()
  rig.next()
  t.same(await told, { heard: 'snapshot', count: 1 })
  const exited = new Promise(resolve => worker.once('exit', resolve))
  worker.kill('SIGKILL')
  rig.next()
  await exited
  rig.next()
  relay.remove(peer)
})
