// A bootstrap and a fleet's real controller that has not what it asks for, and strangers who ask the bootstrap.

import { readdir } from 'node:fs/promises'
import { createConnection } from 'node:net'
import t from 'tap'
import { freePort } from '../kit/ports.js'
import { until } from '../kit/wait.js'
import { machinesOf, program } from './bootstrap-machines.js'
import { fleetFolder, openFleet } from './controller/fleet-rig.js'
import { Machine } from './ec2/machine.js'

t.jobs = 2

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
        await until(() => provider.machines.length > 0)
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
    // `once` of node:events would reject when it is reset.
    await new Promise(resolve => socket.once('close', resolve))
  }
  t.equal(machine.output.split('\n').length, 2, machine.output)
})
