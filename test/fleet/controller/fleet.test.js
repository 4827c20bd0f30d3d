import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import t from 'tap'
import { stateFile } from '../../../fleet/controller/folder.js'
import { freePort } from '../../kit/ports.js'
import { fleetFolder, openFleet, snapshotOf } from './fleet-rig.js'

t.test('a controller dials listening drones, including those of an earlier controller', async t => {
  const dir = await fleetFolder(t)
  const fleet = await openFleet(t, dir)
  const plan = await fleet.plan(1, { allow: ['127.0.0.1:1'], listen: true })
  t.match(plan.lines.join('\n'), /"listen":"127\.0\.0\.1:\d+"/)
  t.same((await fleet.launch(plan)).up, ['d1'])
  const [{ handle }] = fleet.snapshot().drones
  await fleet.close()
  // The state that a controller leaves if it is killed during a launch: d1 has started, d2 has not.
  const state = JSON.parse(await readFile(stateFile(dir), 'utf8'))
  Object.assign(state.drones[0], { handle: null, member: false })
  state.drones.push({ ...state.drones[0], id: 'd2' })
  await writeFile(stateFile(dir), JSON.stringify(state))
  const next = await openFleet(t, dir)
  // Set before the drone is adopted: it does not try to open them.
  const [warning] = await next.set({ host: ['http://127.0.0.1:1'], n: 1e9 })
  await next.set({ n: 3 })
  t.match(warning, /^1000000000 connections exceed the capacity of the drones, \d+, by \d+$/)
  await next.adopted()
  t.same(
    next.snapshot().drones.map(drone => [drone.id, drone.handle]),
    [['d1', handle]],
  )
  t.equal(next.snapshot().drones[0].state, 'up')
  const { faults } = await snapshotOf(next, ({ counters }) => counters.failed > 0)
  t.match(Object.keys(faults).join(), 'ECONNREFUSED')
  await next.stop('all')
})

t.test('an unusable folder or address is a one-line error with the reason', async t => {
  await t.rejects(openFleet(t, '/tmp'), {
    message: "/tmp cannot be the fleet's folder: other users can write into it",
  })
  await t.rejects(
    openFleet(t, '/etc/hostname/fleet'),
    /^\/etc\/hostname\/fleet cannot be the fleet's folder: /,
  )
  const port = await freePort()
  const other = createServer().listen(port, '127.0.0.1')
  t.teardown(() => other.close())
  const dir = await fleetFolder(t)
  await t.rejects(openFleet(t, dir, { bind: `127.0.0.1:${port}` }), {
    message: `cannot listen for drones on 127.0.0.1:${port}: the address is in use`,
  })
  await t.rejects(openFleet(t, dir, { bind: 'nonsense:port' }), /is not HOST:PORT/)
})
