// The official SDK over many edits.

import t from 'tap'
import { skipDriver } from '../../kit/drivers.js'
import { startGateway } from '../../kit/gateway.js'
import { config, testEdits } from './sdk.js'

for (const [i, driver] of ['uws', 'node'].entries()) {
  t.test(driver, { skip: skipDriver(driver) }, async t => {
    const gateway = await startGateway(t, { ...config, http_server: { driver } })
    const options = { seed: 101 + i, long: true }
    t.test('the SDK follows a document', t => testEdits(t, gateway, 'doc', { publications: 500, ...options }))
    t.test('the SDK follows edits that are not in history', t =>
      testEdits(t, gateway, 'passing', { publications: 150, ...options }),
    )
  })
}
