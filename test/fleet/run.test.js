// A whole run, small: a gateway and a drone are started, every message is accounted for, and nothing is left behind.
// Workers are killed, connections cut, and runs ended early in run.slow.js.

import { readdir } from 'node:fs/promises'
import t from 'tap'
import { CliRun, processesWith } from './run-rig.js'

t.test('a small one-to-one run accounts for every message and writes a report', async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00005', '--seconds', '2', '--no-loss')
  t.equal(await run.code, 0, run.stderr)
  t.match(run.stdout, /met {7}--no-loss: nothing lost/)
  t.match(run.stdout, /out\/report\.html/)
  const files = ['fleet.csv', 'gateway.csv', 'gateway.json', 'gateway.log', 'report.html', 'result.json']
  t.same((await readdir(run.out)).sort(), files)
  const result = await run.result()
  const { steps, accounting } = result
  t.match(result, { scenario: 'one-to-one', scale: 0.00005, partial: false, notes: [], ownGateway: true })
  t.match(result.comparison[0], { label: 'Connections', value: '12,000,000', ours: '600' })
  t.ok(result.machine.kernel['net.core.somaxconn'])
  const [{ connections, ramp, gateway, drones, server }] = steps
  t.match(connections, { wanted: 600, open: 600, min: 600 })
  t.equal(ramp.opened, 600)
  t.ok(ramp.peak > 0 && (gateway?.cpu ?? 0) > 0 && (server?.parts.workers ?? 0) > 0)
  t.match(drones, [{ where: 'local', connections: 600 }])
  t.ok(drones[0].cpu > 0 && drones[0].memory > 1e6)
  t.ok(accounting.expected > 0)
  t.equal(accounting.received, accounting.expected)
  t.match(accounting, { lost: 0, duplicates: 0, disordered: 0, damaged: 0, unpublished: 0 })
  t.match(await run.report(), /Comparison with the published run/)
  t.same(await processesWith(run.dir), [], 'no process is left')
})
