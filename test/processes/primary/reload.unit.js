// The start of the reloads, which must not fail when the hooks module cannot be looked at, and their end.

import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load.js'
import { Reload } from '../../../src/processes/primary/reload.js'

t.test(
  'a hooks module below a file, or with a name that is too long, is for the workers to refuse',
  async t => {
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
  },
)

t.test('a check that does not end is not waited for, nor does it block later reloads', async t => {
  /** @type {any[]} */
  const lines = []
  /** @type {AbortSignal[]} */
  const signals = []
  const reload = new Reload(
    /** @type {any} */ ({
      pool: { config: loadConfig({}).config, server: { driver: 'node' } },
      log: { error: (/** @type {any} */ fields, /** @type {string} */ msg) => lines.push([msg, fields]) },
      read: () => loadConfig({}),
      check: (/** @type {any} */ _next, /** @type {any} */ _now, /** @type {AbortSignal} */ signal) => {
        signals.push(signal)
        return new Promise(() => {})
      },
      applied() {},
      checkTimeout: 10,
    }),
  )
  const reason = 'the check of the new configuration did not end within 0.01 s'
  const outcomes = [reload.request(), reload.request()]
  for (const outcome of outcomes)
    await t.rejects(outcome, { message: `configuration not reloaded: ${reason}` })
  t.same(lines, Array(2).fill(['configuration not reloaded', { reason }]))
  t.same(
    signals.map(({ aborted }) => aborted),
    [true, true],
  )
})
