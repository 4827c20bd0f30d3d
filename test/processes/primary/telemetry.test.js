import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Telemetry } from '../../../src/processes/primary/telemetry.js'
import { crowd } from '../../kit/fleet.js'
import { testdir } from '../../kit/folders.js'
import { RawClient } from '../../kit/raw-client.js'
import { majors, watched } from './telemetry-rig.js'

t.test('a stats client follows a gateway from start to stop', async t => {
  const file = join(testdir(t), 'run.csv')
  const { gateway, watcher } = await watched(t, { log: { level: 'debug' } }, { args: ['--csv', file] })

  await t.test('the command restart replaces a worker, and its clients reconnect', async t => {
    const before = (await watcher.snapshot(({ totals }) => totals.workers === 2)).workers
    const clients = await crowd(gateway)
    const codes = clients.map(client => client.closed.then(({ code }) => code))
    // Listen first: the event may arrive with the reply.
    const died = watcher.event('worker_died')
    t.equal(await watcher.command({ type: 'restart', worker: 1 }), null)
    t.match(await died, { level: 'info', worker: 1 })
    t.equal(await Promise.race(codes), 3001)
    const replaced = ({ workers }) =>
      workers[1].draining === 0 && workers[1].sample?.pid !== before[1].sample?.pid
    const after = (await watcher.snapshot(replaced)).workers
    t.equal(after[0].sample?.pid, before[0].sample?.pid)
    t.same(
      after.map(({ deaths }) => deaths),
      [0, 0],
      'a requested restart is not counted as a death',
    )
    t.ok(await RawClient.connected(gateway.ws))
    const { counters, totals } = await watcher.snapshot(
      ({ counters }) => counters.accepts === clients.length + 1,
    )
    t.equal(counters.closes[3001], clients.length + 1 - totals.connections.open, 'the last sample is counted')
    t.match(await watcher.command({ type: 'restart', worker: 7 }), 'restart')
  })

  await t.test('the command restart without an index replaces all workers one by one', async t => {
    const pids = gateway.workerPids
    t.equal(await watcher.command({ type: 'restart', worker: null }), null)
    t.equal(await watcher.command({ type: 'restart', worker: null }), null, 'a repeated one has no effect')
    await gateway.line(({ msg }) => msg === 'rolling restart finished')
    t.equal(gateway.workerPids.length, pids.length + 2)
    t.equal(gateway.lines.filter(({ msg }) => msg === 'rolling restart started').length, 1)
  })

  await t.test('a repeated restart is accepted until the new worker listens', async t => {
    const restart = () => watcher.command({ type: 'restart', worker: 0 })
    const pids = gateway.workerPids
    const begun = gateway.lines.length
    const after = text => gateway.line(line => gateway.lines.indexOf(line) >= begun && line.msg === text)
    t.equal(await restart(), null)
    t.equal(await restart(), null, 'while the new worker starts')
    await after('worker is listening')
    t.equal(await restart(), null, 'while the old worker exits, or afterwards')
    await after('worker replaced')
    const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 2)
    t.equal(workers[0].deaths, 0)
    t.ok([1, 2].includes(gateway.workerPids.length - pids.length))
  })

  await t.test('the command gc collects garbage in one worker, or in all', async t => {
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

  await t.test('a stopped worker shows a long event-loop delay', async t => {
    const { workers } = await watcher.snapshot(({ totals }) => totals.workers === 2)
    const pid = /** @type {number} */ (workers[1].sample?.pid)
    // The delay of an idle process is measured by its next timer, within 250 ms.
    const shown = watcher.snapshot(({ workers }) => (workers[1].sample?.loop.ticks.max ?? 0) > 250)
    process.kill(pid, 'SIGSTOP')
    setTimeout(() => process.kill(pid, 'SIGCONT'), 600)
    const { count, max, p50 } = /** @type {any} */ ((await shown).workers[1].sample).loop.ticks
    // A stop until the end of the second leaves no other values in the sample.
    t.ok(count === 1 || p50 < max / 2, `the longest delay is ${max} ms, the median ${p50} ms`)
  })

  await t.test('the death of a worker is an event and a forwarded log line', async t => {
    const { workers: before } = await watcher.snapshot(({ totals }) => totals.workers === 2)
    const victim = before[0].sample?.pid
    t.equal(await watcher.command({ type: 'log', on: true }), null)
    const logged = watcher.next(({ type, line }) => type === 'log' && line.includes('worker died'))
    const died = watcher.event('worker_died')
    process.kill(Number(victim), 'SIGKILL')
    const event = await died
    t.match(event, { level: 'error', text: /signal SIGKILL/ })
    t.match(JSON.parse((await logged).line), { msg: 'worker died', reason: 'signal SIGKILL' })
    t.ok(await gateway.line(({ msg }) => msg === 'worker died'), 'the log is still written to its own output')
    const { workers, csv } = await watcher.snapshot(({ totals }) => totals.workers === 2)
    t.equal(workers[/** @type {number} */ (event.worker)].deaths, 1)
    t.match(csv, { file, error: null })
  })

  await t.test('the command stop shuts down cleanly, even when sent twice', async t => {
    const client = await RawClient.connected(gateway.ws)
    watcher.command({ type: 'stop' })
    watcher.command({ type: 'stop' })
    t.match(await client.closed, { code: 3001 })
    t.match(await gateway.exited, { code: 0 })
    await watcher.closed
  })

  await t.test('--csv writes every row', async t => {
    const [head, ...rows] = (await readFile(file, 'utf8')).trim().split('\n')
    const seq = head.split(',').indexOf('seq')
    const found = rows.map(row => Number(row.split(',')[seq]))
    t.same(
      found,
      found.map((_, i) => i + 1),
    )
    t.ok(found.length >= 3)
  })
})

t.test('a worker that starts while the dashboard closes prints its log lines', async t => {
  const sent = []
  const log = /** @type {any} */ ({ error() {} })
  const pool = /** @type {any} */ ({
    config: {
      engine: { type: 'memory' },
      client: { connection_limit: 0 },
      http_server: { address: '127.0.0.1', port: 8000 },
    },
    node: {},
    slots: [{ current: null }],
    broadcast() {},
    observers: [],
    queues: {},
    sendTo: (index, message) => sent.push([index, message]),
  })
  const telemetry = new Telemetry(/** @type {any} */ ({ pool, log, output: null, onStop() {} }))
  telemetry.hold(true)
  const process = /** @type {any} */ ({ slot: 0, pid: 1 })
  telemetry.starting(process)
  telemetry.hold(false)
  telemetry.listening(process)
  t.same(sent, [[0, { type: 'log', shown: true, forward: false }]])
  await telemetry.close()
})
