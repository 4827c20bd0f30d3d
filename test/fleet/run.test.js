// A whole run, small: a gateway and a drone are started, every message is accounted for, and nothing is left behind.
// Workers are killed, connections cut, and runs ended early in run.slow.js.

import { readdir } from 'node:fs/promises'
import t from 'tap'
import { CliRun, processesWith } from './run-rig.js'

t.test('one-to-one, a little of it: every message is accounted for, and a report', async t => {
  const run = await CliRun.start(t, 'one-to-one', '--scale', '0.00005', '--seconds', '2', '--no-loss')
  t.equal(await run.code, 0, run.stderr)
  t.match(run.stdout, /holds {3}--no-loss: nothing lost/)
  t.match(run.stdout, /out\/report\.html/)
  const files = ['fleet.csv', 'gateway.csv', 'gateway.json', 'gateway.log', 'report.html', 'result.json']
  t.same((await readdir(run.out)).sort(), files)
  const { steps, accounting, partial, notes, ownGateway } = await run.result()
  t.match({ partial, notes, ownGateway }, { partial: false, notes: [], ownGateway: true })
  t.match(steps[0].connections, { wanted: 600, open: 600, least: 600 })
  t.ok(accounting.expected > 0)
  t.equal(accounting.received, accounting.expected)
  t.match(accounting, { lost: 0, duplicates: 0, disordered: 0, damaged: 0, unpublished: 0 })
  t.match(await run.report(), /Published, and here/)
  t.same(await processesWith(run.dir), [], 'nothing is left')
})
