// The bootstrap on a machine: the files of its user data, an empty environment, and a real controller.

import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../kit/gateway.js'
import { machinesOf, program } from './bootstrap-machines.js'
import { fleetFolder, OPEN_GATEWAY, openFleet, snapshotOf } from './controller/fleet-rig.js'

t.jobs = 4

for (const listen of [false, true])
  t.test(`a drone that ${listen ? 'listens' : 'dials'} receives its program and runs it`, async t => {
    const gateway = await startGateway(t, OPEN_GATEWAY)
    const dir = await fleetFolder(t)
    const provider = machinesOf(t, dir)
    const fleet = await openFleet(t, dir, { provider })
    const plan = await fleet.plan(1, { allow: [`127.0.0.1:${gateway.port}`], listen })
    t.same((await fleet.launch(plan)).up, ['d1'])
    await fleet.set({ host: [gateway.url], n: 3 })
    await snapshotOf(fleet, ({ gauges }) => gauges.open === 3)
    const [machine] = provider.machines
    t.match(machine.output, `received program ${program.sha256}`)
    t.strictSame((await readdir(machine.state)).sort(), [program.sha256, `${program.sha256}.json.gz`])
    await fleet.stop('all')
  })

t.test('a restarted drone starts its program without a controller', async t => {
  const dir = await fleetFolder(t)
  const provider = machinesOf(t, dir)
  const fleet = await openFleet(t, dir, { provider })
  await fleet.launch(await fleet.plan(1, { allow: ['127.0.0.1:1'] }))
  const [machine] = provider.machines
  await machine.kill()
  await fleet.close()
  // Damaged and missing files have been restored.
  const unpacked = join(machine.state, program.sha256, 'fleet/drone')
  await rm(join(unpacked, 'agent.js'))
  await rm(join(unpacked, 'engine'), { recursive: true })
  machine.output = ''
  machine.start()
  // These lines are the drone's, not the bootstrap's.
  await machine.printed(/Z \w+ controller 127\.0\.0\.1:\d+: ECONNREFUSED/)
  t.notMatch(machine.output, 'bootstrap')
  t.equal(
    await readFile(join(unpacked, 'agent.js'), 'utf8'),
    await readFile(new URL('../../fleet/drone/agent.js', import.meta.url), 'utf8'),
  )
})
