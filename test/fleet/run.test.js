// A whole run, small: a gateway and a drone are started, every message is accounted for, and nothing is left behind. Workers are killed,
// connections cut, and runs ended in run.slow.js.

import { readdir } from 'node:fs/promises'
import t from 'tap'
import { CliRun, processesWith } from './run-rig.js'

t.test('comet-million, a little of it: nothing lost, and a report', async t => {
  const run = await CliRun.start(t, 'comet-million', '--scale', '0.0003', '--seconds', '3', '--no-loss')
  t.equal(await run.code, 0, run.stderr)
  t.match(run.stdout, /holds {3}--no-loss: nothing lost/)
  t.match(run.stdout, /out\/report\.html/)
  const files = ['fleet.csv', 'gateway.csv', 'gateway.json', 'gateway.log', 'report.html', 'result.json']
  t.same((await readdir(run.out)).sort(), files)
  const result = await run.result()
  t.match(result, { scenario: 'comet-million', scale: 0.0003, partial: false, ownGateway: true, notes: [] })
  t.equal(result.plan?.config.client.ping_interval, '20s')
  const [step] = result.steps
  t.match(step.connections, { wanted: 300, open: 300, least: 300 })
  t.equal(step.ramp.opened, 300)
  t.ok(step.ramp.peak > 0)
  t.ok((step.gateway?.cpu ?? 0) > 0, 'the gateway was watched')
  t.match(step.drones, [{ where: 'local', connections: 300 }])
  t.ok(step.drones[0].cpu > 0)
  t.ok(step.drones[0].memory > 1e6)
  t.match(result.accounting, { opened: 300, ended: 0, failed: 0 })
  t.match(result.comparison[0], { label: 'Connections', value: '1,000,000', ours: '300' })
  t.ok(result.machine.kernel['net.core.somaxconn'])
  t.match(await run.report(), /Published, and here/)
  t.same(await processesWith(run.dir), [], 'nothing is left')
})
