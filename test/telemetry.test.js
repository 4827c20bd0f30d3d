import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { Telemetry } from '../src/telemetry.js'
import { crowd } from './fleet.js'
import { startGateway } from './gateway.js'
import { RawClient } from './raw-client.js'
import { Watcher } from './watcher.js'

/** A gateway, and somebody who watches it. */
async function watched(t, config = {}, options = {}) {
  // A socket's path must be short.
  const folder = await mkdtemp(join(tmpdir(), 'halley-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const socket = join(folder, 's')
  const gateway = await startGateway(
    t,
    { client: { insecure: true }, log: { level: 'info' }, ...config, stats: { socket, ...config.stats } },
    options,
  )
  return { gateway, watcher: await Watcher.at(t, socket) }
}

t.test('a worker is restarted when somebody asks for it: its clients are told to come back', async t => {
  const { gateway, watcher } = await watched(t)
  const before = (await watcher.snapshot(({ totals }) => totals.workers === 2)).workers
  const clients = await crowd(gateway)
  const codes = clients.map(client => client.closed.then(({ code }) => code))
  t.equal(await watcher.command({ type: 'restart', worker: 1 }), null)
  const died = watcher.event('worker_died')
  t.match(await died, { level: 'info', worker: 1 })
  t.equal(await Promise.race(codes), 3001)
  const after = (await watcher.snapshot(({ totals }) => totals.workers === 2)).workers
  t.equal(after[0].sample?.pid, before[0].sample?.pid)
  t.not(after[1].sample?.pid, before[1].sample?.pid)
  t.same(
    after.map(({ deaths }) => deaths),
    [0, 0],
    'that is no death',
  )
  t.ok(await RawClient.connected(gateway.ws))
  const { counters, totals } = await watcher.snapshot(
    ({ counters }) => counters.accepts === clients.length + 1,
  )
  t.equal(counters.closes[3001], clients.length + 1 - totals.connections.open, 'its last words are counted')
  t.match(await watcher.command({ type: 'restart', worker: 7 }), 'restart')
})

t.test('garbage is collected when somebody asks for it, and at an interval', async t => {
  const majors = (/** @type {any} */ { sample }) => sample?.gc.major.count ?? 0
  await t.test('asked', async t => {
    const { watcher } = await watched(t)
    await watcher.snapshot(({ totals }) => totals.workers === 2)
    const collected = watcher.snapshot(({ workers }) => majors(workers[0]) > 0)
    t.equal(await watcher.command({ type: 'gc', worker: 0 }), null)
    t.ok(await collected)
    const seen = new Set()
    const both = watcher.snapshot(({ workers }) => {
      for (const worker of workers) if (majors(worker) > 0) seen.add(worker.index)
      return seen.size === 2
    })
    t.equal(await watcher.command({ type: 'gc', worker: null }), null)
    t.ok(await both)
  })
  await t.test('at an interval, one worker after another', async t => {
    const { watcher } = await watched(t, { gc: { idle: false } }, { args: ['--gc-interval', '2400ms'] })
    const counts = [0, 0]
    let together = 0
    await watcher.snapshot(({ workers }) => {
      const collected = workers.filter(worker => majors(worker) > 0)
      for (const { index } of collected) counts[index]++
      if (collected.length === 2) together++
      return Math.min(...counts) >= 2
    })
    // V8 collects when it thinks fit, too, while a worker starts.
    t.ok(together <= 1, `${together} times both in one second`)
  })
})

t.test('whoever watches may read the log of all processes', async t => {
  const { gateway, watcher } = await watched(t, { log: { level: 'debug' } })
  t.equal(await watcher.command({ type: 'log', on: true }), null)
  process.kill(gateway.workerPids[0], 'SIGKILL')
  const { line } = await watcher.next(({ type, line }) => type === 'log' && line.includes('worker died'))
  t.match(JSON.parse(line), { msg: 'worker died', reason: 'signal SIGKILL' })
  t.ok(await gateway.line(({ msg }) => msg === 'worker died'), 'the log goes where it went before, too')
})

t.test('a worker that starts while the dashboard is closed shows its log lines', async t => {
  /** @type {any[]} */
  const told = []
  const log = /** @type {any} */ ({ error() {} })
  const pool = /** @type {any} */ ({
    config: {
      engine: { type: 'memory' },
      client: { connection_limit: 0 },
      http_server: { address: '127.0.0.1', port: 8000 },
    },
    node: {},
    slots: [{}],
    tell() {},
    tellOne: (/** @type {number} */ index, /** @type {object} */ message) => told.push([index, message]),
  })
  const telemetry = new Telemetry({ pool, log, output: null, onStop() {} })
  telemetry.hold(true)
  telemetry.starting(0)
  telemetry.hold(false)
  telemetry.listening(0)
  t.same(told, [[0, { type: 'log', shown: true, forward: false }]])
  await telemetry.close()
})

t.test('a worker that dies shows in the next second', async t => {
  const { gateway, watcher } = await watched(t, { log: { level: 'debug' } })
  await watcher.snapshot(({ totals }) => totals.workers === 2)
  const [pid] = gateway.workerPids
  const killed = performance.now()
  process.kill(pid, 'SIGKILL')
  const event = await watcher.event('worker_died')
  t.ok(performance.now() - killed < 2000)
  t.match(event, { level: 'error', text: /signal SIGKILL/ })
  const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 2)
  t.equal(workers[/** @type {number} */ (event.worker)].deaths, 1)
})

t.test('a loop that is held up shows in the ticks of its worker', async t => {
  const { watcher } = await watched(t)
  const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 2)
  const pid = /** @type {number} */ (workers[1].sample?.pid)
  const shown = watcher.snapshot(({ workers }) => (workers[1].sample?.loop.ticks.max ?? 0) > 350)
  process.kill(pid, 'SIGSTOP')
  setTimeout(() => process.kill(pid, 'SIGCONT'), 400)
  const { max, p50 } = /** @type {any} */ ((await shown).workers[1].sample).loop.ticks
  t.ok(max < 1500, `${max} ms`)
  t.ok(p50 < 200, 'one long wait among short ones')
})

t.test('the gateway ends when its owner asks for it: asking twice is no hurry', async t => {
  const { gateway, watcher } = await watched(t)
  const client = await RawClient.connected(gateway.ws)
  watcher.command({ type: 'stop' })
  watcher.command({ type: 'stop' })
  t.match(await client.closed, { code: 3001 })
  t.match(await gateway.exited, { code: 0 })
  await watcher.closed
})

t.test('--csv writes a row a second, from the first second to the last', async t => {
  const file = join(t.testdir({}), 'run.csv')
  const { gateway, watcher } = await watched(t, {}, { args: ['--csv', file] })
  const last = await watcher.snapshot(({ seq }) => seq === 3)
  t.match(last.csv, { file, error: null })
  await gateway.stop()
  const [head, ...rows] = (await readFile(file, 'utf8')).trim().split('\n')
  const seq = head.split(',').indexOf('seq')
  const found = rows.map(row => Number(row.split(',')[seq]))
  t.same(
    found,
    found.map((_, i) => i + 1),
  )
  t.ok(found.length >= 3)
})
