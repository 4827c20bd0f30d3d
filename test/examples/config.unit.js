// Configuration files of the examples of maps.

import { fileURLToPath } from 'node:url'
import t from 'tap'
import { configureServer } from '../../src/config/profile.js'

t.test('configuration files are valid, without warnings', async t => {
  for (const name of ['cursors', 'kanban', 'token-stream']) {
    const file = fileURLToPath(new URL(`../../examples/${name}/halley.json`, import.meta.url))
    t.match(configureServer({ file }), { profile: 'configured', warnings: [] }, name)
  }
})
