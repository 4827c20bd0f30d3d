// The bootstrap as a machine has it: the files of its user data, an empty environment, and a fleet's real controller.

import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../kit/gateway.js'
import { machinesOf, program } from './bootstrap-machines.js'
import { fleetFolder, OPEN_GATEWAY, openFleet, snapshotOf } from './controller/fleet-rig.js'

t.jobs = 4

for (const listen of [false, true])
  t.test(
    `a drone that ${listen ? 'listens' : 'dials'} gets its program, and does what it is told`,
    async t => {
      const gateway = await startGateway(t, OPEN_GATEWAY)
      const dir = await fleetFolder(t)
      const provider = machinesOf(t, dir)
      const fleet = await openFleet(t, dir, { provider })
      const plan = await fleet.plan(1, { allow: [`127.0.0.1:${gateway.port}`], listen })
      t.same((await fleet.launch(plan)).up, ['d1'])
      await fleet.set({ host: [gateway.url], n: 3 })
      await snapshotOf(fleet, ({ gauges }) => gauges.open === 3)
      const [machine] = provider.machines
      t.match(machine.output, `program ${program.sha256} has arrived`)
      t.strictSame((await readdir(machine.state)).sort(), [program.sha256, `${program.sha256}.json.gz`])
      await fleet.stop('all')
    },
  )

t.test('a drone that is started again needs no controller for its program', async t => {
  const dir = await fleetFolder(t)
  const provider = machinesOf(t, dir)
  const fleet = await openFleet(t, dir, { provider })
  await fleet.launch(await fleet.plan(1, { allow: ['127.0.0.1:1'] }))
  const [machine] = provider.machines
  await machine.kill()
  await fleet.close()
  // What was damaged meanwhile, and what is gone, is as it was.
  const unpacked = join(machine.state, program.sha256, 'fleet/drone')
  await rm(join(unpacked, 'agent.js'))
  await rm(join(unpacked, 'engine'), { recursive: true })
  machine.output = ''
  machine.start()
  // These are the drone's words, not the bootstrap's.
  await machine.said(/Z \w+ controller 127\.0\.0\.1:\d+: ECONNREFUSED/)
  t.notMatch(machine.output, 'bootstrap')
  t.equal(
    await readFile(join(unpacked, 'agent.js'), 'utf8'),
    await readFile(new URL('../../fleet/drone/agent.js', import.meta.url), 'utf8'),
  )
})
