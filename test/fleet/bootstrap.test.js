// The bootstrap as a machine has it: the files of its user data, an empty environment, and a fleet's real controller.

import { once } from 'node:events'
import { readdir, readFile, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { packProgram, saveProgram } from '../../fleet/program.js'
import { freePort, startGateway } from '../gateway.js'
import { fleetFolder, OPEN_GATEWAY, openFleet, until } from './controller/fleet-of.js'
import { Machine } from './ec2/machine.js'

const program = await packProgram()
t.jobs = 4

/**
 * @param {any} t
 * @param {string} dir of the fleet
 * @param {{sha256: string}} [pinned]
 * @returns {import('../../fleet/providers/contract.js').Provider & {machines: Machine[]}} drones are machines with nothing but a bootstrap
 */
function machinesOf(t, dir, pinned = program) {
  /** @type {Machine[]} */
  const machines = []
  return {
    name: 'machines',
    help: '',
    flags: {},
    machines,
    plan: async ({ drones }) => ({ lines: [], price: null, details: drones }),
    launch: async ({ details }) => {
      await saveProgram(dir, program)
      for (const drone of details) {
        const machine = await Machine.make(t, drone, pinned.sha256)
        machine.start()
        machines.push(machine)
      }
      return details.map((/** @type {any} */ { id, run }) => ({ id, run, handle: id, state: 'running' }))
    },
    find: async () => [],
    stop: async () => {
      for (const machine of machines) await machine.kill()
    },
    restart: async handle => handle,
    listen: async count =>
      await Promise.all(Array.from({ length: count }, async () => `127.0.0.1:${await freePort()}`)),
  }
}

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
      await until(fleet, ({ gauges }) => gauges.open === 3)
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

t.test(
  'a program that the controller has not got is an error on both sides, and asked for again',
  async t => {
    const dir = await fleetFolder(t)
    const other = 'ab'.repeat(32)
    const provider = machinesOf(t, dir, { sha256: other })
    const fleet = await openFleet(t, dir, { provider })
    const abort = new AbortController()
    const [event] = await Promise.all([
      new Promise(resolve => fleet.on('event', event => /program/.test(event.text) && resolve(event.text))),
      (async () => {
        const launched = fleet
          .launch(await fleet.plan(1, { allow: ['127.0.0.1:1'] }), { signal: abort.signal })
          .catch(error => error)
        while (provider.machines.length === 0) await once(fleet, 'snapshot')
        await provider.machines[0].said(/next attempt within 2 s/)
        abort.abort()
        t.match((await launched).message, /interrupted/)
      })(),
    ])
    t.match(event, `d1 cannot have its program: the controller has no program ${other}: stop this drone`)
    t.match(provider.machines[0].output, `bootstrap: no program yet: the controller has no program ${other}`)
    t.strictSame(await readdir(provider.machines[0].root).then(names => names.includes('state')), false)
  },
)

t.test('what scans the port of a drone that listens is no controller', async t => {
  const dir = await fleetFolder(t)
  const provider = machinesOf(t, dir)
  const fleet = await openFleet(t, dir, { provider })
  const port = await freePort()
  const drone = {
    run: fleet.run,
    secret: '0'.repeat(64),
    id: 'd1',
    listen: `127.0.0.1:${port}`,
    allow: ['127.0.0.1'],
  }
  const machine = await Machine.make(t, drone, program.sha256)
  machine.start()
  await machine.said(/waits for the controller on port/)
  for (const garbage of ['GET / HTTP/1.1\r\n\r\n', '\0'.repeat(5000), '\x16\x03\x01\x02\x00']) {
    const socket = createConnection({ port, host: '127.0.0.1' })
    socket
      .on('error', () => {})
      .resume()
      .end(garbage)
    await once(socket, 'close')
  }
  t.equal(machine.output.split('\n').length, 2, machine.output)
})
