// Reloads with an unreadable hooks module, and the time limit of the check.

import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load.js'
import { Reload } from '../../../src/processes/primary/reload.js'

t.test('workers, not the primary, refuse a hooks module with an invalid path', async t => {
  const folder = t.testdir({ file: '' })
  for (const module of [
    join(folder, 'file', 'hooks.js'),
    join(folder, 'x'.repeat(300)),
    join(folder, 'none.js'),
  ])
    t.doesNotThrow(
      () =>
        new Reload(
          /** @type {any} */ ({
            pool: { config: { hooks: { module } } },
            log: {},
            read() {},
            check() {},
            applied() {},
          }),
        ),
      module.slice(-20),
    )
})

t.test('a check that hangs times out, and does not block later reloads', async t => {
  const lines = []
  const signals = []
  const reload = new Reload(
    /** @type {any} */ ({
      pool: { config: loadConfig({}).config, server: { driver: 'node' } },
      log: { error: (fields, msg) => lines.push([msg, fields]) },
      read: () => loadConfig({}),
      check: (_next, _now, signal) => {
        signals.push(signal)
        return new Promise(() => {})
      },
      applied() {},
      checkTimeout: 10,
    }),
  )
  const reason = 'checking the new configuration timed out after 0.01 s'
  const outcomes = [reload.request(), reload.request()]
  for (const outcome of outcomes)
    await t.rejects(outcome, { message: `configuration not reloaded: ${reason}` })
  t.same(lines, Array(2).fill(['configuration not reloaded', { reason }]))
  t.same(
    signals.map(({ aborted }) => aborted),
    [true, true],
  )
})
