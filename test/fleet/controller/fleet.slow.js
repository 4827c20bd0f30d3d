import t from 'tap'
import { local } from '../../../fleet/providers/local.js'
import { isAlive, signal } from '../../../fleet/providers/processes.js'
import { startGateway } from '../../kit/gateway.js'
import { fleetFolder, OPEN_GATEWAY, openFleet, snapshotOf } from './fleet-rig.js'

t.test('two drones apply settings; their counts survive their deaths', async t => {
  const gateway = await startGateway(t, OPEN_GATEWAY)
  const dir = await fleetFolder(t)
  const fleet = await openFleet(t, dir)
  const allow = [`127.0.0.1:${gateway.port}`]
  const progress = /** @type {string[]} */ ([])
  const plan = await fleet.plan(2, { allow, apiKey: 'key' })
  t.same((await fleet.launch(plan, { onProgress: text => progress.push(text) })).up, ['d1', 'd2'])
  t.ok(progress.includes('2 of 2 drones have reported'))
  await t.rejects(fleet.launch(plan), /is already launched/)

  t.same(await fleet.set({ host: [gateway.url], n: 50, channels: ['s{1..50}'] }), [])
  await snapshotOf(fleet, ({ gauges }) => gauges.open === 50)
  await fleet.set({ publish_rate: 200, publish_channels: ['s{1..50}'], publish_size: 128 })
  await snapshotOf(fleet, ({ counters }) => counters.published > 200)
  await fleet.set({ publish_rate: 0 })
  const done = await snapshotOf(
    fleet,
    ({ counters, rates }) => rates.published === 0 && counters.received === counters.published,
  )
  t.match(done.counters, { opened: 50, lost: 0, duplicates: 0, disordered: 0, failed: 0 })
  t.equal(done.latency.count, done.counters.received)
  t.match(await fleet.reconcile(), { lost: 0, publishers: 1, expected: done.counters.published, missing: [] })
  fleet.resetStatistics()
  t.equal(fleet.snapshot().latency.count, 0)

  t.test('a forbidden target is refused without effect', async t => {
    await t.rejects(fleet.set({ host: ['http://127.0.0.1:1'], n: 7 }), /^d1, d2 refuse: .*127\.0\.0\.1:1/)
    t.same(fleet.settings.host, [gateway.url])
    t.equal(fleet.settings.n, 50)
    await t.rejects(fleet.set({ publish_channels: [], publish_rate: 5 }), /publish_channels/)
  })

  t.test('a killed drone is relaunched with its share', async t => {
    const before = fleet.snapshot()
    const [first] = before.drones
    await signal(first.handle, 'SIGKILL')
    const after = await snapshotOf(
      fleet,
      ({ gauges, drones }) => drones[0].restarts === 1 && gauges.open === 50 && drones[0].state === 'up',
    )
    t.not(after.drones[0].handle, first.handle)
    t.equal(after.counters.received, before.counters.received)
    t.equal(after.counters.opened, before.counters.opened + 25)
    t.equal(after.counters.ended, before.counters.ended + 25, 'its open connections have ended')
    t.ok(after.events.some(({ text }) => /^d1 exited/.test(text)))
  })

  t.test('ramps are linear; cut connections and killed processes return', async t => {
    await fleet.ramp(80, 1.5)
    t.equal(fleet.settings.n, 80)
    await snapshotOf(fleet, ({ gauges }) => gauges.open === 80)
    t.equal(await fleet.cut(0.5, 'reset'), 40)
    await snapshotOf(fleet, ({ gauges, counters }) => gauges.open === 80 && counters.reconnects >= 40)
    await t.rejects(fleet.restart(['d7']), { message: 'unknown drone d7; did you mean d1?' })
    const { opened } = fleet.snapshot().counters
    t.same(await fleet.restart(['d2']), ['d2'])
    await snapshotOf(fleet, ({ gauges, counters }) => gauges.open === 80 && counters.opened === opened + 40)
    const late = t.rejects(fleet.ramp(0, 1000), /ramp ended: n was set/)
    await fleet.set({ n: 60 })
    await late
  })

  t.test('the remaining drones take over from stopped ones; after stopping all, nothing remains', async t => {
    const [first, second] = fleet.snapshot().drones
    t.same(await fleet.stop(1), ['d2'])
    t.notOk(await isAlive(second.handle))
    const alone = await snapshotOf(fleet, ({ gauges }) => gauges.open === 60)
    t.same(
      alone.drones.map(({ id }) => id),
      ['d1'],
    )
    t.ok(alone.counters.received >= done.counters.received, 'counts of the other drone are kept')
    const { opened, ended, closed } = alone.counters
    t.equal(opened - ended - closed, 60, 'open = opened - closed')
    t.same(await fleet.stop('all'), ['d1'])
    t.notOk(await isAlive(first.handle))
    t.same(await local.find('all', { dir, flags: {} }), [])
  })
})
