// The start of the reloads: it must not fail when the hooks module cannot be looked at.

import { join } from 'node:path'
import t from 'tap'
import { Reload } from '../../src/primary/reload.js'

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
