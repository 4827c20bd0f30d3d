// A missing package is reported in one line, with the command that installs it.

import Module from 'node:module'
import t from 'tap'
import { Consumers } from '../../../../src/backends/queues/consumers.js'

t.test('the start fails with the install command if pg is missing', async t => {
  const loader = /** @type {any} */ (Module)
  const load = loader._load
  t.teardown(() => {
    loader._load = load
  })
  let hidden = 0
  loader._load = (request, /** @type {any[]} */ ...rest) => {
    if (request === 'pg') hidden++
    // The error for a missing package; its message names the package.
    if (request === 'pg')
      throw Object.assign(new Error("Cannot find module 'pg'"), { code: 'MODULE_NOT_FOUND' })
    return load.call(loader, request, ...rest)
  }
  const write = () => {}
  const log = { debug: write, info: write, warn: write, error: write }
  const consumer = { name: 'orders', enabled: true, type: 'postgresql', postgresql: {} }
  const parts = { config: { consumers: [consumer] }, api: {}, node: 'n', log, clock: Date.now }
  const consumers = new Consumers(/** @type {any} */ (parts))
  await t.rejects(/** @type {any} */ (consumers).start(), {
    message: 'consumer "orders": type postgresql requires the package pg: npm install pg@8',
  })
  t.equal(hidden, 1)
})
